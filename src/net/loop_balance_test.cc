#include "net/loop_balance.h"

#include <gtest/gtest.h>

namespace trellis {
namespace {

class StillClock final : public Clock {
 public:
  uint64_t unix_ms() const override { return 0; }
  uint64_t monotonic_us() const override { return now_us; }
  void pause_us(uint64_t us) override { now_us += us; }

  uint64_t now_us = 1'000'000;
};

constexpr uint64_t window_us = 50'000;

class LoopBalanceTest : public ::testing::Test {
 protected:
  size_t take(size_t loop, double busy, uint64_t served = 100) {
    clock_.pause_us(window_us);
    return balance_.take(loop, {.busy = busy, .served = served});
  }
  // For long enough to begin a trial, or to end it.
  size_t take_for_long(size_t loop, double busy, uint64_t served = 100) {
    for (uint64_t us = 0; us < 400'000 && balance_.used() == used_; us += window_us)
      take(loop, busy, served);
    return used_ = balance_.used();
  }
  void take_all(uint64_t served) {
    clock_.pause_us(window_us);
    for (size_t loop = 0; loop < balance_.used(); loop++)
      balance_.take(loop, {.busy = 0.9, .served = served / balance_.used()});
  }
  // More loops, which serve more.
  size_t grow() {
    for (uint64_t us = 0; us < 400'000 && balance_.used() == used_; us += window_us)
      take_all(1'000);
    for (uint64_t us = 0; us < 250'000; us += window_us) take_all(1'500);
    return used_ = balance_.used();
  }

  StillClock clock_;
  double idle_cores_ = 0;
  int asked_ = 0;
  LoopBalance balance_{6, [this] { return asked_++, idle_cores_; }, clock_};
  size_t used_ = 1;
};

TEST_F(LoopBalanceTest, ItTakesABusyLoopAndAnIdleCore) {
  EXPECT_EQ(balance_.used(), 1U);
  EXPECT_EQ(take_for_long(0, 1), 1U);
  idle_cores_ = 0.2;
  EXPECT_EQ(take_for_long(0, 1), 1U);
  idle_cores_ = 6;
  EXPECT_EQ(take_for_long(0, 0.5), 1U);
  EXPECT_EQ(grow(), 2U);
  EXPECT_EQ(grow(), 4U);
  take_all(100);
  EXPECT_EQ(take(5, 0.9), 4U) << "it gives away what it has";
  EXPECT_EQ(grow(), 6U);
  EXPECT_EQ(grow(), 6U);
}

TEST_F(LoopBalanceTest, LoopsThatServeHardlyMoreAreGivenUp) {
  idle_cores_ = 1;
  EXPECT_EQ(take_for_long(0, 1), 2U);
  EXPECT_EQ(take_for_long(0, 1, 105), 1U);
  // And tried again after a while, which becomes longer.
  uint64_t waited_us = 0;
  for (const uint64_t pause_us : {1'000'000, 2'000'000, 4'000'000, 8'000'000, 10'000'000}) {
    for (waited_us = 0; take(0, 1) == 1; waited_us += window_us)
      ASSERT_LE(waited_us, pause_us + 700'000);
    EXPECT_GE(waited_us + 2 * window_us, pause_us);
    used_ = 2;
    EXPECT_EQ(take_for_long(0, 1), 1U);
  }
  // Once they serve more they stay.
  while (take(0, 1) == 1) continue;
  for (int i = 0; i < 100; i++) EXPECT_GE(take(0, 1, 200), 2U);
}

TEST_F(LoopBalanceTest, ATrialWithoutTurnsTellsNothing) {
  idle_cores_ = 1;
  EXPECT_EQ(take_for_long(0, 1), 2U);
  take(0, 1);
  clock_.pause_us(2'000'000);
  take(0, 1);
  EXPECT_EQ(balance_.used(), 1U);
  used_ = 1;
  EXPECT_EQ(take_for_long(0, 1), 2U) << "at once";
}

TEST_F(LoopBalanceTest, WhatHasLittleToDoComesTogether) {
  idle_cores_ = 1;
  grow();
  EXPECT_EQ(grow(), 4U);
  idle_cores_ = 0;
  const auto say = [&](size_t loop, double busy) {
    return balance_.take(loop, {.busy = busy, .served = 1});
  };
  for (size_t loop = 0; loop < 3; loop++) EXPECT_EQ(say(loop, 0.4), 4U) << loop;
  EXPECT_EQ(say(3, 0.4), 3U) << "1.6 are busy, which is little for three";
  EXPECT_EQ(say(0, 0), 3U);
  EXPECT_EQ(say(1, 0.1), 2U);
  EXPECT_EQ(say(2, 0), 1U);
  EXPECT_EQ(say(2, 0), 1U);
}

TEST_F(LoopBalanceTest, ALoopWithoutTurnsHasNothingToDo) {
  idle_cores_ = 1;
  grow();
  EXPECT_EQ(grow(), 4U);
  clock_.pause_us(1'000'000);
  for (const size_t left : {3, 2, 1, 1}) EXPECT_EQ(take(0, 0.1), left);
}

TEST_F(LoopBalanceTest, WhatWasIdleLongAgoDoesNotCount) {
  idle_cores_ = 6;
  EXPECT_EQ(grow(), 2U);
  clock_.pause_us(1'000'000);
  idle_cores_ = 0;
  EXPECT_EQ(take_for_long(0, 1), 2U);
}

TEST_F(LoopBalanceTest, TheSystemIsNotAskedTooOften) {
  for (int i = 0; i < 10; ++i) take(0, 0.5);
  EXPECT_EQ(asked_, 0);
  for (int i = 0; i < 100; ++i) {
    clock_.pause_us(1'000);
    balance_.take(0, {.busy = 1, .served = 1});
  }
  EXPECT_LE(asked_, 3);
}

TEST(IdleCoresTest, AreAsManyAsThereAre) {
  const std::function<double()> idle_cores = make_idle_cores();
  for (int i = 0; i < 3; ++i) EXPECT_GE(idle_cores(), 0);
}

}  // namespace
}  // namespace trellis
