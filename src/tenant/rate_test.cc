// The rate limit against what GCRA promises, and the meter over its windows.
#include "tenant/rate.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/random.h"
#include "support/test_seed.h"

namespace trellis {
namespace rate_test {

constexpr uint64_t second_us = 1'000'000;
constexpr uint64_t start_us = 5'000 * second_us;

uint64_t admitted_at(RateLimit& limit, uint64_t now_us, uint64_t tries) {
  uint64_t admitted = 0;
  for (uint64_t i = 0; i < tries; i++) admitted += limit.admit(now_us, 1) == 0;
  return admitted;
}

TEST(RateLimit, NoneAdmitsEverything) {
  RateLimit limit;
  EXPECT_EQ(limit.get(), 0u);
  for (int i = 0; i < 1000; i++) EXPECT_EQ(limit.admit(0, UINT32_MAX), 0u);
}

TEST(RateLimit, OneSecondAtOnceThenAnEvenPace) {
  RateLimit limit;
  limit.set(100);
  EXPECT_EQ(admitted_at(limit, start_us, 1000), 100u);
  EXPECT_EQ(limit.admit(start_us, 1), 10'000u) << "one operation of a hundred per second";
  EXPECT_EQ(limit.admit(start_us + 9'999, 1), 1u);
  EXPECT_EQ(limit.admit(start_us + 10'000, 1), 0u) << "as promised";
  EXPECT_EQ(limit.admit(start_us + 10'000, 1), 10'000u);
  EXPECT_EQ(admitted_at(limit, start_us + 510'000, 1000), 50u);
  EXPECT_EQ(admitted_at(limit, start_us + 3600 * second_us, 1000), 100u) << "no more is saved up";
}

TEST(RateLimit, AtTheStartOfTheClock) {
  RateLimit limit;
  limit.set(10);
  EXPECT_EQ(admitted_at(limit, 0, 100), 10u);
}

TEST(RateLimit, SeveralOperationsCostAsMuchAsOneByOne) {
  RateLimit limit;
  limit.set(100);
  EXPECT_EQ(limit.admit(start_us, 60), 0u);
  EXPECT_EQ(limit.admit(start_us, 60), 200'000u);
  EXPECT_EQ(limit.admit(start_us, 40), 0u);
  EXPECT_EQ(limit.admit(start_us + 200'000, 20), 0u);
  EXPECT_EQ(limit.admit(start_us + 200'000, 0), 0u) << "nothing costs nothing";
}

TEST(RateLimit, MoreThanASecondHasIsPaidForAfterwards) {
  RateLimit limit;
  limit.set(10);
  EXPECT_EQ(limit.admit(start_us, 35), 0u) << "idle";
  EXPECT_EQ(limit.admit(start_us, 1), 2'600'000u);
  EXPECT_EQ(limit.admit(start_us, 35), 3'500'000u) << "not before it is idle again";
  EXPECT_EQ(limit.admit(start_us + 3'499'999, 35), 1u);
  EXPECT_EQ(limit.admit(start_us + 3'500'000, 35), 0u);
}

TEST(RateLimit, FastAndSlowLimitsAreKept) {
  for (const uint64_t per_second : {1ull, 3ull, 7ull, 999ull, 1'000'000ull, 3'000'000ull}) {
    SCOPED_TRACE(per_second);
    RateLimit limit;
    limit.set(per_second);
    const auto operations = static_cast<uint32_t>(std::max<uint64_t>(1, per_second / 1000));
    uint64_t admitted = 0;
    for (uint64_t now_us = start_us; now_us < start_us + 10 * second_us; now_us += 10'000)
      while (limit.admit(now_us, operations) == 0) admitted += operations;
    EXPECT_LE(admitted, 11 * per_second);
    EXPECT_GE(admitted, 10 * per_second - per_second / 100);
  }
}

TEST(RateLimit, ANewLimitForgivesAndTheSameOneDoesNot) {
  RateLimit limit;
  limit.set(1);
  EXPECT_EQ(limit.admit(start_us, 1'000'000), 0u);
  limit.set(1);
  EXPECT_GT(limit.admit(start_us, 1), 900'000 * second_us);
  limit.set(1000);
  EXPECT_EQ(admitted_at(limit, start_us, 5000), 1000u);
  limit.set(0);
  EXPECT_EQ(admitted_at(limit, start_us, 5000), 5000u);
}

TEST(RateLimit, WaitingAsToldIsEnough) {
  Random random(test_seed(21));
  for (uint64_t round = 0; round < test_rounds(200); round++) {
    RateLimit limit;
    limit.set(1 + random.below(round % 2 == 0 ? 50 : 5'000'000));
    uint64_t now_us = random.below(1ull << 50);
    for (int step = 0; step < 50; step++) {
      const auto operations = static_cast<uint32_t>(random.below(random.one_in(10) ? 10'000 : 20));
      const uint64_t wait_us = limit.admit(now_us, operations);
      if (wait_us > 0) {
        ASSERT_GT(limit.admit(now_us + wait_us - 1, operations), 0u) << "told to wait too long";
        now_us += wait_us;
        ASSERT_EQ(limit.admit(now_us, operations), 0u) << "told to wait too short";
      }
      now_us += random.below(1000);
    }
  }
}

TEST(RateLimit, ManyThreadsTogetherKeepIt) {
  RateLimit limit;
  limit.set(10'000);
  std::atomic<uint64_t> admitted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&] { admitted += admitted_at(limit, start_us, 8'000); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted, 10'000u);
}

TEST(LoadMeter, LooksAtTenToTwentySeconds) {
  LoadMeter meter;
  EXPECT_EQ(meter.per_second(start_us), 0.0);
  for (uint64_t i = 0; i < 20; i++) meter.add(start_us + i * second_us, 30);
  EXPECT_EQ(meter.total(), 600u);
  EXPECT_DOUBLE_EQ(meter.per_second(start_us + 20 * second_us), 30.0) << "a window has just ended";
  EXPECT_DOUBLE_EQ(meter.per_second(start_us + 19 * second_us), 600.0 / 19);
  EXPECT_DOUBLE_EQ(meter.per_second(start_us + 25 * second_us), 20.0) << "it fades";
  EXPECT_EQ(meter.per_second(start_us + 30 * second_us), 0.0) << "and is forgotten";
  EXPECT_EQ(meter.total(), 600u);
}

TEST(LoadMeter, AnIdleWindowCountsAsNothing) {
  LoadMeter meter;
  meter.add(start_us, 1000);
  meter.add(start_us + 25 * second_us, 150);
  EXPECT_DOUBLE_EQ(meter.per_second(start_us + 25 * second_us), 10.0);
}

TEST(LoadMeter, AnOlderReadingOfTheClockCountsToo) {
  LoadMeter meter;
  meter.add(start_us + 10 * second_us, 50);
  meter.add(start_us + 9 * second_us, 50);
  EXPECT_DOUBLE_EQ(meter.per_second(start_us + 9 * second_us), 10.0);
}

TEST(LoadMeter, TheTotalLosesNothing) {
  LoadMeter meter;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([&] {
      for (uint64_t step = 0; step < 5'000; step++) meter.add(start_us + step * 10'000, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(meter.total(), 40'000u);
}

}  // namespace rate_test
}  // namespace trellis
