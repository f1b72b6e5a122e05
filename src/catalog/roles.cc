#include "catalog/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "catalog/name_rules.h"
#include "catalog/relations.h"

namespace trellis {
namespace {

constexpr size_t names_at_once_max = 1'000;

// Where a role's privileges on a thing stand.
struct GrantPlace {
  CatalogRef above;
  CatalogRef ref;
  bool operator==(const GrantPlace&) const = default;
};

Bytes grants_prefix(KeyspaceId keyspace, const CatalogRef& role) {
  Bytes key = encode(CatalogGrantKey{keyspace, role.number(), CatalogRef(), CatalogRef()});
  key.resize(key.size() - 2 * encode_ref({}).size() - catalog_separator.bytes.size());
  return key;
}

Status visit_grants(RelationGet scan, KeyspaceId keyspace, const CatalogRef& role,
                    FunctionRef<Status(const GrantPlace&, ByteView)> visit) {
  const Bytes prefix = grants_prefix(keyspace, role);
  std::optional<Bytes> from = prefix;
  Status bad;
  while (from) {
    TRY_ASSIGN(ScanPage page,
               scan({.begin = *from, .end = prefix_end(prefix)}, [&](ByteView key, ByteView value) {
                 const auto grant = decode<CatalogGrantKey>(key);
                 bad = grant ? visit({grant->above, grant->ref}, value) : Status(grant.error());
                 return bad ? Visit::go_on : Visit::stop;
               }));
    TRY(bad);
    from = std::move(page.resume);
  }
  return {};
}

Result<std::vector<GrantPlace>> places_of_grants(RelationGet scan, KeyspaceId keyspace,
                                                 const CatalogRef& role) {
  std::vector<GrantPlace> places;
  TRY(visit_grants(scan, keyspace, role, [&](const GrantPlace& place, ByteView) -> Status {
    places.push_back(place);
    return {};
  }));
  return places;
}

// The metalake, and what it stands in if that is another.
std::vector<CatalogRef> above_of(const CatalogRef& metalake, const GrantPlace& place) {
  if (place.ref.type == CatalogType::metalake) return {};
  if (place.above == metalake) return {metalake};
  return {metalake, place.above};
}

Result<SecurableObject> read_object(const std::string& metalake, const json::value& value) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(value, "securable object"));
  TRY_ASSIGN(const std::string full_name, fields.required_text("fullName"));
  TRY_ASSIGN(const std::string type, fields.required_text("type"));
  SecurableObject object;
  TRY_ASSIGN(object.path, object_named(metalake, type, full_name));
  TRY_ASSIGN(object.privileges, read_privileges(fields.find("privileges")));
  TRY(fields.finish());
  return object;
}

Result<std::vector<SecurableObject>> read_objects(const std::string& metalake,
                                                  RequestFields& fields, std::string_view member) {
  TRY_ASSIGN(const std::vector<const json::value*> list, fields.list(member));
  if (list.size() > names_at_once_max)
    return illegal_argument(fmt::format("{} has over {} objects", member, names_at_once_max));
  std::vector<SecurableObject> objects;
  for (const json::value* each : list) {
    TRY_ASSIGN(SecurableObject object, read_object(metalake, *each));
    for (const SecurableObject& other : objects)
      if (other.path == object.path)
        return illegal_argument(
            fmt::format("Doesn't support specifying duplicated securable objects {} type {}",
                        to_string(object.path), catalog_word(object.path.type).name));
    objects.push_back(std::move(object));
  }
  return objects;
}

// What can be seen before the transaction: what the privileges bind to never changes.
Status check_object(Catalog& catalog, const CatalogCall& call, const SecurableObject& object) {
  for (const stored::CatalogPrivilege& privilege : object.privileges)
    TRY(check_binding(privilege, object.path));
  if (object.path.type != CatalogType::catalog && object.path.type != CatalogType::schema)
    return {};
  const EntityPath path{CatalogType::catalog, {object.path.names[0], object.path.names[1]}};
  const auto loaded = catalog.load(call, path);
  if (!loaded) return as_object(Error(loaded.error()));
  const std::string& type = loaded->stored.catalog().type();
  for (const stored::CatalogPrivilege& privilege : object.privileges) {
    const std::string_view needed = catalog_type_for(privilege);
    if (!needed.empty() && !type.empty() && needed != type)
      return illegal_privilege(fmt::format("Catalog {} type {} doesn't support privilege {}",
                                           to_string(path), type, privilege.name()));
  }
  return {};
}

// With those that are there already.
Result<std::vector<stored::CatalogPrivilege>> merged(
    GrantKind kind, std::vector<stored::CatalogPrivilege> held,
    std::span<const stored::CatalogPrivilege> given) {
  if (kind == GrantKind::replace)
    return std::vector<stored::CatalogPrivilege>(given.begin(), given.end());
  for (const stored::CatalogPrivilege& privilege : given) {
    const auto same = std::ranges::find_if(
        held, [&](const auto& other) { return other.name() == privilege.name(); });
    const bool is_equal = same != held.end() && same->deny() == privilege.deny();
    if (kind == GrantKind::revoke) {
      if (is_equal) held.erase(same);
    } else if (same == held.end()) {
      held.push_back(privilege);
    } else if (!is_equal) {
      return illegal_privilege(
          fmt::format("Doesn't support duplicated privilege name {} with different condition",
                      privilege.name()));
    }
  }
  return held;
}

// One change of what a role may do: the role is path 0, each object one more.
class Granting {
 public:
  Granting(const CatalogCall& call, const EntityPath& role, GrantKind kind,
           std::span<const SecurableObject> objects, const std::string& if_match)
      : call_(call), kind_(kind), objects_(objects), if_match_(if_match), paths_{role} {
    for (const SecurableObject& object : objects) paths_.push_back(object.path);
  }

  Result<Entity> run() {
    TRY(change_catalog(
        call_, paths_, [&](CatalogPlan& plan) { return this->plan(plan); },
        [&](CatalogChange& change) { return this->change(change); }));
    return std::move(role_);
  }

 private:
  Status plan(CatalogPlan& plan) {
    TRY(plan.require());
    plan.write_entity();
    const CatalogRef& role = plan.way().ref();
    for (size_t i = 1; i < paths_.size(); i++) {
      TRY(as_object(plan.require(i, IfDisabled::itself_is_fine)));
      plan_grant(plan, role, plan.way(i).above(), plan.way(i).ref());
    }
    places_.clear();
    if (kind_ != GrantKind::replace) return {};
    Engine& engine = call_.tenant.map().engine;
    const auto scan = [&](const ScanRequest& request, ScanVisitor visit) {
      return engine.scan(request, visit);
    };
    TRY_ASSIGN(places_, places_of_grants(scan, plan.keyspace(), role));
    plan.exclusive(grant_key(plan.keyspace(), role, {}, CatalogRef()));
    for (const GrantPlace& place : places_)
      plan_grant(plan, role, above_of(plan.way().refs.front(), place), place.ref);
    return {};
  }

  Status change(CatalogChange& change) {
    TRY(change.require());
    TRY_ASSIGN(role_, change.entity());
    TRY(check_tag(role_, if_match_));
    if (kind_ == GrantKind::replace) TRY(remove_others(change));
    size_t added = 0;
    for (size_t i = 1; i < paths_.size(); i++) {
      TRY(as_object(change.require(i, IfDisabled::itself_is_fine)));
      const EntityWay& way = change.way(i);
      TRY_ASSIGN(const CatalogChange::Record record,
                 change.record(grant_key(change.keyspace(), role_.ref, way.above(), way.ref())));
      std::vector<stored::CatalogPrivilege> held;
      if (record.found()) {
        TRY_ASSIGN(held, decode_grant(record.value()));
      } else {
        added++;
      }
      TRY_ASSIGN(const auto now, merged(kind_, std::move(held), objects_[i - 1].privileges));
      TRY(put_grant(change, role_.ref, way.above(), way.ref(), now));
    }
    if (kind_ == GrantKind::grant && added > 0) TRY(check_room(change, added));
    TRY(change.put(role_));
    return change.log(kind_ == GrantKind::revoke ? "revoke" : "grant", role_);
  }

  // Whether the role may have so many objects as it has now; so all of them can be answered.
  Status check_room(CatalogChange& change, size_t added) {
    const Bytes prefix = grants_prefix(change.keyspace(), role_.ref);
    size_t count = 0;
    std::optional<Bytes> from = prefix;
    while (from && count <= role_objects_max) {
      TRY_ASSIGN(
          ScanPage page,
          change.view().scan(
              {.begin = *from, .end = prefix_end(prefix), .entries_max = role_objects_max + 1},
              [](ByteView, ByteView) { return Visit::go_on; }));
      count += page.entries;
      from = std::move(page.resume);
    }
    if (count <= role_objects_max) return {};
    return illegal_argument(
        fmt::format("A role has privileges on at most {} objects; these are {} "
                    "more",
                    role_objects_max, added));
  }

  Status remove_others(CatalogChange& change) {
    const auto scan = [&](const ScanRequest& request, ScanVisitor visit) {
      return change.view().scan(request, visit);
    };
    TRY_ASSIGN(const auto places, places_of_grants(scan, change.keyspace(), role_.ref));
    if (places != places_) return catalog_plan_outdated();
    for (const GrantPlace& place : places) {
      const auto is_kept = [&](size_t i) { return change.way(i).ref() == place.ref; };
      bool kept = false;
      for (size_t i = 1; i < paths_.size(); i++)
        kept = kept || (change.way(i).complete() && is_kept(i));
      if (kept) continue;
      TRY(put_grant(change, role_.ref, above_of(change.way().refs.front(), place), place.ref, {}));
    }
    return {};
  }

  const CatalogCall& call_;
  const GrantKind kind_;
  const std::span<const SecurableObject> objects_;
  const std::string& if_match_;
  std::vector<EntityPath> paths_;
  std::vector<GrantPlace> places_;
  Entity role_;
};

}  // namespace

Result<EntityPath> object_named(const std::string& metalake, std::string_view type,
                                std::string_view full_name) {
  const std::string lowered = ascii_lowered(type);
  const auto* const word = std::ranges::find(catalog_types, lowered, &Word::name);
  if (word == std::end(catalog_types))
    return illegal_argument(fmt::format("there is no type {}", quote(type)));
  EntityPath path{static_cast<CatalogType>(word - std::begin(catalog_types)), {metalake}};
  if (path.type == CatalogType::metalake) {
    if (full_name != metalake) return no_such(CatalogType::metalake, full_name);
    return path;
  }
  for (size_t begin = 0; begin <= full_name.size();) {
    const size_t dot = std::min(full_name.find('.', begin), full_name.size());
    path.names.emplace_back(full_name.substr(begin, dot - begin));
    begin = dot + 1;
  }
  if (path.names.size() != catalog_depth(path.type)) {
    return illegal_argument(fmt::format("the full name of a {} has {} names joined by dots, not {}",
                                        catalog_word(path.type).name, catalog_depth(path.type) - 1,
                                        quote(full_name)));
  }
  return path;
}

Result<RoleDraft> read_role(const std::string& metalake, const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  RoleDraft draft;
  TRY_ASSIGN(*draft.entity.mutable_name(), fields.required_text("name"));
  TRY(check_name(CatalogType::role, draft.entity.name()));
  TRY_ASSIGN(const TextMap properties, fields.text_map("properties"));
  draft.entity.mutable_properties()->insert(properties.begin(), properties.end());
  draft.entity.mutable_role();
  TRY_ASSIGN(draft.objects, read_objects(metalake, fields, "securableObjects"));
  TRY(fields.finish());
  return draft;
}

Result<std::vector<SecurableObject>> read_overrides(const std::string& metalake,
                                                    const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  if (fields.find("overrides") == nullptr) return illegal_argument("overrides cannot be null");
  TRY_ASSIGN(std::vector<SecurableObject> objects, read_objects(metalake, fields, "overrides"));
  TRY(fields.finish());
  return objects;
}

Result<std::vector<stored::CatalogPrivilege>> read_grant(const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  TRY_ASSIGN(std::vector<stored::CatalogPrivilege> privileges,
             read_privileges(fields.find("privileges")));
  TRY(fields.finish());
  return privileges;
}

Result<std::vector<std::string>> read_role_names(const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  TRY_ASSIGN(std::vector<std::string> names, fields.text_list("roleNames"));
  TRY(fields.finish());
  if (names.empty() || names.size() > names_at_once_max)
    return illegal_argument(
        fmt::format("\"roleNames\" field is required and has 1 to {}", names_at_once_max));
  return names;
}

Result<stored::CatalogEntity> read_principal(CatalogType type, const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  stored::CatalogEntity draft;
  TRY_ASSIGN(*draft.mutable_name(), fields.required_text("name"));
  TRY(check_name(type, draft.name()));
  TRY_ASSIGN(const std::optional<std::string> external_id, fields.text("externalId"));
  TRY_ASSIGN(const bool enabled, fields.flag("enabled", true));
  TRY(fields.finish());
  draft.mutable_user()->set_external_id(external_id.value_or(""));
  draft.mutable_user()->set_disabled(!enabled);
  return draft;
}

Result<Entity> create_role(Catalog& catalog, const CatalogCall& call, const EntityPath& path,
                           RoleDraft draft, CatalogExtra extra) {
  const auto as_illegal = [](Status status) -> Status {
    if (status || status.error().code != Code::not_found) return status;
    return Error{Code::invalid, status.error().message, "illegal_metadata_object"};
  };
  for (const SecurableObject& object : draft.objects)
    TRY(as_illegal(check_object(catalog, call, object)));
  CatalogExtra whole;
  for (const SecurableObject& object : draft.objects) whole.paths.push_back(object.path);
  whole.paths.insert(whole.paths.end(), extra.paths.begin(), extra.paths.end());
  whole.plan = [&](CatalogPlan& plan, const CatalogRef& ref) -> Status {
    for (size_t i = 1; i <= draft.objects.size(); i++) {
      TRY(as_illegal(plan.require(i, IfDisabled::itself_is_fine)));
      plan_grant(plan, ref, plan.way(i).above(), plan.way(i).ref());
    }
    return extra.plan ? extra.plan(plan, ref) : Status();
  };
  whole.run = [&](CatalogChange& change, const Entity& role) -> Status {
    for (size_t i = 1; i <= draft.objects.size(); i++) {
      TRY(as_illegal(change.require(i, IfDisabled::itself_is_fine)));
      TRY(put_grant(change, role.ref, change.way(i).above(), change.way(i).ref(),
                    draft.objects[i - 1].privileges));
    }
    return extra.run ? extra.run(change, role) : Status();
  };
  return catalog.create(call, path, draft.entity, whole);
}

Result<std::vector<SecurableObject>> objects_of_role(Catalog& catalog, Tenant& tenant,
                                                     const Entity& role) {
  const auto scan = [&](const ScanRequest& request, ScanVisitor visit) {
    return tenant.map().engine.scan(request, visit);
  };
  std::vector<std::pair<CatalogRef, SecurableObject>> found;
  const auto take = [&](const GrantPlace& place, ByteView value) -> Status {
    TRY_ASSIGN(std::vector<stored::CatalogPrivilege> privileges, decode_grant(value));
    found.push_back({place.ref, {{}, std::move(privileges)}});
    return {};
  };
  TRY(visit_grants(scan, tenant.id(), role.ref, take));
  std::vector<SecurableObject> objects;
  for (auto& [ref, object] : found) {
    TRY_ASSIGN(std::optional<EntityPath> path, catalog.path_of(tenant, ref));
    if (!path) continue;
    object.path = std::move(*path);
    objects.push_back(std::move(object));
  }
  return objects;
}

Result<Entity> change_grants(Catalog& catalog, const CatalogCall& call, const EntityPath& role,
                             GrantKind kind, std::span<const SecurableObject> objects,
                             const std::string& if_match) {
  for (const SecurableObject& object : objects) TRY(check_object(catalog, call, object));
  return Granting(call, role, kind, objects, if_match).run();
}

Result<Entity> change_roles(const CatalogCall& call, const EntityPath& principal,
                            std::span<const std::string> names, bool grant,
                            const std::string& if_match) {
  std::vector<EntityPath> paths{principal};
  for (const std::string& name : std::set<std::string>(names.begin(), names.end()))
    paths.push_back({CatalogType::role, {principal.names.front(), name}});
  const auto require_role = [](Status status) -> Status {
    if (status || status.error().reason != "no_such_role") return status;
    return Error{Code::invalid, status.error().message, "illegal_role"};
  };
  const auto ends = [](const EntityWay& who, const EntityWay& role) {
    return RelationEnds{CatalogRelation::role, who.ref(), role.ref()};
  };
  const auto plan = [&](CatalogPlan& plan) -> Status {
    TRY(plan.require());
    plan.write_entity();
    for (size_t i = 1; i < paths.size(); i++) {
      TRY(require_role(plan.require(i)));
      plan_relation(plan, plan.way().refs.front().id, ends(plan.way(), plan.way(i)));
    }
    return {};
  };
  Entity entity;
  const auto run = [&](CatalogChange& change) -> Status {
    TRY(change.require());
    TRY_ASSIGN(entity, change.entity());
    TRY(check_tag(entity, if_match));
    for (size_t i = 1; i < paths.size(); i++) {
      TRY(require_role(change.require(i)));
      const RelationEnds both = ends(change.way(), change.way(i));
      const Uuid& metalake = entity.metalake();
      if (grant)
        TRY(put_relation(change, metalake, both));
      else
        TRY(remove_relation(change, metalake, both));
    }
    TRY(change.put(entity));
    return change.log(grant ? "grant" : "revoke", entity);
  };
  TRY(change_catalog(call, paths, plan, run));
  return entity;
}

Result<std::vector<std::string>> role_names(Catalog& catalog, Tenant& tenant,
                                            const CatalogRef& metalake,
                                            const CatalogRef& principal) {
  TRY_ASSIGN(const std::vector<CatalogRef> refs,
             related_from(tenant, metalake.id, CatalogRelation::role, principal));
  std::vector<std::string> names;
  TRY(visit_live_members(catalog, tenant, metalake, refs,
                         [&](const Entity& role) { names.push_back(role.name()); }));
  return names;
}

Result<std::vector<RoleName>> roles_of_object(Catalog& catalog, const CatalogCall& call,
                                              const EntityPath& object) {
  Tenant& tenant = call.tenant;
  TRY(tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(tenant, object));
  TRY(as_object(require(way, IfDisabled::itself_is_fine)));
  const CatalogRef& metalake = way.refs.front();
  std::vector<CatalogRef> refs;
  TRY(related_to(tenant, metalake.id, CatalogRelation::grant, way.ref(),
                 {.entries_max = related_max}, refs));
  std::vector<RoleName> roles;
  TRY(visit_live_members(catalog, tenant, metalake, refs, [&](const Entity& role) {
    roles.push_back({role.ref, role.name()});
  }));
  return roles;
}

}  // namespace trellis
