// Cuts the power under a load of catalog changes.
#include "catalog/catalog_load.h"
#include "support/power_cut_test.h"

namespace trellis {
namespace {

class CatalogPowerCut : public PowerCutTest<CatalogLoad> {
 protected:
  CatalogPowerCut() : PowerCutTest(20261119) {}
  static uint64_t cuts() {
    return test_scale() == "long" ? 17 : std::max<uint64_t>(test_rounds(4), 1);
  }
};

TEST_F(CatalogPowerCut, AlwaysLosesNothingAcknowledged) { cut_often(Durability::always, cuts()); }
TEST_F(CatalogPowerCut, EverysecLosesNoPartOfAStep) { cut_often(Durability::everysec, cuts()); }
TEST_F(CatalogPowerCut, OffLosesNoPartOfAStep) { cut_often(Durability::off, cuts()); }

}  // namespace
}  // namespace trellis
