// Who owns what: one user or group each. Whoever owns a thing may do everything with it.
//
// Errors: illegal_argument, no_such_metadata_object, no_such_user, no_such_group.
#pragma once

#include <optional>

#include "catalog/catalog.h"
#include "catalog/request_fields.h"

namespace trellis {

// A user or group; absent: it has none that lives.
Result<std::optional<EntityPath>> owner_of(Catalog& catalog, const CatalogCall& call,
                                           const EntityPath& object);
Status set_owner(const CatalogCall& call, const EntityPath& object, const EntityPath& owner);
// {"name","type":"user"}
Result<EntityPath> read_owner(const std::string& metalake, const json::value& request);

// What else happens in the transaction that makes a thing at `path`: whoever made it owns it. The
// one who makes a metalake becomes its first user. `before`: how many paths the create has before
// these, with its own.
Result<CatalogExtra> owned_by_creator(Catalog& catalog, const CatalogCall& call,
                                      const EntityPath& path, size_t before = 1);

}  // namespace trellis
