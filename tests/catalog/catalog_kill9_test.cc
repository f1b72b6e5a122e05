// Kills a process under a load of catalog changes.
#include "catalog/catalog_load.h"
#include "support/kill_test.h"

namespace trellis {
namespace {

TEST(CatalogKill9, NothingAcknowledgedIsMissing) {
  const uint64_t kills = test_scale() == "long" ? 50 : std::max<uint64_t>(test_rounds(8), 2);
  kill_often<CatalogLoad>(CATALOG_LOAD_BINARY, 20261118, kills);
}

}  // namespace
}  // namespace trellis
