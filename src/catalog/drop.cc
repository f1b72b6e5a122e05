// Dropping anything is one small transaction, however much stands below, and so is taking it back.
#include <fmt/format.h>

#include <algorithm>

#include "catalog/catalog.h"
#include "codec/stored_message.h"

namespace trellis {
namespace {

// What must not stand in it if it is dropped without force.
std::span<const CatalogType> contents_of(CatalogType type) {
  static constexpr CatalogType in_schema[] = {CatalogType::table,   CatalogType::topic,
                                              CatalogType::fileset, CatalogType::model,
                                              CatalogType::view,    CatalogType::function};
  static constexpr CatalogType in_catalog[] = {CatalogType::schema};
  static constexpr CatalogType in_metalake[] = {CatalogType::catalog};
  switch (type) {
    case CatalogType::metalake: return in_metalake;
    case CatalogType::catalog: return in_catalog;
    case CatalogType::schema: return in_schema;
    default: return {};
  }
}

Status check_droppable(CatalogChange& change, const Entity& entity) {
  const CatalogType type = entity.ref.type;
  if (catalog_type_has_uuid(type) && !entity.stored.disabled()) return in_use(type, entity.name());
  for (const CatalogType content : contents_of(type)) {
    const Bytes prefix = name_key(change.keyspace(), entity.ref, content, {});
    TRY_ASSIGN(const ScanPage page,
               change.view().scan({.begin = prefix, .end = prefix_end(prefix), .entries_max = 1},
                                  [](ByteView, ByteView) { return Visit::stop; }));
    if (page.entries != 0) return non_empty(type, entity.name());
  }
  return {};
}

// What is missing is not there, and so not dropped; but it is an error if the catalog that it
// should stand in, or the metalake of anything else than a catalog, is missing. Whether it is
// there.
Result<bool> is_there_to_drop(const EntityWay& way) {
  const size_t above = way.path.names.size() - 1;
  const size_t needed = way.path.type == CatalogType::catalog ? 0 : std::min<size_t>(above, 2);
  if (way.refs.size() < needed) TRY(require(way));
  for (size_t i = 0; i < std::min(above, way.refs.size()); i++)
    if (way.disabled[i])
      return not_in_use(catalog_type_at(way.path.type, i + 1), way.path.names[i]);
  return way.complete();
}

Bytes dropped_key(KeyspaceId keyspace, const Entity& entity, uint64_t due_ms) {
  const CatalogRef parent = entity.above.empty() ? CatalogRef() : entity.above.back();
  return encode(
      CatalogDroppedKey{keyspace, parent, entity.ref.type, entity.name(), due_ms, entity.ref});
}

// What the keys of all begin with that were dropped in `parent`, of that name.
Bytes dropped_prefix(KeyspaceId keyspace, const CatalogRef& parent, CatalogType type,
                     std::string_view name) {
  Bytes prefix = encode(CatalogDroppedKey{keyspace, parent, type, name, 0, {}});
  const Bytes behind_name = Bytes(8, '\0') + encode_ref({});
  prefix.resize(prefix.size() - behind_name.size());
  return prefix;
}

struct LastDropped {
  CatalogRef ref;
  uint64_t due_ms = 0;
};

// Under the name that the way ends with. Map is a View or an Engine.
template <class Map>
Result<LastDropped> last_dropped(Map& map, KeyspaceId keyspace, const EntityWay& way) {
  const std::string& name = way.path.name();
  const Bytes prefix = dropped_prefix(keyspace, way.parent(), way.path.type, name);
  Result<LastDropped> last = no_such(way.path.type, name);
  if (name.size() > catalog_name_bytes_max) return last;
  const auto take = [&](ByteView key, ByteView) {
    Bytes scratch;
    const auto decoded = decode<CatalogDroppedKey>(key, scratch);
    if (decoded)
      last = LastDropped{decoded->ref, decoded->due_ms};
    else
      last = decoded.error();
    return Visit::stop;
  };
  TRY(map.scan({.begin = prefix, .end = prefix_end(prefix), .reverse = true, .entries_max = 1},
               take));
  return last;
}

}  // namespace

Result<bool> Catalog::drop(const CatalogCall& call, const EntityPath& path,
                           const DropOptions& options, const CatalogExtra& extra) {
  TRY(check_path(path));
  const auto plan = [&](CatalogPlan& plan) -> Status {
    const EntityWay& way = plan.way();
    if (!way.complete()) return {};
    plan.read_entity();
    plan.exclusive(name_key(plan.keyspace(), way.parent(), path.type, {}));
    plan.exclusive(dropped_prefix(plan.keyspace(), way.parent(), path.type, ""));
    if (!options.force && !contents_of(path.type).empty())
      plan.shared(name_key(plan.keyspace(), way.ref(), contents_of(path.type).front(), {}));
    return extra.plan ? extra.plan(plan, way.ref()) : Status();
  };
  bool dropped = false;
  const auto run = [&](CatalogChange& change) -> Status {
    dropped = false;
    const EntityWay& way = change.way();
    TRY_ASSIGN(const bool is_there, is_there_to_drop(way));
    if (!is_there) return {};
    TRY_ASSIGN(const Entity entity, change.entity());
    TRY(check_tag(entity, options.if_match));
    if (!options.force) TRY(check_droppable(change, entity));
    TRY_ASSIGN(const CatalogChange::Record named,
               change.record(name_key(change.keyspace(), way.parent(), path.type, entity.name())));
    change.remove(named);
    change.frees();
    stored::CatalogDropped message;
    message.set_by(call.user);
    change.put({dropped_key(change.keyspace(), entity, change.now_ms()), Value()},
               encode_message(message));
    change.view().leave_garbage(change.now_ms(), encode_ref(entity.ref), 0);
    TRY(change.log("drop", entity));
    dropped = true;
    return extra.run ? extra.run(change, entity) : Status();
  };
  TRY(change_catalog(call, extra.paths_with(path), plan, run));
  return dropped;
}

Result<PageStart> Catalog::list_dropped(const CatalogCall& call, const EntityPath& parent,
                                        CatalogType type, const PageRequest& page,
                                        FunctionRef<void(const DroppedEntity&)> visit) {
  TRY_ASSIGN(const EntityPath child, child_of(parent, type, {}));
  TRY(call.tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(call.tenant, child));
  TRY(require_parent(way));
  if (page.prefix.size() > catalog_name_bytes_max) return PageStart();
  Bytes prefix = dropped_prefix(call.tenant.id(), way.parent(), type, page.prefix);
  constexpr size_t end_of_name = 2;
  prefix.resize(prefix.size() - end_of_name);
  const auto take = [&](ByteView key, ByteView value) -> Status {
    Bytes scratch;
    stored::CatalogDropped message;
    TRY_ASSIGN(const auto decoded, decode<CatalogDroppedKey>(key, scratch));
    TRY(decode_message(value, message, "note of what was dropped"));
    visit({decoded.ref, std::string(decoded.name), decoded.due_ms, message.by()});
    return {};
  };
  return read_record_page(call.tenant, prefix, prefix_end(prefix), page, take);
}

Result<Entity> Catalog::undelete(const CatalogCall& call, const EntityPath& path) {
  TRY(check_path(path));
  const auto check = [](const EntityWay& way) -> Status {
    TRY(require_parent(way));
    return way.complete() ? Status(already_exists(way.path.type, way.path.name())) : Status();
  };
  CatalogRef planned;
  const auto plan = [&](CatalogPlan& plan) -> Status {
    const EntityWay& way = plan.way();
    TRY(check(way));
    TRY_ASSIGN(const LastDropped last,
               last_dropped(call.tenant.map().engine, plan.keyspace(), way));
    planned = last.ref;
    plan.exclusive(entity_key(plan.keyspace(), way.above(), planned));
    plan.exclusive(name_key(plan.keyspace(), way.parent(), path.type, {}));
    plan.exclusive(dropped_prefix(plan.keyspace(), way.parent(), path.type, ""));
    if (path.type == CatalogType::metalake) plan.log_in(planned.id);
    return {};
  };
  Entity entity;
  const auto run = [&](CatalogChange& change) -> Status {
    const EntityWay& way = change.way();
    TRY(check(way));
    TRY_ASSIGN(const LastDropped last, last_dropped(change.view(), change.keyspace(), way));
    if (last.ref != planned) return catalog_plan_outdated();
    TRY_ASSIGN(entity, change.read(way.above(), last.ref));
    TRY_ASSIGN(const CatalogChange::Record noted,
               change.record(dropped_key(change.keyspace(), entity, last.due_ms)));
    change.remove(noted);
    change.view().forget_garbage(last.due_ms, encode_ref(entity.ref));
    TRY(change.put_name(entity));
    TRY(change.put(entity));
    return change.log("undelete", entity);
  };
  TRY(change_catalog(call, std::span(&path, 1), plan, run));
  return entity;
}

}  // namespace trellis
