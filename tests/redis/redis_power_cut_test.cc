// Cuts the power under a load of Redis commands, again and again on the same store.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <thread>

#include "base/log.h"
#include "command_load.h"
#include "record_bytes.h"
#include "support/expect_ok.h"
#include "support/power_cutter.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using namespace std::chrono_literals;

class RedisPowerCut : public testing::Test {
 protected:
  void SetUp() override { setup_log(LogLevel::error, LogFormat::text); }

  std::unique_ptr<RocksdbEngine> reopen() {
    return cutter_.reopen({.path = "/store",
                           .clock = clock_,
                           .cache_bytes = 8 << 20,
                           .everysec_period = everysec_period_});
  }

  template <class Arm>
  void run(Durability durability, Arm arm) {
    const std::unique_ptr<RocksdbEngine> engine = reopen();
    ASSERT_NE(engine, nullptr);
    const auto stack = RedisStack::open(*engine, clock_, durability);
    ASSERT_OK(stack);
    arm();
    std::vector<std::thread> threads;
    for (size_t lane = 0; lane < CommandLoad::lanes; lane++)
      threads.emplace_back([&, lane, seed = cutter_.random().next()] {
        load_.run_lane(*(*stack)->connect(), lane, seed);
      });
    threads.emplace_back([&] { load_.run_flusher(*(*stack)->connect()); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(cutter_.is_cut()) << load_.failure(0);
    acknowledged_ += load_.acknowledged_total();
  }

  void check(const CommandLoad::Positions& promised) {
    const std::unique_ptr<RocksdbEngine> engine = reopen();
    ASSERT_NE(engine, nullptr);
    measured_keys_ += expect_record_bytes(*engine, default_keyspace);
    const auto stack = RedisStack::open(*engine, clock_, Durability::always);
    ASSERT_OK(stack);
    const std::unique_ptr<RedisClient> client = (*stack)->connect();
    const CommandLoad::Positions answered = load_.promised();
    const auto found = load_.check(*client, promised);
    ASSERT_OK(found);
    for (size_t lane = 0; lane < CommandLoad::lanes; lane++)
      lost_ += answered[lane] - std::min(answered[lane], (*found)[lane]);
    // The tenant's figures are those of what is stored, garbage included.
    const auto tenant = (*stack)->keyspaces().tenant(default_keyspace).value();
    const auto recounted = [&] {
      return tenant->figures().value() == recount(*engine, default_keyspace).value();
    };
    bool equal = recounted();  // the collector may be in between
    for (int i = 0; i < 100 && !equal; i++) equal = recounted();
    EXPECT_TRUE(equal);
  }

  template <class Arm>
  void round(Durability durability, Arm arm) {
    run(durability, arm);
    if (HasFatalFailure()) return;
    CommandLoad::Time before = CommandLoad::Time::max();
    if (durability == Durability::everysec) before = cutter_.cut_time() - promised_within_;
    if (durability == Durability::off) before = CommandLoad::Time::min();
    check(load_.promised(before));
  }

  void print_figures(uint64_t cuts) {
    std::cout << fmt::format(
        "{} cuts under load, {} while opening; {} operations acknowledged, {} of them lost\n", cuts,
        cutter_.cuts_while_opening(), acknowledged_, lost_);
    EXPECT_GT(measured_keys_, 0u);
  }

  SystemClock clock_;
  PowerCutter cutter_{test_seed(20261115)};
  CommandLoad load_;
  std::chrono::microseconds everysec_period_ = 5ms;
  // Sanitizers are too slow for a promise that leaves 0.2 s for two syncs.
  const std::chrono::milliseconds promised_within_ = test_scale() == "quick" ? 2s : 1s;
  uint64_t acknowledged_ = 0;
  uint64_t lost_ = 0;
  size_t measured_keys_ = 0;
};

// So many cuts of each durability; ten times as many in the long run.
uint64_t cuts_of_each() { return test_scale() == "long" ? 100 : test_rounds(10); }

TEST_F(RedisPowerCut, AlwaysLosesNothingAcknowledged) {
  const uint64_t cuts = cuts_of_each();
  for (uint64_t i = 0; i < cuts && !HasFailure(); i++) {
    SCOPED_TRACE(i);
    round(Durability::always, [this] { cutter_.arm(1000); });
  }
  print_figures(cuts);
  EXPECT_EQ(lost_, 0);
}

TEST_F(RedisPowerCut, EverysecLosesAtMostTheLastSecond) {
  const uint64_t cuts = cuts_of_each();
  for (uint64_t i = 0; i < cuts && !HasFailure(); i++) {
    SCOPED_TRACE(i);
    if (i % 10 != 0) {
      round(Durability::everysec, [this] { cutter_.arm(1000); });
    } else {  // late enough for the bound to mean something
      everysec_period_ = 400ms;
      round(Durability::everysec, [this] { cutter_.arm_after(promised_within_ + 500ms); });
      everysec_period_ = 5ms;
    }
  }
  print_figures(cuts);
}

TEST_F(RedisPowerCut, OffLosesNoPartOfAnOperation) {
  const uint64_t cuts = cuts_of_each();
  for (uint64_t i = 0; i < cuts && !HasFailure(); i++) {
    SCOPED_TRACE(i);
    round(Durability::off, [this] { cutter_.arm(1000); });
  }
  print_figures(cuts);
  EXPECT_TRUE(test_scale() == "quick" || lost_ > 0)
      << "no cut lost anything: the test tests nothing";
}

}  // namespace
}  // namespace trellis
