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

class LoopBalanceTest : public ::testing::Test {
 protected:
  size_t take(size_t loop, double busy) {
    clock_.pause_us(50'000);
    return balance_.take(loop, busy);
  }

  StillClock clock_;
  double idle_cores_ = 0;
  int asked_ = 0;
  LoopBalance balance_{6, [this] { return asked_++, idle_cores_; }, clock_};
};

TEST_F(LoopBalanceTest, ItTakesABusyLoopAndAnIdleCore) {
  EXPECT_EQ(balance_.used(), 1U);
  EXPECT_EQ(take(0, 1), 1U);
  idle_cores_ = 0.2;
  EXPECT_EQ(take(0, 1), 1U);
  idle_cores_ = 6;
  EXPECT_EQ(take(0, 0.5), 1U);
  EXPECT_EQ(take(0, 0.9), 2U);
  EXPECT_EQ(take(1, 0.9), 4U);
  EXPECT_EQ(take(5, 0.9), 4U) << "it gives away what it has";
  EXPECT_EQ(take(3, 0.9), 6U);
  EXPECT_EQ(take(3, 0.9), 6U);
  EXPECT_EQ(balance_.used(), 6U);
}

TEST_F(LoopBalanceTest, WhatHasLittleToDoComesTogether) {
  idle_cores_ = 1;
  take(0, 1);
  take(0, 1);
  EXPECT_EQ(take(1, 1), 4U);
  EXPECT_EQ(take(0, 0.8), 4U) << "two are busy, which is too much for one of three";
  EXPECT_EQ(take(1, 0.5), 3U);
  EXPECT_EQ(take(0, 0.5), 2U);
  EXPECT_EQ(take(0, 0.3), 2U);
  EXPECT_EQ(take(1, 0.2), 1U);
  EXPECT_EQ(take(1, 0), 1U);
}

TEST_F(LoopBalanceTest, ALoopWithoutTurnsHasNothingToDo) {
  idle_cores_ = 1;
  take(0, 1);
  take(0, 1);
  take(1, 1);
  clock_.pause_us(1'000'000);
  for (const size_t left : {3, 2, 1, 1}) EXPECT_EQ(take(0, 0.1), left);
}

TEST_F(LoopBalanceTest, WhatWasIdleLongAgoDoesNotCount) {
  idle_cores_ = 6;
  EXPECT_EQ(take(0, 1), 1U);
  EXPECT_EQ(take(0, 1), 2U);
  clock_.pause_us(1'000'000);
  EXPECT_EQ(take(0, 1), 2U);
  EXPECT_EQ(take(0, 1), 4U);
}

TEST_F(LoopBalanceTest, TheSystemIsNotAskedTooOften) {
  for (int i = 0; i < 10; ++i) take(0, 0.5);
  EXPECT_EQ(asked_, 0);
  for (int i = 0; i < 100; ++i) {
    clock_.pause_us(1'000);
    balance_.take(0, 1);
  }
  EXPECT_LE(asked_, 3);
}

TEST(IdleCoresTest, AreAsManyAsThereAre) {
  const std::function<double()> idle_cores = make_idle_cores();
  for (int i = 0; i < 3; ++i) EXPECT_GE(idle_cores(), 0);
}

}  // namespace
}  // namespace trellis
