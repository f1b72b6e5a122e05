// Cuts the power under a load of files.
#include "fs/file_load.h"
#include "support/power_cut_test.h"

namespace trellis {
namespace {

class FsPowerCut : public PowerCutTest<FileLoad> {
 protected:
  FsPowerCut() : PowerCutTest(20261116) {}
  static uint64_t cuts() { return test_scale() == "long" ? 70 : test_rounds(10); }
};

TEST_F(FsPowerCut, AlwaysLosesNothingAcknowledged) { cut_often(Durability::always, cuts()); }
TEST_F(FsPowerCut, EverysecLosesNoPartOfAStep) { cut_often(Durability::everysec, cuts()); }
TEST_F(FsPowerCut, OffLosesNoPartOfAStep) { cut_often(Durability::off, cuts()); }

}  // namespace
}  // namespace trellis
