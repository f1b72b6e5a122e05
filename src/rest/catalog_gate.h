// Whether the caller may do what a route does: what Gravitino's authorization asks for.
#pragma once

#include "rest/catalog_routes.h"

namespace trellis {

// Sets request.access if authorization is on. Reasons: forbidden; unsupported if the route is about
// users, groups, roles, owners or permissions, and authorization is off. Absent: the handler
// answers.
Result<std::optional<HttpResponse>> check_catalog_access(CatalogRequest& request);
// More that only the handler knows of; nothing if authorization is off.
Status require_access(const CatalogRequest& request, const EntityPath& path, PrivilegeSet any_of);
// Whether authorization is off, or the caller owns what the path names or stands in.
// Of a catalog, from all but its owners and the metalake's. Whether something was hidden.
Result<bool> hide_secrets(const std::optional<CatalogAccess>& access, Entity& catalog);

// Which of what stands in the metalake (tags, roles, ...) the caller sees.
Result<std::vector<bool>> visible_members(const CatalogRequest& request, CatalogType type,
                                          std::span<const CatalogRef> refs);
// What is done beside a create: whoever made it owns it. `before`: see owners.h.
Result<CatalogExtra> extra_of_create(const CatalogRequest& request, const EntityPath& path,
                                     size_t before = 1);

}  // namespace trellis
