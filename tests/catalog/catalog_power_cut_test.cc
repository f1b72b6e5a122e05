// Cuts the power under a load of catalog changes, again and again on the same store.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <thread>

#include "base/log.h"
#include "catalog/catalog_load.h"
#include "support/expect_ok.h"
#include "support/power_cutter.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

class CatalogPowerCut : public testing::Test {
 protected:
  void SetUp() override { setup_log(LogLevel::error, LogFormat::text); }

  std::unique_ptr<RocksdbEngine> reopen() {
    return cutter_.reopen({.path = "/store",
                           .clock = clock_,
                           .cache_bytes = 8 << 20,
                           .everysec_period = std::chrono::milliseconds(5)});
  }

  void run(Durability durability) {
    const std::unique_ptr<RocksdbEngine> engine = reopen();
    ASSERT_NE(engine, nullptr);
    const auto load = CatalogLoad::open(*engine, clock_, durability);
    ASSERT_OK(load);
    cutter_.arm(1'500);
    std::atomic<bool> enough = false;
    std::thread collector([&] { discard((*load)->run_collector(enough)); });
    std::vector<std::thread> threads;
    for (size_t lane = 0; lane < CatalogLoad::lanes; lane++)
      threads.emplace_back([&, lane] {
        const Status end = (*load)->run_lane(lane, positions_[lane],
                                             [&](uint64_t steps) { acknowledged_[lane] = steps; });
        EXPECT_TRUE(cutter_.is_cut()) << to_string(end.error());
      });
    for (std::thread& thread : threads) thread.join();
    enough = true;
    collector.join();
  }

  void check(Durability durability) {
    const std::unique_ptr<RocksdbEngine> engine = reopen();
    ASSERT_NE(engine, nullptr);
    const auto load = CatalogLoad::open(*engine, clock_, Durability::always);
    ASSERT_OK(load);
    for (size_t lane = 0; lane < CatalogLoad::lanes; lane++) {
      const uint64_t promised =
          durability == Durability::always ? acknowledged_[lane] : positions_[lane];
      const auto found = (*load)->position(lane, promised, acknowledged_[lane] + 1);
      ASSERT_OK(found);
      done_ += *found - positions_[lane];
      lost_ += acknowledged_[lane] - std::min(acknowledged_[lane], *found);
      positions_[lane] = acknowledged_[lane] = *found;
    }
    ASSERT_OK((*load)->check());
  }

  void cut_often(Durability durability) {
    // Four of each; 17 in the long run.
    const uint64_t cuts = test_scale() == "long" ? 17 : std::max<uint64_t>(test_rounds(4), 1);
    for (uint64_t i = 0; i < cuts && !HasFailure(); i++) {
      SCOPED_TRACE(i);
      run(durability);
      if (!HasFatalFailure()) check(durability);
    }
    std::cout << fmt::format("{} cuts under load, {} while opening; {} steps are there, {} lost\n",
                             cuts, cutter_.cuts_while_opening(), done_, lost_);
    EXPECT_GT(done_, 0u);
  }

  SystemClock clock_;
  PowerCutter cutter_{test_seed(20261119)};
  CatalogLoad::Positions positions_{};
  CatalogLoad::Positions acknowledged_{};
  uint64_t done_ = 0;
  uint64_t lost_ = 0;
};

TEST_F(CatalogPowerCut, AlwaysLosesNothingAcknowledged) {
  cut_often(Durability::always);
  EXPECT_EQ(lost_, 0u);
}
TEST_F(CatalogPowerCut, EverysecLosesNoPartOfAStep) { cut_often(Durability::everysec); }
TEST_F(CatalogPowerCut, OffLosesNoPartOfAStep) {
  cut_often(Durability::off);
  EXPECT_TRUE(test_scale() == "quick" || lost_ > 0)
      << "no cut lost anything: the test tests nothing";
}

}  // namespace
}  // namespace trellis
