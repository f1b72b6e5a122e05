// How the catalog is changed: everything goes through change_entity().
//
//   TRY(change_entity(catalog, call, path, locks, [&](CatalogChange& change) -> Status {
//     TRY_ASSIGN(Entity entity, change.load());
//     ...
//     return change.log("alter", entity);
//   }));
//
// The way (ids from the metalake down) is read without locks, locked, and walked again inside of
// the transaction; if it is another by then all starts over.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "catalog/catalog.h"

namespace trellis {

// What stands on the way to a path. `refs` are of the levels that were found, from the metalake
// down.
struct EntityWay {
  std::vector<CatalogRef> refs;
  std::vector<bool> disabled;
  bool complete(const EntityPath& path) const { return refs.size() == path.names.size(); }
};

// Reads that work on a transaction's view and on the engine alike.
using CatalogGet = FunctionRef<Status(ByteView key, Value& value)>;
Result<EntityWay> find_way(CatalogGet get, KeyspaceId keyspace, const EntityPath& path);
// The error of a way that ends early, or passes something that is disabled: no_such_*,
// *_not_in_use.
Status check_way(const EntityWay& way, const EntityPath& path);

// Keys of an entity on its way. REQUIRES: the way is complete, or lacks its last level and `ref`
// is that.
Bytes entity_key(KeyspaceId keyspace, std::span<const CatalogRef> above, const CatalogRef& ref);
Bytes name_key(KeyspaceId keyspace, std::span<const CatalogRef> above, CatalogType type,
               std::string_view name);

}  // namespace trellis
