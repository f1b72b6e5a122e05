// Things of the catalog as callers see them: where they are, and what they are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "catalog.pb.h"
#include "codec/catalog_keys.h"

namespace trellis {

// Of one name, in bytes; what else a name must be like is checked by whoever takes it from a user.
inline constexpr size_t catalog_name_bytes_max = 1'024;
// Of one entity or partition as it is stored, and of all partitions that a table is made with.
inline constexpr size_t catalog_entity_bytes_max = 4 * 1024 * 1024;
// Of tags, policies, users, groups and roles, many of which are read at once.
inline constexpr size_t catalog_member_bytes_max = 64 * 1024;
// What an event loop may read or write; more is for threads that may take their time.
inline constexpr size_t catalog_loop_entity_bytes_max = 64 * 1024;
// Of one table or view.
inline constexpr size_t catalog_columns_max = 10'000;
inline constexpr size_t catalog_indexes_max = 1'000;
// Of one request.
inline constexpr size_t catalog_updates_max = 10'000;

// Names from the metalake down: {"lake", "hive", "sales", "orders"} is a table. Users, groups,
// roles, tags and policies stand in a metalake, a column in its table.
struct EntityPath {
  CatalogType type = CatalogType::metalake;
  std::vector<std::string> names;

  const std::string& name() const { return names.back(); }  // REQUIRES: has names
  bool operator==(const EntityPath&) const = default;
};
// What a thing stands in; of a metalake: a path without names. REQUIRES: has names.
EntityPath parent_of(const EntityPath& path);
// Something in `parent`; illegal_argument if nothing of the type stands in such.
Result<EntityPath> child_of(const EntityPath& parent, CatalogType type, std::string name);
// illegal_argument: it has too many or too few names, or is a column's.
Status check_path(const EntityPath& path);
// "lake.hive.sales.orders", for messages.
std::string to_string(const EntityPath& path);

// How many names a path of the type has: 1 for a metalake, 4 for a table, 5 for a column.
size_t catalog_depth(CatalogType type);
// The type of what stands at that level on the way to things of `type`: 1 is the metalake.
CatalogType catalog_type_at(CatalogType type, size_t depth);
// Whether it stands in a metalake beside its catalogs: tags, policies, users, groups, roles.
bool is_member_of_metalake(CatalogType type);
// Whether names of the type are found by a search.
bool is_searchable(CatalogType type);

// An entity as it is stored, with what its keys say.
struct Entity {
  CatalogRef ref;
  std::vector<CatalogRef> above;  // from the metalake down to its parent
  stored::CatalogEntity stored;

  const std::string& name() const { return stored.name(); }
  // REQUIRES: it is no metalake, or itself one that has an id.
  const Uuid& metalake() const { return above.empty() ? ref.id : above.front().id; }
};

// What names this version of it and no other, in hex digits. For ETags.
std::string entity_tag(const Entity& entity);
// version_changed if it has another tag. Empty: any will do.
Status check_tag(const Entity& entity, std::string_view if_match);

// would_wait: it is too large for a loop (base/no_wait.h), on which this is.
Status check_loop_bytes(size_t bytes);
Result<Entity> decode_entity(std::span<const CatalogRef> above, const CatalogRef& ref,
                             ByteView value);
// Null: it has none of that name, or is no table.
const stored::CatalogColumn* find_column(const stored::CatalogEntity& entity,
                                         std::string_view name);

// --- keys ---

// Of what stands below `above` (from the metalake down).
Bytes entity_key(KeyspaceId keyspace, std::span<const CatalogRef> above, const CatalogRef& ref);
inline Bytes entity_key(KeyspaceId keyspace, const Entity& entity) {
  return entity_key(keyspace, entity.above, entity.ref);
}
// Name to id in `parent`; the root is CatalogRef(). Without a name: what all those keys begin with.
Bytes name_key(KeyspaceId keyspace, const CatalogRef& parent, CatalogType type,
               std::string_view name);
// Id to place. REQUIRES: no column.
Bytes place_key(KeyspaceId keyspace, const CatalogRef& ref);

// What it is found by, in order.
std::vector<Bytes> search_keys(KeyspaceId keyspace, const Entity& entity);
inline constexpr ByteView search_value = "\x01";
// As names are written there.
Bytes searched(std::string_view name);

// --- values ---

// Of a name: | 01 | flags u8 | id |
struct NamedRef {
  CatalogRef ref;
  bool disabled = false;
};
Bytes encode_named(const NamedRef& named);
Result<NamedRef> decode_named(CatalogType type, ByteView value);

// Of an id.
struct EntityPlace {
  std::string name;
  std::vector<CatalogRef> above;
};
Bytes encode_place(const EntityPlace& place);
Result<EntityPlace> decode_place(ByteView value);

}  // namespace trellis
