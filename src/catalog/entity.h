// Things of the catalog as callers see them: where they are, and what they are.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "catalog.pb.h"
#include "codec/catalog_keys.h"

namespace trellis {

// Names from the metalake down: {"lake", "hive", "sales", "orders"} is a table. Users, groups,
// roles, tags and policies stand in a metalake.
struct EntityPath {
  CatalogType type = CatalogType::metalake;
  std::vector<std::string> names;

  const std::string& name() const { return names.back(); }
};

// How many names a path of the type has: 1 for a metalake, 4 for a table.
size_t catalog_depth(CatalogType type);
// The type of what stands at level `depth` above things of `type`: 1 is the metalake.
CatalogType catalog_type_at(CatalogType type, size_t depth);

// An entity as it is stored, with what its keys say.
struct Entity {
  CatalogRef ref;                 // codec/catalog_keys.h: type and id
  std::vector<CatalogRef> above;  // from the metalake down to its parent
  stored::CatalogEntity stored;

  const std::string& name() const { return stored.name(); }
};

// What names this version of it and no other, in hex digits. For ETags.
std::string entity_tag(const Entity& entity);

}  // namespace trellis
