#include "catalog/access.h"

#include <algorithm>

#include "catalog/relations.h"

namespace trellis {
namespace {

constexpr size_t keys_at_once = 256;

Bytes owner_key(KeyspaceId keyspace, const CatalogRef& metalake, const CatalogRef& ref,
                const CatalogRef& user) {
  return encode(CatalogRelationKey{keyspace, metalake.id, CatalogRelation::owner, ref, user});
}

Result<std::vector<Value>> get_all(Tenant& tenant, const std::vector<Bytes>& keys) {
  std::vector<Value> values(keys.size());
  const std::vector<ByteView> views(keys.begin(), keys.end());
  for (size_t i = 0; i < keys.size(); i += keys_at_once) {
    const size_t count = std::min(keys_at_once, keys.size() - i);
    TRY(tenant.map().engine.multi_get(std::span(views).subspan(i, count),
                                      std::span(values).subspan(i, count)));
  }
  return values;
}

}  // namespace

void GrantSum::add(std::span<const stored::CatalogPrivilege> privileges) {
  for (const stored::CatalogPrivilege& privilege : privileges)
    (privilege.deny() ? denied : allowed) |= privilege_named(privilege.name());
}

bool is_allowed(const CatalogRights& rights, CatalogType type, PrivilegeSet any_of) {
  if (rights.owns_level(0)) return true;
  const GrantSum& grants = rights.grants;
  if (type == CatalogType::metalake) return grants.has(any_of);
  if (rights.owns_level(1)) return true;  // the catalog, tag, role or the like
  if (type == CatalogType::catalog || is_member_of_metalake(type)) return grants.has(any_of);
  if (!grants.has(privileges(Privilege::use_catalog))) return false;
  if (rights.owns_level(2)) return true;  // the schema
  if (type == CatalogType::schema) return grants.has(any_of);
  if (!grants.has(privileges(Privilege::use_schema))) return false;
  return rights.owns_level(3) || grants.has(any_of);
}

PrivilegeSet privileges_to_load(CatalogType type) {
  switch (type) {
    case CatalogType::metalake: return ~PrivilegeSet{0};
    case CatalogType::catalog: return privileges(Privilege::use_catalog);
    case CatalogType::schema: return privileges(Privilege::use_schema);
    case CatalogType::broker:
    case CatalogType::topic: return privileges(Privilege::consume_topic, Privilege::produce_topic);
    case CatalogType::table:
    case CatalogType::column: return privileges(Privilege::select_table, Privilege::modify_table);
    case CatalogType::fileset: return privileges(Privilege::read_fileset, Privilege::write_fileset);
    case CatalogType::model: return privileges(Privilege::use_model);
    case CatalogType::view: return privileges(Privilege::select_view);
    case CatalogType::function:
      return privileges(Privilege::execute_function, Privilege::modify_function);
    case CatalogType::tag: return privileges(Privilege::apply_tag, Privilege::view_tag);
    case CatalogType::policy: return privileges(Privilege::apply_policy);
    case CatalogType::user: return privileges(Privilege::manage_users);
    case CatalogType::group: return privileges(Privilege::manage_groups);
    case CatalogType::role: return privileges(Privilege::manage_grants);
  }
  return 0;
}

// --- one caller ---

Result<std::optional<CatalogAccess>> CatalogAccess::of(Catalog& catalog, const CatalogCall& call,
                                                       const std::string& metalake) {
  Tenant& tenant = call.tenant;
  TRY_ASSIGN(const EntityWay way,
             find_way(tenant, EntityPath{CatalogType::user, {metalake, call.user}}));
  if (way.refs.empty()) return std::optional<CatalogAccess>();
  CatalogAccess access(tenant, way.refs.front());
  if (!way.complete()) return std::optional(std::move(access));
  TRY_ASSIGN(const auto users, live_members(catalog, tenant, way.refs[0], {&way.refs[1], 1}));
  if (users.empty() || users.front().stored.user().disabled())
    return std::optional(std::move(access));
  access.user_ = way.ref();
  TRY_ASSIGN(const std::vector<CatalogRef> refs,
             related_from(tenant, access.metalake_.id, CatalogRelation::role, way.ref()));
  TRY(visit_live_members(catalog, tenant, access.metalake_, refs,
                         [&](const Entity& role) { access.roles_.push_back(role.ref); }));
  return std::optional(std::move(access));
}

Result<CatalogRights> CatalogAccess::rights_on(std::span<const CatalogRef> refs) const {
  CatalogRights rights;
  if (!user_) return rights;
  std::vector<Bytes> keys;
  for (const CatalogRef& ref : refs)
    keys.push_back(owner_key(tenant_->id(), metalake_, ref, *user_));
  for (const CatalogRef& role : roles_)
    for (size_t i = 0; i < refs.size(); i++)
      keys.push_back(grant_key(tenant_->id(), role, refs.first(i), refs[i]));
  TRY_ASSIGN(const std::vector<Value> values, get_all(*tenant_, keys));
  for (size_t i = 0; i < values.size(); i++) {
    if (i < refs.size()) {
      rights.owns.push_back(values[i].found());
    } else if (values[i].found()) {
      TRY_ASSIGN(const auto granted, decode_grant(values[i].bytes()));
      rights.grants.add(granted);
    }
  }
  return rights;
}

Result<bool> CatalogAccess::owns(const Entity& entity) const {
  if (!user_) return false;
  std::vector<Bytes> keys{owner_key(tenant_->id(), metalake_, entity.ref, *user_)};
  for (const CatalogRef& ref : entity.above)
    keys.push_back(owner_key(tenant_->id(), metalake_, ref, *user_));
  TRY_ASSIGN(const std::vector<Value> values, get_all(*tenant_, keys));
  return std::ranges::any_of(values, &Value::found);
}

Result<bool> CatalogAccess::may(const EntityPath& path, PrivilegeSet any_of) const {
  if (!user_) return false;
  if (path.type == CatalogType::metalake && any_of == privileges_to_load(path.type)) return true;
  TRY_ASSIGN(const EntityWay way, find_way(*tenant_, path));
  if (way.refs.empty() || way.refs.front() != metalake_) return false;  // another by now
  TRY_ASSIGN(const CatalogRights rights, rights_on(way.refs));
  return is_allowed(rights, path.type, any_of);
}

Result<bool> CatalogAccess::may_manage_grants(const EntityPath& path) const {
  if (!user_) return false;
  TRY_ASSIGN(const EntityWay way, find_way(*tenant_, path));
  if (way.refs.empty() || way.refs.front() != metalake_) return false;
  TRY_ASSIGN(const CatalogRights rights, rights_on(way.refs));
  return rights.grants.has(privileges(Privilege::manage_grants)) ||
         is_allowed(rights, path.type, 0);
}

// --- lists ---

Result<ChildFilter> ChildFilter::of(const CatalogAccess& access, const EntityPath& parent,
                                    CatalogType type, size_t others_max) {
  ChildFilter filter(access, type);
  if (!access.user_) return filter;
  Tenant& tenant = *access.tenant_;
  TRY_ASSIGN(const EntityWay way, find_way(tenant, parent));
  if (!way.complete()) return filter;  // whoever lists says so
  TRY_ASSIGN(filter.rights_, access.rights_on(way.refs));
  const PrivilegeSet any_of = privileges_to_load(type);
  if (is_allowed(filter.rights_, type, 0)) {  // owners of what it stands in
    filter.all_ = true;
    return filter;
  }
  filter.parent_ = way.ref();
  for (const CatalogRef& role : access.roles_) TRY(filter.read_others(way, role, others_max));
  const bool has_denies = std::ranges::any_of(
      filter.others_, [&](const auto& other) { return (other.second.denied & any_of) != 0; });
  filter.all_ = is_allowed(filter.rights_, type, any_of) && !has_denies && !filter.too_many_;
  return filter;
}

Status ChildFilter::read_others(const EntityWay& way, const CatalogRef& role, size_t others_max) {
  Tenant& tenant = *access_.tenant_;
  // | ... above | '_' | letters |
  const CatalogRef none{type_, {}};
  Bytes prefix = grant_key(tenant.id(), role, way.refs, none);
  prefix.resize(prefix.size() - encode_ref(none).size() + catalog_word(type_).bytes.size());
  const auto take = [&](ByteView key, ByteView value) -> Status {
    TRY_ASSIGN(const auto grant, decode<CatalogGrantKey>(key));
    TRY_ASSIGN(const auto granted, decode_grant(value));
    others_[grant.ref].add(granted);
    return {};
  };
  PageStart from;
  do {
    if (too_many_) return {};
    TRY_ASSIGN(from, read_record_page(tenant, prefix, prefix_end(prefix), {from}, take));
    too_many_ = others_.size() > others_max;
    if (too_many_) others_.clear();
  } while (from);
  return {};
}

// What roles say of these themselves.
Result<std::vector<GrantSum>> ChildFilter::others_of(std::span<const CatalogRef> refs) const {
  std::vector<GrantSum> sums(refs.size());
  if (!too_many_) {
    for (size_t i = 0; i < refs.size(); i++)
      if (const auto other = others_.find(refs[i]); other != others_.end()) sums[i] = other->second;
    return sums;
  }
  for (const CatalogRef& role : access_.roles_) {
    std::vector<Bytes> keys;
    for (const CatalogRef& ref : refs)
      keys.push_back(grant_key(access_.tenant_->id(), role, std::span(&parent_, 1), ref));
    TRY_ASSIGN(const std::vector<Value> values, get_all(*access_.tenant_, keys));
    for (size_t i = 0; i < values.size(); i++) {
      if (!values[i].found()) continue;
      TRY_ASSIGN(const auto granted, decode_grant(values[i].bytes()));
      sums[i].add(granted);
    }
  }
  return sums;
}

Result<std::vector<bool>> ChildFilter::keep(std::span<const CatalogRef> refs) const {
  std::vector<bool> kept(refs.size(), all_);
  if (all_ || !access_.user_) return kept;
  const PrivilegeSet any_of = privileges_to_load(type_);
  TRY_ASSIGN(const std::vector<GrantSum> others, others_of(refs));
  std::vector<size_t> asked;
  std::vector<Bytes> keys;
  for (size_t i = 0; i < refs.size(); i++) {
    CatalogRights rights = rights_;
    rights.grants.add(others[i]);
    kept[i] = is_allowed(rights, type_, any_of) || refs[i] == *access_.user_ ||
              std::ranges::find(access_.roles_, refs[i]) != access_.roles_.end();
    rights.owns.push_back(true);
    if (kept[i] || !is_allowed(rights, type_, any_of)) continue;
    asked.push_back(i);  // only as its owner
    keys.push_back(owner_key(access_.tenant_->id(), access_.metalake_, refs[i], *access_.user_));
  }
  TRY_ASSIGN(const std::vector<Value> values, get_all(*access_.tenant_, keys));
  for (size_t i = 0; i < asked.size(); i++) kept[asked[i]] = values[i].found();
  return kept;
}

Result<std::vector<bool>> metalakes_with_user(Tenant& tenant, const std::string& user,
                                              std::span<const CatalogRef> metalakes) {
  if (user.empty() || user.size() > catalog_name_bytes_max)
    return std::vector<bool>(metalakes.size(), false);
  std::vector<Bytes> keys;
  for (const CatalogRef& metalake : metalakes)
    keys.push_back(name_key(tenant.id(), metalake, CatalogType::user, user));
  TRY_ASSIGN(const std::vector<Value> values, get_all(tenant, keys));
  std::vector<bool> found;
  for (const Value& value : values) found.push_back(value.found());
  return found;
}

}  // namespace trellis
