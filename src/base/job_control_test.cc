#include "base/job_control.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "support/expect_ok.h"

namespace trellis {
namespace {

TEST(JobControlTest, KeepsToItsLimitWhateverTheNumberOfThreads) {
  FakeClock clock(1);
  JobControl control(clock);
  control.set_bytes_per_second(1'000);
  control.begin_phase("reading", 8'000);
  ASSERT_OK(run_in_parallel(4, 8, [&](size_t) { return control.pass(1'000); }));
  EXPECT_GE(clock.monotonic_us(), 8'000'000U);
  EXPECT_EQ(control.progress().bytes_done, 8'000U);
  const uint64_t before_us = clock.monotonic_us();
  EXPECT_EQ(control.charge(500), 500'000U);  // says so, and does not wait
  EXPECT_EQ(clock.monotonic_us(), before_us);
  ASSERT_OK(control.pass_again(0));
  EXPECT_GE(clock.monotonic_us(), before_us + 500'000);
  control.set_bytes_per_second(0);
  ASSERT_OK(control.pass(1'000'000'000));
  EXPECT_LE(clock.monotonic_us(), before_us + 600'000);
}

TEST(JobControlTest, ALimitThatIsLiftedHoldsNobodyBack) {
  JobControl control;
  control.set_bytes_per_second(1);
  std::thread slow([&] { EXPECT_OK(control.pass(1'000'000)); });
  while (control.progress().bytes_done == 0) std::this_thread::yield();
  control.set_bytes_per_second(0);
  slow.join();
}

TEST(JobControlTest, APausedJobWaitsUntilItIsResumedOrEnds) {
  JobControl control;
  control.pause(true);
  std::atomic<int> passed{0};
  std::atomic<int> ended{0};
  const auto work = [&] {
    for (;;) {
      const Status status = control.pass(1);
      if (status) {
        passed++;
        continue;
      }
      EXPECT_EQ(status.error().reason, job_canceled);
      ended++;
      return;
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; i++) threads.emplace_back(work);
  while (control.progress().bytes_done < 3) std::this_thread::yield();  // all of them are there
  EXPECT_EQ(passed, 0);
  EXPECT_TRUE(control.progress().paused);
  control.pause(false);
  while (passed < 100) std::this_thread::yield();
  control.pause(true);
  control.cancel();
  control.stop();  // what it ended with first counts
  threads.clear();
  EXPECT_EQ(ended, 3);
}

TEST(JobControlTest, NeverMoreIsDoneThanThereIs) {
  JobControl control;
  control.begin_phase("reading", 27);
  ASSERT_OK(control.pass(20));
  EXPECT_EQ(control.progress().bytes_total, 27U);
  control.skip(43);
  EXPECT_EQ(control.progress().bytes_done, 63U);
  EXPECT_EQ(control.progress().bytes_total, 63U);
  ASSERT_OK(control.pass_again(100));
  EXPECT_EQ(control.progress().bytes_done, 63U);
  control.begin_phase("indexing", 0);
  EXPECT_EQ(control.progress().bytes_done, 0U);
  EXPECT_EQ(control.progress().bytes_total, 0U);
}

TEST(JobControlTest, TheFirstErrorEndsTheOthers) {
  std::atomic<size_t> begun{0};
  const Status status = run_in_parallel(3, 1'000'000, [&](size_t i) -> Status {
    begun++;
    return i == 50 ? Status(Error{Code::corrupt, "bad"}) : Status();
  });
  EXPECT_CODE(status, Code::corrupt);
  EXPECT_LT(begun, 1'000'000U);
  std::vector<std::atomic<int>> times(100);
  ASSERT_OK(run_in_parallel(7, times.size(), [&](size_t i) -> Status {
    times[i]++;
    return {};
  }));
  for (const auto& each : times) EXPECT_EQ(each, 1);
}

}  // namespace
}  // namespace trellis
