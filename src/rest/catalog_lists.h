// Lists of what stands in one place, as text that is written while it is read: one page at a time,
// however many there are.
#pragma once

#include <string_view>

#include "rest/catalog_routes.h"

namespace trellis {

// GET of a list. ?limit, ?pageToken (the last name of the page before) and ?prefix; ?details for
// all of each; ?dropped for what can come back.
Result<HttpResponse> list_entities(CatalogRequest& request);
// Likewise, always all of each.
Result<HttpResponse> list_entities_in_full(CatalogRequest& request);
// {"names":["a","b"]}: those of them that there are, and the names of those that are missing.
Result<HttpResponse> get_entities(CatalogRequest& request);

// {"name","roles":[...],"audit"}: a user or group.
Status append_principal(Bytes& out, Catalog& catalog, Tenant& tenant, const Entity& entity);

}  // namespace trellis
