// Ids of new things, and from ids back to names.
#include "catalog/catalog.h"
#include "catalog/counter.h"

namespace trellis {
namespace {

// So many ids are taken at a time. What is left of them when the process ends is never given.
constexpr uint64_t ids_at_once = 1'000;
constexpr size_t keyspaces_with_ids_max = 10'000;

// Version 7: | time 48 bits | 7 | 12 bits | 2 | 62 bits |, of the last 74 bits 34 by chance and 40
// of the number, so that no two are the same whatever the clock and chance say.
Uuid make_uuid(uint64_t unix_ms, uint64_t chance, uint64_t number) {
  Uuid uuid{};
  const auto store = [&](size_t offset, size_t bytes, uint64_t value) {
    for (size_t i = 0; i < bytes; i++)
      uuid[offset + i] = static_cast<unsigned char>(value >> (8 * (bytes - 1 - i)));
  };
  store(0, 6, unix_ms);
  store(6, 2, 0x7000 | (chance & 0xfff));
  store(8, 3, 0x80'0000 | (chance >> 12 & 0x3f'ffff));
  store(11, 5, number);
  return uuid;
}

// What the records of ids say, whether it lives or not. Absent: there is none.
Result<std::optional<EntityPath>> written_path(Tenant& tenant, const CatalogRef& ref) {
  Engine& engine = tenant.map().engine;
  Value value;
  TRY(engine.get(place_key(tenant.id(), ref), value));
  if (!value.found()) return std::optional<EntityPath>();
  TRY_ASSIGN(const EntityPlace place, decode_place(value.bytes()));
  EntityPath path{ref.type, {}};
  for (const CatalogRef& above : place.above) {
    TRY(engine.get(place_key(tenant.id(), above), value));
    if (!value.found()) return std::optional<EntityPath>();
    TRY_ASSIGN(const EntityPlace at, decode_place(value.bytes()));
    path.names.push_back(at.name);
  }
  path.names.push_back(place.name);
  if (path.names.size() != catalog_depth(ref.type))
    return Error{Code::corrupt, "the place of " + CatalogRefBytes::text(ref) + " makes no sense"};
  return std::optional(std::move(path));
}

bool leads_to(const EntityWay& way, const CatalogRef& ref) {
  return way.complete() && way.ref() == ref;
}

}  // namespace

Result<uint64_t> Catalog::next_id(Tenant& tenant) {
  {
    const std::lock_guard lock(ids_mutex_);
    if (const auto block = ids_.find(tenant.id());
        block != ids_.end() && block->second.next < block->second.end)
      return block->second.next++;
  }
  const Bytes key = encode(CatalogNextIdKey{tenant.id()});
  uint64_t first = 1;
  TRY(tenant.collect(Model::catalog, Scope::in(tenant.id()).exclusive(key),
                     [&](CountedView& view) -> Status {
                       Value old;
                       TRY(view.get(key, old));
                       first = 1;
                       if (old.found()) {
                         TRY_ASSIGN(first, decode_counter(old.bytes(), "next id"));
                       }
                       view.put(key, encode_counter(first + ids_at_once), old);
                       return {};
                     }));
  const std::lock_guard lock(ids_mutex_);
  if (ids_.size() >= keyspaces_with_ids_max) ids_.clear();
  // Two who came at once took two blocks: the rest of one is lost.
  ids_[tenant.id()] = {first + 1, first + ids_at_once};
  return first;
}

Result<CatalogRef> Catalog::new_ref(Tenant& tenant, CatalogType type) {
  TRY_ASSIGN(const uint64_t id, next_id(tenant));
  if (!catalog_type_has_uuid(type)) return CatalogRef::of(type, EntityId{id});
  const std::lock_guard lock(ids_mutex_);
  return CatalogRef::of(type, make_uuid(tenant.map().clock.unix_ms(), random_.next(), id));
}

Result<std::optional<EntityWay>> Catalog::way_of(Tenant& tenant, const CatalogRef& ref) {
  std::optional<EntityPath> path;
  EntityWay way;
  do {
    const std::optional<EntityPath> before = std::move(path);
    TRY_ASSIGN(path, written_path(tenant, ref));
    if (!path) return std::optional<EntityWay>();
    TRY_ASSIGN(way, find_way(tenant, *path));
    if (!leads_to(way, ref) && path == before) return std::optional<EntityWay>();
  } while (!leads_to(way, ref));  // something was renamed meanwhile, or is dropped
  return std::optional(std::move(way));
}

Result<std::optional<ColumnNames>> Catalog::column_names(Tenant& tenant, const EntityId& table) {
  const auto ref = CatalogRef::of(CatalogType::table, table);
  TRY_ASSIGN(std::optional<EntityWay> way, way_of(tenant, ref));
  if (!way) return std::optional<ColumnNames>();
  Value value;
  TRY(tenant.map().engine.get(entity_key(tenant.id(), way->above(), ref), value));
  if (!value.found()) return std::optional<ColumnNames>();
  TRY_ASSIGN(const Entity entity, decode_entity(way->above(), ref, value.bytes()));
  ColumnNames columns{std::move(way->path), {}};
  for (const stored::CatalogColumn& column : entity.stored.table().columns())
    columns.names.emplace(column.id(), column.name());
  return std::optional(std::move(columns));
}

std::optional<EntityPath> ColumnNames::path_of(const CatalogRef& column) const {
  const auto name = names.find(column.column_number().value);
  if (name == names.end()) return std::nullopt;
  EntityPath path{CatalogType::column, table.names};
  path.names.push_back(name->second);
  return path;
}

Result<std::optional<EntityPath>> Catalog::path_of(Tenant& tenant, const CatalogRef& ref) {
  if (ref.type == CatalogType::column) {
    TRY_ASSIGN(const auto columns, column_names(tenant, ref.number()));
    return columns ? columns->path_of(ref) : std::nullopt;
  }
  TRY_ASSIGN(std::optional<EntityWay> way, way_of(tenant, ref));
  return way ? std::optional(std::move(way->path)) : std::nullopt;
}

}  // namespace trellis
