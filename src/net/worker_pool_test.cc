#include "net/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"

namespace trellis {
namespace {

TEST(WorkerPool, RunsJobsSideBySide) {
  WorkerPool pool(3);
  std::latch all_in(3);  // opens only if three run at once
  std::latch done(3);
  for (int i = 0; i < 3; ++i) {
    pool.submit([&] {
      all_in.arrive_and_wait();
      done.count_down();
    });
  }
  done.wait();
}

TEST(WorkerPool, OneThreadKeepsTheOrder) {
  WorkerPool pool(1);
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) pool.submit([&order, i] { order.push_back(i); });
  pool.stop();
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(WorkerPool, LanesTakeTurns) {
  WorkerPool pool(1);
  std::latch all_given(1);
  std::string order;
  pool.submit([&] { all_given.wait(); });
  for (const char* job : {"a1", "a2", "a3", "b1", "b2", "c1"})
    pool.submit([&order, job] { order += job; }, static_cast<uint64_t>(job[0]));
  all_given.count_down();
  pool.stop();
  EXPECT_EQ(order, "a1b1c1a2b2a3");
}

TEST(WorkerPool, NoLaneHasAllThreads) {
  WorkerPool pool(4);
  std::latch other_ran(1);  // opens only if a thread is left for it
  for (int i = 0; i < 10; ++i) pool.submit([&] { other_ran.wait(); }, 1);
  pool.submit([&] { other_ran.count_down(); }, 2);
  pool.stop();
  EXPECT_TRUE(other_ran.try_wait());
}

TEST(WorkerPool, AnExceptionEndsOnlyItsJob) {
  const LogCapture log;
  WorkerPool pool(1);
  std::atomic<bool> has_run = false;
  pool.submit([] { throw std::runtime_error("oops"); });
  pool.submit([&has_run] { has_run = true; });
  pool.stop();
  EXPECT_TRUE(has_run);
  EXPECT_TRUE(log.contains("oops"));
}

TEST(WorkerPool, AfterStopJobsAreDestroyed) {
  WorkerPool pool(2);
  pool.stop();
  pool.stop();
  auto held = std::make_shared<int>(1);
  pool.submit([held] { FAIL(); });
  EXPECT_EQ(held.use_count(), 1);
}

TEST(WorkerPool, TakesJobsFromManyThreads) {
  std::atomic<int> runs = 0;
  {
    WorkerPool pool(4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 1000; ++j) pool.submit([&runs] { ++runs; });
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(runs, 4000);
}

}  // namespace
}  // namespace trellis
