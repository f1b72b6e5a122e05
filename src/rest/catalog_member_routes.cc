// What belongs to tables and models: partitions, versions and aliases, statistics.
#include "rest/catalog_routes.h"

namespace trellis {

std::span<const CatalogRoute> catalog_member_routes() { return {}; }

}  // namespace trellis
