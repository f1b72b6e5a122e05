// Cuts the power under a load of a model, again and again on the same store. A Load has lanes, each
// of which does step 1, 2, 3 ...; what is there after a cut says how far it came (fs/file_load.h).
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <thread>
#include <vector>

#include "base/log.h"
#include "support/expect_ok.h"
#include "support/power_cutter.h"
#include "support/test_seed.h"

namespace trellis {

template <class Load>
class PowerCutTest : public testing::Test {
 protected:
  explicit PowerCutTest(uint64_t seed) : cutter_(test_seed(seed)) {}
  void SetUp() override { setup_log(LogLevel::error, LogFormat::text); }

  // What is promised of a durability is kept, and without one something is lost.
  void cut_often(Durability durability, uint64_t cuts) {
    for (uint64_t i = 0; i < cuts && !HasFailure(); i++) {
      SCOPED_TRACE(i);
      run(durability);
      if (!HasFatalFailure()) check(durability);
    }
    std::cout << fmt::format("{} cuts under load, {} while opening; {} steps are there, {} lost\n",
                             cuts, cutter_.cuts_while_opening(), done_, lost_);
    EXPECT_GT(done_, 0u);
    if (durability == Durability::always) {
      EXPECT_EQ(lost_, 0u);
    } else if (durability == Durability::off && test_scale() != "quick") {
      EXPECT_GT(lost_, 0u) << "no cut lost anything: the test tests nothing";
    }
  }

 private:
  std::unique_ptr<RocksdbEngine> reopen() {
    return cutter_.reopen({.path = "/store",
                           .clock = clock_,
                           .cache_bytes = 8 << 20,
                           .everysec_period = std::chrono::milliseconds(5)});
  }

  void run(Durability durability) {
    const std::unique_ptr<RocksdbEngine> engine = reopen();
    ASSERT_NE(engine, nullptr);
    const auto load = Load::open(*engine, clock_, durability);
    ASSERT_OK(load);
    cutter_.arm(1'500);
    std::atomic<bool> enough = false;
    std::thread collector([&] { discard((*load)->run_collector(enough)); });
    std::vector<std::thread> threads;
    for (size_t lane = 0; lane < Load::lanes; lane++)
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
    const auto load = Load::open(*engine, clock_, Durability::always);
    ASSERT_OK(load);
    for (size_t lane = 0; lane < Load::lanes; lane++) {
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

  SystemClock clock_;
  PowerCutter cutter_;
  typename Load::Positions positions_{};
  typename Load::Positions acknowledged_{};
  uint64_t done_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace trellis
