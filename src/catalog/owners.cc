#include "catalog/owners.h"

#include <fmt/format.h>

#include <algorithm>

#include "catalog/relations.h"

namespace trellis {
namespace {

Status check_owned(const EntityPath& object) {
  switch (object.type) {
    case CatalogType::user:
    case CatalogType::group:
    case CatalogType::column:
    case CatalogType::broker:
      return illegal_argument(fmt::format("a {} has no owner", catalog_word(object.type).name));
    default: return {};
  }
}

Result<CatalogExtra> metalake_owned_by_creator(Catalog& catalog, const CatalogCall& call) {
  TRY_ASSIGN(const CatalogRef user, catalog.new_ref(call.tenant, CatalogType::user));
  CatalogExtra extra;
  extra.plan = [user](CatalogPlan& plan, const CatalogRef& metalake) -> Status {
    plan.write_all_of(std::span(&metalake, 1), user);
    plan_relation(plan, metalake.id, {CatalogRelation::owner, metalake, user});
    return {};
  };
  extra.run = [user](CatalogChange& change, const Entity& metalake) -> Status {
    Entity first{user, {metalake.ref}, {}};
    first.stored.set_name(change.call().user);
    first.stored.mutable_user();
    TRY(change.make(first));
    return put_relation(change, metalake.ref.id, {CatalogRelation::owner, metalake.ref, user});
  };
  return extra;
}

}  // namespace

Result<std::optional<EntityPath>> owner_of(Catalog& catalog, const CatalogCall& call,
                                           const EntityPath& object) {
  TRY(check_owned(object));
  Tenant& tenant = call.tenant;
  TRY(tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(tenant, object));
  TRY(as_object(require(way, IfDisabled::itself_is_fine)));
  const CatalogRef& metalake = way.refs.front();
  TRY_ASSIGN(const std::vector<CatalogRef> refs,
             related_from(tenant, metalake.id, CatalogRelation::owner, way.ref()));
  TRY_ASSIGN(const auto owners, live_members(catalog, tenant, metalake, refs));
  if (owners.empty()) return std::optional<EntityPath>();
  const Entity& owner = owners.front();
  return std::optional(EntityPath{owner.ref.type, {object.names.front(), owner.name()}});
}

Status set_owner(const CatalogCall& call, const EntityPath& object, const EntityPath& owner) {
  TRY(check_owned(object));
  const EntityPath paths[] = {object, owner};
  std::vector<CatalogRef> planned;
  const auto ends = [](const EntityWay& way, const CatalogRef& owner) {
    return RelationEnds{CatalogRelation::owner, way.ref(), owner};
  };
  const auto plan = [&](CatalogPlan& plan) -> Status {
    TRY(as_object(plan.require(0, IfDisabled::itself_is_fine)));
    TRY(plan.require(1));
    plan.read_entity();
    const EntityWay& way = plan.way();
    const Uuid& metalake = way.refs.front().id;
    TRY_ASSIGN(planned, related_from(call.tenant, metalake, CatalogRelation::owner, way.ref()));
    for (const CatalogRef& before : planned) plan_relation(plan, metalake, ends(way, before));
    plan_relation(plan, metalake, ends(way, plan.way(1).ref()));
    return {};
  };
  const auto run = [&](CatalogChange& change) -> Status {
    TRY(as_object(change.require(0, IfDisabled::itself_is_fine)));
    TRY(change.require(1));
    const EntityWay& way = change.way();
    const Uuid& metalake = way.refs.front().id;
    TRY_ASSIGN(const std::vector<CatalogRef> owners,
               related_from(change, metalake, CatalogRelation::owner, way.ref()));
    if (owners != planned) return catalog_plan_outdated();
    for (const CatalogRef& before : owners)
      if (before != change.way(1).ref()) TRY(remove_relation(change, metalake, ends(way, before)));
    TRY(put_relation(change, metalake, ends(way, change.way(1).ref())));
    TRY_ASSIGN(const Entity entity, change.entity());
    return change.log("set_owner", entity);
  };
  return change_catalog(call, paths, plan, run);
}

Result<EntityPath> read_owner(const std::string& metalake, const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  TRY_ASSIGN(const std::string name, fields.required_text("name"));
  TRY_ASSIGN(const std::string type, fields.required_text("type"));
  TRY(fields.finish());
  const std::string kind = ascii_lowered(type);
  if (kind != "user" && kind != "group")
    return illegal_argument(fmt::format("an owner is a user or group, not a {}", quote(type)));
  return EntityPath{kind == "user" ? CatalogType::user : CatalogType::group, {metalake, name}};
}

Result<CatalogExtra> owned_by_creator(Catalog& catalog, const CatalogCall& call,
                                      const EntityPath& path, size_t before) {
  if (path.type == CatalogType::metalake) return metalake_owned_by_creator(catalog, call);
  CatalogExtra extra;
  extra.paths.push_back({CatalogType::user, {path.names.front(), call.user}});
  const auto check = [](const EntityWay& user) -> Status {
    if (user.complete()) return {};
    return forbidden(fmt::format("{} is no user of the metalake", quote(user.path.name())));
  };
  extra.plan = [before, check](CatalogPlan& plan, const CatalogRef& ref) -> Status {
    const EntityWay& user = plan.way(before);
    TRY(check(user));
    plan_relation(plan, user.refs.front().id, {CatalogRelation::owner, ref, user.ref()});
    return {};
  };
  extra.run = [before, check](CatalogChange& change, const Entity& entity) -> Status {
    const EntityWay& user = change.way(before);
    TRY(check(user));
    return put_relation(change, entity.metalake(),
                        {CatalogRelation::owner, entity.ref, user.ref()});
  };
  return extra;
}

CatalogExtra unless_it_owns_metalake() {
  const auto ends = [](const EntityWay& way, const CatalogRef& ref) {
    return RelationEnds{CatalogRelation::owner, way.refs.front(), ref};
  };
  CatalogExtra extra;
  extra.plan = [ends](CatalogPlan& plan, const CatalogRef& ref) -> Status {
    plan_relation(plan, plan.way().refs.front().id, ends(plan.way(), ref));
    return {};
  };
  extra.run = [ends](CatalogChange& change, const Entity& entity) -> Status {
    TRY_ASSIGN(const auto owns,
               read_relation(change, entity.metalake(), ends(change.way(), entity.ref)));
    if (!owns) return {};
    return illegal_argument(fmt::format("Cannot remove {} {}: it is the owner of the metalake",
                                        catalog_word(entity.ref.type).name, quote(entity.name())));
  };
  return extra;
}

}  // namespace trellis
