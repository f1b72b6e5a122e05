#include "catalog/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "catalog/relations.h"

namespace trellis {
namespace {

// An entity may be renamed or moved between the read of its name and that of its record.
constexpr unsigned loads_max = 16;

// Read at a time, and in all, of load_many.
constexpr size_t portion_names = 64;
constexpr size_t loaded_bytes_max = 64 * 1024 * 1024;

// Of any length, so that it orders among names as it does itself, and is no other name.
std::string_view cut_name(std::string_view name) {
  return name.substr(0, catalog_name_bytes_max + 1);
}

// Absent: it was renamed, moved or collected meanwhile.
Result<std::optional<Entity>> read_entity(Tenant& tenant, const EntityWay& way) {
  Value value;
  TRY(tenant.map().engine.get(entity_key(tenant.id(), way.above(), way.ref()), value));
  if (!value.found()) return std::optional<Entity>();
  TRY_ASSIGN(Entity entity, decode_entity(way.above(), way.ref(), value.bytes()));
  if (entity.name() != way.path.name()) return std::optional<Entity>();
  return std::optional(std::move(entity));
}

Result<Entity> find_entity(Tenant& tenant, const EntityPath& path) {
  for (unsigned i = 0; i < loads_max; i++) {
    TRY_ASSIGN(const EntityWay way, find_way(tenant, path));
    TRY(require(way, IfDisabled::itself_is_fine));
    TRY_ASSIGN(std::optional<Entity> entity, read_entity(tenant, way));
    if (entity) return std::move(*entity);
  }
  return Error{Code::unavailable, to_string(path) + " changes all the time: try again"};
}

// Appends what these names stand for in the parent of `way`; how many bytes it is.
Result<size_t> load_portion(Tenant& tenant, const EntityWay& way,
                            std::span<const std::string> names,
                            std::vector<std::optional<Entity>>& entities) {
  Engine& engine = tenant.map().engine;
  const CatalogType type = way.path.type;
  std::vector<Bytes> keys;
  for (const std::string& name : names)
    keys.push_back(name_key(tenant.id(), way.parent(), type, cut_name(name)));
  std::vector<Value> values(names.size());
  TRY(engine.multi_get(std::vector<ByteView>(keys.begin(), keys.end()), values));
  const size_t first = entities.size();
  entities.resize(first + names.size());
  for (size_t i = 0; i < names.size(); i++) {
    if (!values[i].found()) continue;
    TRY_ASSIGN(const NamedRef named, decode_named(type, values[i].bytes()));
    keys[i] = entity_key(tenant.id(), way.above(), named.ref);
    entities[first + i].emplace(Entity{named.ref, {}, {}});
  }
  TRY(engine.multi_get(std::vector<ByteView>(keys.begin(), keys.end()), values));
  size_t bytes = 0;
  for (size_t i = 0; i < names.size(); i++) {
    std::optional<Entity>& entity = entities[first + i];
    if (!entity) continue;
    if (values[i].found()) {
      TRY_ASSIGN(entity, decode_entity(way.above(), entity->ref, values[i].bytes()));
      bytes += values[i].bytes().size();
    }
    if (entity->name() == names[i]) continue;
    EntityPath path = way.path;  // it was renamed, moved or dropped meanwhile
    path.names.back() = names[i];
    auto now = find_entity(tenant, path);
    if (!now && now.error().code != Code::not_found) return now.error();
    entity = now ? std::optional(std::move(*now)) : std::nullopt;
  }
  return bytes;
}

// What only catalogs of one kind have, as Gravitino has it; functions are in all of them.
struct HomeOf {
  CatalogType type;
  std::string_view catalog_kind;
};
constexpr HomeOf homes[] = {{CatalogType::table, "relational"},
                            {CatalogType::view, "relational"},
                            {CatalogType::topic, "messaging"},
                            {CatalogType::fileset, "fileset"},
                            {CatalogType::model, "model"}};

// Whether what is to be made may stand in its catalog. Not in the transaction: no catalog ever
// changes its kind, and that the way leads to this one is looked at there.
Status check_home(Tenant& tenant, const EntityWay& way) {
  const auto* const home = std::ranges::find(homes, way.path.type, &HomeOf::type);
  if (home == std::end(homes)) return {};
  const auto above = std::span(way.refs).first(1);
  Value value;
  TRY(tenant.map().engine.get(entity_key(tenant.id(), above, way.refs[1]), value));
  if (!value.found()) return {};  // it is being collected: the transaction starts over
  TRY_ASSIGN(const Entity catalog, decode_entity(above, way.refs[1], value.bytes()));
  const std::string& kind = catalog.stored.catalog().type();
  if (kind.empty() || kind == home->catalog_kind) return {};
  return does_not_support(way.path.type);
}

std::vector<CatalogRef> columns_of(const Entity& entity) {
  std::vector<CatalogRef> columns;
  for (const stored::CatalogColumn& column : entity.stored.table().columns())
    columns.push_back(CatalogRef::column(entity.ref.number(), EntityId{column.id()}));
  std::sort(columns.begin(), columns.end());
  return columns;
}

// The tags of columns that an alter takes away. Which columns those are is known inside of the
// transaction only, so it starts over once, with a plan for them.
class TagsOfColumns {
 public:
  explicit TagsOfColumns(Tenant& tenant) : tenant_(tenant) {}

  Status plan(CatalogPlan& plan) {
    tags_.clear();
    const Uuid& metalake = plan.way().refs.front().id;
    for (const CatalogRef& column : columns_) {
      TRY_ASSIGN(std::vector<CatalogRef> tags,
                 related_from(tenant_, metalake, CatalogRelation::tag, column));
      plan_relation(plan, metalake, {CatalogRelation::tag, column, CatalogRef()});
      for (const CatalogRef& tag : tags)
        plan_relation(plan, metalake, {CatalogRelation::tag, column, tag});
      tags_.push_back(std::move(tags));
    }
    return {};
  }

  Status remove(CatalogChange& change, const std::vector<CatalogRef>& before, const Entity& after) {
    std::vector<CatalogRef> gone;
    const std::vector<CatalogRef> now = columns_of(after);
    std::set_difference(before.begin(), before.end(), now.begin(), now.end(),
                        std::back_inserter(gone));
    if (gone != columns_) {
      columns_ = std::move(gone);
      return catalog_plan_outdated();
    }
    for (size_t i = 0; i < columns_.size(); i++) {
      TRY_ASSIGN(const std::vector<CatalogRef> tags,
                 related_from(change, after.metalake(), CatalogRelation::tag, columns_[i]));
      if (tags != tags_[i]) return catalog_plan_outdated();
      for (const CatalogRef& tag : tags)
        TRY(remove_relation(change, after.metalake(), {CatalogRelation::tag, columns_[i], tag}));
    }
    return {};
  }

 private:
  Tenant& tenant_;
  std::vector<CatalogRef> columns_;            // that go, in order
  std::vector<std::vector<CatalogRef>> tags_;  // of each
};

}  // namespace

std::vector<EntityPath> CatalogExtra::paths_with(const EntityPath& first) const {
  std::vector<EntityPath> all{first};
  all.insert(all.end(), paths.begin(), paths.end());
  return all;
}

Catalog::Catalog(KeyBorders borders)
    : borders_(std::move(borders)), random_(std::random_device{}()) {}

Result<Entity> Catalog::create(const CatalogCall& call, const EntityPath& path,
                               stored::CatalogEntity draft, const CatalogExtra& extra) {
  TRY(check_path(path));
  TRY(call.tenant.admit(call.caller, Access::write, 0));  // before an id is taken
  TRY_ASSIGN(const CatalogRef ref, new_ref(call.tenant, path.type));
  const auto check = [](const EntityWay& way) -> Status {
    TRY(require_parent(way));
    return way.complete() ? Status(already_exists(way.path.type, way.path.name())) : Status();
  };
  const auto plan = [&](CatalogPlan& plan) -> Status {
    TRY(require_parent(plan.way()));
    TRY(check_home(call.tenant, plan.way()));
    TRY(check(plan.way()));
    plan.write_all_of(plan.way().above(), ref);
    if (path.type == CatalogType::metalake) plan.log_in(ref.id);
    return extra.plan ? extra.plan(plan, ref) : Status();
  };
  Entity entity{ref, {}, std::move(draft)};
  entity.stored.set_name(path.name());
  const auto run = [&](CatalogChange& change) -> Status {
    TRY(check(change.way()));
    const auto above = change.way().above();
    entity.above.assign(above.begin(), above.end());
    TRY(change.make(entity));
    TRY(change.log("create", entity));
    return extra.run ? extra.run(change, entity) : Status();
  };
  TRY(change_catalog(call, extra.paths_with(path), plan, run));
  return entity;
}

Result<Entity> Catalog::load(const CatalogCall& call, const EntityPath& path) {
  TRY(check_path(path));
  TRY(call.tenant.admit(call.caller, Access::read));
  return find_entity(call.tenant, path);
}

Result<std::vector<std::optional<Entity>>> Catalog::load_many(const CatalogCall& call,
                                                              const EntityPath& parent,
                                                              CatalogType type,
                                                              std::span<const std::string> names) {
  if (names.size() > catalog_load_many_max)
    return illegal_argument(
        fmt::format("{} names are over the limit of {}", names.size(), catalog_load_many_max));
  TRY_ASSIGN(const EntityPath child, child_of(parent, type, {}));
  TRY(call.tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(call.tenant, child));
  TRY(require_parent(way));
  std::vector<std::optional<Entity>> entities;
  size_t bytes = 0;
  for (size_t i = 0; i < names.size(); i += portion_names) {
    const auto portion = names.subspan(i, std::min(portion_names, names.size() - i));
    TRY_ASSIGN(const size_t portion_bytes, load_portion(call.tenant, way, portion, entities));
    bytes += portion_bytes;
    if (bytes > loaded_bytes_max)
      return illegal_argument(
          fmt::format("what has these names takes over {} bytes: ask for fewer", loaded_bytes_max));
  }
  return entities;
}

Result<CatalogListPage> Catalog::list(const CatalogCall& call, const EntityPath& parent,
                                      CatalogType type, const CatalogList& list,
                                      NameVisitor visit) {
  if (list.limit == 0 || list.limit > catalog_list_entries_max)
    return illegal_argument(fmt::format("a limit is 1 to {}", catalog_list_entries_max));
  TRY_ASSIGN(const EntityPath child, child_of(parent, type, {}));
  TRY(call.tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(call.tenant, child));
  TRY(require_parent(way));
  CatalogListPage listed;
  if (list.prefix.size() > catalog_name_bytes_max) return listed;
  const KeyspaceId keyspace = call.tenant.id();
  const size_t head = name_key(keyspace, way.parent(), type, {}).size();
  const Bytes prefix = name_key(keyspace, way.parent(), type, list.prefix);
  Bytes begin = prefix;
  if (!list.after.empty())
    begin =
        std::max(begin, successor(name_key(keyspace, way.parent(), type, cut_name(list.after))));
  Status bad;
  TRY_ASSIGN(const ScanPage page,
             call.tenant.map().engine.scan(
                 {.begin = begin, .end = prefix_end(prefix), .entries_max = list.limit},
                 [&](ByteView key, ByteView value) {
                   const auto named = decode_named(type, value);
                   if (!named) bad = named.error();
                   return named ? visit(key.substr(head), *named) : Visit::stop;
                 }));
  TRY(bad);
  return CatalogListPage{page.entries, page.resume.has_value()};
}

Result<Entity> Catalog::alter(const CatalogCall& call, const EntityPath& path,
                              FunctionRef<Status(Entity&)> change, const AlterOptions& options,
                              const CatalogExtra& extra) {
  TRY(check_path(path));
  std::vector<EntityPath> paths = extra.paths_with(path);
  const size_t schema = paths.size();  // the way to the new one
  if (options.new_schema) {
    if (catalog_depth(path.type) != 4)
      return illegal_argument(
          fmt::format("a {} cannot move to a schema", catalog_word(path.type).name));
    paths.push_back({CatalogType::schema, {path.names[0], path.names[1], *options.new_schema}});
  }
  std::vector<CatalogRef> roles_with_grants;  // that go along
  TagsOfColumns tags(call.tenant);
  const auto plan = [&](CatalogPlan& plan) -> Status {
    TRY(plan.require());
    const EntityWay& way = plan.way();
    plan.write_all_of(way.above(), way.ref());
    if (options.new_schema) {
      TRY(plan.require(schema));
      plan.write_all_of(plan.way(schema).refs, way.ref());
      TRY_ASSIGN(roles_with_grants, plan_grants_move(plan, call.tenant, way));
    }
    TRY(tags.plan(plan));
    return extra.plan ? extra.plan(plan, way.ref()) : Status();
  };
  Entity entity;
  const auto run = [&](CatalogChange& changing) -> Status {
    TRY(changing.require());
    TRY_ASSIGN(entity, changing.entity());
    TRY(check_tag(entity, options.if_match));
    const std::vector<CatalogRef> columns = columns_of(entity);
    TRY(change(entity));
    TRY(tags.remove(changing, columns, entity));
    EntityPath now = path;
    now.names.back() = entity.name();
    if (options.new_schema) {
      TRY(changing.require(schema));
      entity.above = changing.way(schema).refs;
      now.names[2] = *options.new_schema;
      TRY(move_grants(changing, roles_with_grants, changing.way(), entity.above));
    }
    TRY(changing.put(entity));
    TRY(changing.log("alter", entity, now, [&](stored::CatalogChange& logged) {
      if (now == path) return;
      for (const std::string& name : path.names) logged.add_names_before(name);
    }));
    return extra.run ? extra.run(changing, entity) : Status();
  };
  TRY(change_catalog(call, paths, plan, run));
  return entity;
}

Status Catalog::set_in_use(const CatalogCall& call, const EntityPath& path, bool in_use,
                           const std::string& if_match) {
  TRY(check_path(path));
  if (!catalog_type_has_uuid(path.type))
    return illegal_argument(fmt::format("a {} is always in use", catalog_word(path.type).name));
  const auto plan = [&](CatalogPlan& plan) -> Status {
    TRY(plan.require(0, IfDisabled::itself_is_fine));
    plan.write_all_of(plan.way().above(), plan.way().ref());
    return {};
  };
  const auto run = [&](CatalogChange& change) -> Status {
    TRY(change.require(0, IfDisabled::itself_is_fine));
    TRY_ASSIGN(Entity entity, change.entity());
    TRY(check_tag(entity, if_match));
    if (entity.stored.disabled() == !in_use) return {};
    entity.stored.set_disabled(!in_use);
    TRY(change.put(entity));
    return change.log(in_use ? "enable" : "disable", entity);
  };
  return change_catalog(call, std::span(&path, 1), plan, run);
}

}  // namespace trellis
