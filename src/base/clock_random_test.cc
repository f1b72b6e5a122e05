#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/random.h"

namespace trellis {
namespace {

TEST(FakeClock, StandsStillUntilTold) {
  FakeClock clock(1000);
  EXPECT_EQ(clock.unix_ms(), 1000u);
  const uint64_t start_us = clock.monotonic_us();
  clock.advance_ms(5);
  EXPECT_EQ(clock.unix_ms(), 1005u);
  EXPECT_EQ(clock.monotonic_us(), start_us + 5000);
  clock.jump_to_ms(10);  // the wall clock was set back; time went on all the same
  EXPECT_EQ(clock.unix_ms(), 10u);
  EXPECT_EQ(clock.monotonic_us(), start_us + 5000);
}

TEST(SystemClock, IsInItsUnits) {
  using namespace std::chrono;
  const SystemClock clock;
  EXPECT_GT(clock.unix_ms(), 1'700'000'000'000u);    // 2023, in milliseconds
  EXPECT_LT(clock.unix_ms(), 100'000'000'000'000u);  // the year 5138
  const auto before = floor<microseconds>(steady_clock::now().time_since_epoch());
  const uint64_t now_us = clock.monotonic_us();
  const auto after = floor<microseconds>(steady_clock::now().time_since_epoch());
  EXPECT_LE(static_cast<uint64_t>(before.count()), now_us);
  EXPECT_LE(now_us, static_cast<uint64_t>(after.count()));
}

// From an independent implementation of splitmix64 and xoshiro256**: stored seeds stay good.
TEST(Random, KnownStreams) {
  const std::pair<uint64_t, std::vector<uint64_t>> streams[] = {
      {0, {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0}},
      {1, {0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514}},
      {42, {0x15780b2e0c2ec716, 0x6104d9866d113a7e, 0xae17533239e499a1}},
  };
  for (const auto& [seed, expected] : streams) {
    Random random(seed);
    for (const uint64_t number : expected) EXPECT_EQ(random.next(), number) << "seed " << seed;
  }
  EXPECT_EQ(to_hex(Random(42).bytes(8)), "1561aeecfdc5b8d9");
}

TEST(Random, BelowReachesAllAndNothingElse) {
  const uint64_t seed = 20261115;
  SCOPED_TRACE(seed);
  Random random(seed);
  std::vector<int> seen(10);
  for (int i = 0; i < 10'000; i++) {
    const uint64_t number = random.below(10);
    ASSERT_LT(number, 10u);
    seen[number]++;
  }
  for (int count : seen) {  // 1000 expected; 6 standard deviations are 180
    EXPECT_GT(count, 820);
    EXPECT_LT(count, 1180);
  }
  for (int i = 0; i < 100; i++) EXPECT_EQ(random.below(1), 0u);
  const uint64_t large = ~uint64_t{0};
  bool high = false;
  for (int i = 0; i < 100; i++) high |= random.below(large) > large / 2;
  EXPECT_TRUE(high);
}

TEST(Random, OneIn) {
  Random random(7);
  for (int i = 0; i < 100; i++) EXPECT_FALSE(random.one_in(0));
  for (int i = 0; i < 100; i++) EXPECT_TRUE(random.one_in(1));
  int hits = 0;
  for (int i = 0; i < 10'000; i++) hits += random.one_in(4);
  EXPECT_GT(hits, 2240);  // 2500 expected; 6 standard deviations are 260
  EXPECT_LT(hits, 2760);
}

TEST(Random, CloseSeedsGiveUnlikeStreams) {
  std::set<uint64_t> first;
  for (uint64_t seed = 0; seed < 1000; seed++) first.insert(Random(seed).next() >> 32);
  EXPECT_EQ(first.size(), 1000u);
  EXPECT_EQ(Random(1).bytes(0), "");
  EXPECT_EQ(Random(1).bytes(100).size(), 100u);
}

}  // namespace
}  // namespace trellis
