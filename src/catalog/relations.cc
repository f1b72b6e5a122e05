#include "catalog/relations.h"

#include <algorithm>

#include "codec/stored_message.h"

namespace trellis {
namespace {

constexpr ByteView inverse_value = "\x01";
constexpr const char* relation_what = "relation";
constexpr size_t members_at_once = 64;

Bytes relation_key(KeyspaceId keyspace, const Uuid& metalake, const RelationEnds& ends) {
  return encode(CatalogRelationKey{keyspace, metalake, ends.relation, ends.from, ends.to});
}

Bytes inverse_key(KeyspaceId keyspace, const Uuid& metalake, const RelationEnds& ends) {
  return encode(CatalogInverseKey{keyspace, metalake, ends.relation, ends.to, ends.from});
}

// Without its last ref: what the keys of all begin with that have the same first end.
Bytes without_last(Bytes key, const CatalogRef& last) {
  key.resize(key.size() - encode_ref(last).size());
  return key;
}

// Roles that may do something with it, by its ri_ records.
Result<std::vector<CatalogRef>> granted_roles(RelationGet scan, KeyspaceId keyspace,
                                              const Uuid& metalake, const CatalogRef& ref) {
  const Bytes prefix = without_last(
      inverse_key(keyspace, metalake, {CatalogRelation::grant, CatalogRef(), ref}), CatalogRef());
  std::vector<CatalogRef> roles;
  std::optional<Bytes> from = prefix;
  Status bad;
  while (from) {
    TRY_ASSIGN(ScanPage page,
               scan({.begin = *from, .end = prefix_end(prefix)}, [&](ByteView key, ByteView) {
                 const auto inverse = decode<CatalogInverseKey>(key);
                 if (!inverse) bad = inverse.error();
                 if (inverse) roles.push_back(inverse->from);
                 return inverse ? Visit::go_on : Visit::stop;
               }));
    TRY(bad);
    from = std::move(page.resume);
  }
  return roles;
}

Result<std::optional<Entity>> read_member(Tenant& tenant, const CatalogRef& metalake,
                                          const CatalogRef& ref, const Value& value) {
  if (!value.found()) return std::optional<Entity>();
  TRY_ASSIGN(Entity entity, decode_entity(std::span(&metalake, 1), ref, value.bytes()));
  Value named;
  TRY(tenant.map().engine.get(name_key(tenant.id(), metalake, ref.type, entity.name()), named));
  if (!named.found()) return std::optional<Entity>();
  TRY_ASSIGN(const NamedRef names, decode_named(ref.type, named.bytes()));
  if (names.ref != ref) return std::optional<Entity>();
  return std::optional(std::move(entity));
}

}  // namespace

void plan_relation(CatalogPlan& plan, const Uuid& metalake, const RelationEnds& ends) {
  plan.exclusive(relation_key(plan.keyspace(), metalake, ends));
  plan.exclusive(inverse_key(plan.keyspace(), metalake, ends));
}

Result<std::optional<stored::CatalogRelation>> read_relation(CatalogChange& change,
                                                             const Uuid& metalake,
                                                             const RelationEnds& ends) {
  TRY_ASSIGN(const CatalogChange::Record record,
             change.record(relation_key(change.keyspace(), metalake, ends)));
  if (!record.found()) return std::optional<stored::CatalogRelation>();
  stored::CatalogRelation relation;
  TRY(decode_message(record.value(), relation, relation_what));
  return std::optional(std::move(relation));
}

Status put_relation(CatalogChange& change, const Uuid& metalake, const RelationEnds& ends,
                    stored::CatalogRelation relation) {
  TRY_ASSIGN(const CatalogChange::Record record,
             change.record(relation_key(change.keyspace(), metalake, ends)));
  if (record.found()) {
    stored::CatalogRelation before;
    TRY(decode_message(record.value(), before, relation_what));
    *relation.mutable_audit() = before.audit();
    relation.mutable_audit()->set_modifier(change.call().user);
    relation.mutable_audit()->set_modified_ms(change.now_ms());
  } else {
    relation.mutable_audit()->Clear();
    relation.mutable_audit()->set_creator(change.call().user);
    relation.mutable_audit()->set_created_ms(change.now_ms());
  }
  change.put(record, encode_message(relation));
  TRY_ASSIGN(const CatalogChange::Record inverse,
             change.record(inverse_key(change.keyspace(), metalake, ends)));
  if (!inverse.found()) change.put(inverse, inverse_value);
  return {};
}

Result<bool> remove_relation(CatalogChange& change, const Uuid& metalake,
                             const RelationEnds& ends) {
  TRY_ASSIGN(const CatalogChange::Record record,
             change.record(relation_key(change.keyspace(), metalake, ends)));
  TRY_ASSIGN(const CatalogChange::Record inverse,
             change.record(inverse_key(change.keyspace(), metalake, ends)));
  change.remove(record);
  change.remove(inverse);
  return record.found();
}

Result<std::vector<CatalogRef>> related_from(RelationGet scan, KeyspaceId keyspace,
                                             const Uuid& metalake, CatalogRelation relation,
                                             const CatalogRef& from) {
  const Bytes prefix =
      without_last(relation_key(keyspace, metalake, {relation, from, CatalogRef()}), CatalogRef());
  std::vector<CatalogRef> refs;
  std::optional<Bytes> begin = prefix;
  Status bad;
  while (begin && refs.size() < related_max) {
    TRY_ASSIGN(
        ScanPage page,
        scan({.begin = *begin, .end = prefix_end(prefix), .entries_max = related_max - refs.size()},
             [&](ByteView key, ByteView) {
               const auto found = decode<CatalogRelationKey>(key);
               if (!found) bad = found.error();
               if (found) refs.push_back(found->to);
               return found ? Visit::go_on : Visit::stop;
             }));
    TRY(bad);
    begin = std::move(page.resume);
  }
  return refs;
}

Result<std::vector<CatalogRef>> related_from(Tenant& tenant, const Uuid& metalake,
                                             CatalogRelation relation, const CatalogRef& from) {
  const auto scan = [&](const ScanRequest& request, ScanVisitor visit) {
    return tenant.map().engine.scan(request, visit);
  };
  return related_from(scan, tenant.id(), metalake, relation, from);
}

Result<std::vector<CatalogRef>> related_from(CatalogChange& change, const Uuid& metalake,
                                             CatalogRelation relation, const CatalogRef& from) {
  const auto scan = [&](const ScanRequest& request, ScanVisitor visit) {
    return change.view().scan(request, visit);
  };
  return related_from(scan, change.keyspace(), metalake, relation, from);
}

Result<PageStart> related_to(Tenant& tenant, const Uuid& metalake, CatalogRelation relation,
                             const CatalogRef& to, const PageRequest& page,
                             std::vector<CatalogRef>& refs) {
  const Bytes prefix =
      without_last(inverse_key(tenant.id(), metalake, {relation, CatalogRef(), to}), CatalogRef());
  const auto take = [&](ByteView key, ByteView) -> Status {
    TRY_ASSIGN(const auto found, decode<CatalogInverseKey>(key));
    refs.push_back(found.from);
    return {};
  };
  return read_record_page(tenant, prefix, prefix_end(prefix), page, take);
}

Result<std::optional<stored::CatalogRelation>> load_relation(Tenant& tenant, const Uuid& metalake,
                                                             const RelationEnds& ends) {
  Value value;
  TRY(tenant.map().engine.get(relation_key(tenant.id(), metalake, ends), value));
  if (!value.found()) return std::optional<stored::CatalogRelation>();
  stored::CatalogRelation relation;
  TRY(decode_message(value.bytes(), relation, relation_what));
  return std::optional(std::move(relation));
}

Status visit_live_members(Catalog& catalog, Tenant& tenant, const CatalogRef& metalake,
                          std::span<const CatalogRef> refs, FunctionRef<void(Entity&)> visit) {
  const std::span<const CatalogRef> above(&metalake, 1);
  for (size_t first = 0; first < refs.size(); first += members_at_once) {
    const auto portion = refs.subspan(first, std::min(members_at_once, refs.size() - first));
    std::vector<Bytes> keys;
    for (const CatalogRef& ref : portion) keys.push_back(entity_key(tenant.id(), above, ref));
    std::vector<Value> values(keys.size());
    TRY(tenant.map().engine.multi_get(std::vector<ByteView>(keys.begin(), keys.end()), values));
    for (size_t i = 0; i < portion.size(); i++) {
      TRY_ASSIGN(std::optional<Entity> member,
                 read_member(tenant, metalake, portion[i], values[i]));
      // It may have been renamed between the two reads.
      for (unsigned tries = 0; !member && values[i].found() && tries < 3; tries++) {
        TRY_ASSIGN(const std::optional<EntityPath> path, catalog.path_of(tenant, portion[i]));
        if (!path) break;
        TRY(tenant.map().engine.get(keys[i], values[i]));
        TRY_ASSIGN(member, read_member(tenant, metalake, portion[i], values[i]));
      }
      if (member) visit(*member);
    }
  }
  return {};
}

Result<std::vector<Entity>> live_members(Catalog& catalog, Tenant& tenant,
                                         const CatalogRef& metalake,
                                         std::span<const CatalogRef> refs) {
  std::vector<Entity> members;
  TRY(visit_live_members(catalog, tenant, metalake, refs,
                         [&](Entity& member) { members.push_back(std::move(member)); }));
  return members;
}

// --- grants ---

Bytes grant_key(KeyspaceId keyspace, const CatalogRef& role, std::span<const CatalogRef> above,
                const CatalogRef& ref) {
  return encode(
      CatalogGrantKey{keyspace, role.number(), above.empty() ? CatalogRef() : above.back(), ref});
}

void plan_grant(CatalogPlan& plan, const CatalogRef& role, std::span<const CatalogRef> above,
                const CatalogRef& ref) {
  const Uuid& metalake = above.empty() ? ref.id : above.front().id;
  plan_relation(plan, metalake, {CatalogRelation::grant, role, ref});
  plan.exclusive(grant_key(plan.keyspace(), role, above, ref));
}

Status put_grant(CatalogChange& change, const CatalogRef& role, std::span<const CatalogRef> above,
                 const CatalogRef& ref, std::span<const stored::CatalogPrivilege> privileges) {
  const Uuid& metalake = above.empty() ? ref.id : above.front().id;
  const RelationEnds ends{CatalogRelation::grant, role, ref};
  TRY_ASSIGN(const CatalogChange::Record record,
             change.record(grant_key(change.keyspace(), role, above, ref)));
  if (privileges.empty()) {
    change.remove(record);
    TRY(remove_relation(change, metalake, ends));
    return {};
  }
  stored::CatalogRelation grant;
  for (const stored::CatalogPrivilege& privilege : privileges) *grant.add_privileges() = privilege;
  change.put(record, encode_message(grant));
  return put_relation(change, metalake, ends);
}

Result<std::vector<stored::CatalogPrivilege>> decode_grant(ByteView value) {
  stored::CatalogRelation grant;
  TRY(decode_message(value, grant, "grant"));
  return std::vector<stored::CatalogPrivilege>(grant.privileges().begin(),
                                               grant.privileges().end());
}

Result<std::vector<CatalogRef>> plan_grants_move(CatalogPlan& plan, Tenant& tenant,
                                                 const EntityWay& way) {
  const Uuid& metalake = way.refs.front().id;
  const auto scan = [&](const ScanRequest& request, ScanVisitor visit) {
    return tenant.map().engine.scan(request, visit);
  };
  plan.shared(
      inverse_key(plan.keyspace(), metalake, {CatalogRelation::grant, CatalogRef(), way.ref()}));
  TRY_ASSIGN(std::vector<CatalogRef> roles,
             granted_roles(scan, plan.keyspace(), metalake, way.ref()));
  for (const CatalogRef& role : roles)
    plan.exclusive(grant_key(plan.keyspace(), role, way.above(), way.ref()));
  return roles;
}

Status move_grants(CatalogChange& change, std::span<const CatalogRef> planned, const EntityWay& way,
                   std::span<const CatalogRef> above) {
  if (std::ranges::equal(way.above(), above)) return {};
  const auto scan = [&](const ScanRequest& request, ScanVisitor visit) {
    return change.view().scan(request, visit);
  };
  TRY_ASSIGN(const std::vector<CatalogRef> roles,
             granted_roles(scan, change.keyspace(), way.refs.front().id, way.ref()));
  if (!std::ranges::equal(roles, planned)) return catalog_plan_outdated();
  for (const CatalogRef& role : roles) {
    TRY_ASSIGN(const CatalogChange::Record before,
               change.record(grant_key(change.keyspace(), role, way.above(), way.ref())));
    if (!before.found()) continue;
    TRY_ASSIGN(const CatalogChange::Record now,
               change.record(grant_key(change.keyspace(), role, above, way.ref())));
    change.put(now, before.value());
    change.remove(before);
  }
  return {};
}

}  // namespace trellis
