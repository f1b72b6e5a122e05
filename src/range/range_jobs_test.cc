#include "range/range_jobs.h"

#include <gtest/gtest.h>

#include <thread>

#include "codec/keyspace_keys.h"
#include "codec/local_keys.h"
#include "engine/memory_engine.h"
#include "range/embedded_home.h"

namespace trellis {
namespace {

struct Jobs {
  MemoryEngine engine;
  SystemClock clock;
  uint64_t last_id = 1;
  std::unique_ptr<EmbeddedHome> home;
  std::mutex mutex;
  std::map<uint64_t, uint64_t> counted;
  std::unique_ptr<RangeJobs> jobs;

  Jobs() {
    home = std::move(*EmbeddedHome::open(
        engine, clock, {.next_id = [this]() -> Result<RangeId> { return RangeId{++last_id}; }}));
    jobs = std::make_unique<RangeJobs>(
        *home, clock,
        RangeJobs::Hooks{.counted =
                             [this](const RangeDescriptor& range, const RangeSum& sum) {
                               const std::lock_guard lock(mutex);
                               counted[range.id.value] = sum.entries;
                             },
                         .bytes_total = [] { return uint64_t{1'000}; }});
    Commit filling;
    for (int i = 0; i < 1'000; i++)
      filling.writes.put(encode(RawKey{{5}, std::to_string(10'000 + i)}), Bytes(1'000, 'v'));
    EXPECT_TRUE(commit(engine, filling).has_value());
    for (int i = 1; i < 10; i++) {
      const Bytes at = encode(RawKey{{5}, std::to_string(10'000 + 100 * i)});
      EXPECT_TRUE(home->split({.range = *home->find(at), .at = at}).has_value());
    }
  }
  RangeJobStatus wait(uint64_t id) {
    while (true) {
      const RangeJobStatus status = *jobs->find(id);
      if (status.finished_ms != 0) return status;
      std::this_thread::yield();
    }
  }
};

TEST(RangeJobs, CountAllRanges) {
  Jobs world;
  const auto job = world.jobs->start({.kind = RangeJobKind::recount, .threads = 3});
  ASSERT_TRUE(job.has_value());
  const RangeJobStatus done = world.wait(job->id);
  EXPECT_EQ(done.state, RangeJobState::done);
  EXPECT_EQ(done.ranges_done, 10u);
  EXPECT_EQ(done.ranges_total, 10u);
  EXPECT_EQ(done.bytes_done, done.sum.bytes);
  ASSERT_EQ(world.counted.size(), 10u);
  EXPECT_EQ(world.counted.at(3), 100u);
}

TEST(RangeJobs, CheckFindsThatTwoWalksAgree) {
  Jobs world;
  const RangeJobStatus first =
      world.wait(world.jobs->start({.kind = RangeJobKind::check, .threads = 2})->id);
  EXPECT_EQ(first.state, RangeJobState::done);
  EXPECT_TRUE(first.findings.empty());
  // The sum says what is stored, wherever the ranges are cut, and nothing else.
  Commit change;
  const Bytes key = encode(RawKey{{5}, "10005"});
  change.writes.put(key, Bytes(1'000, 'w'));
  ASSERT_TRUE(commit(world.engine, change).has_value());
  const RangeJobStatus second = world.wait(world.jobs->start({.kind = RangeJobKind::check})->id);
  EXPECT_EQ(second.sum.bytes, first.sum.bytes);
  EXPECT_NE(to_hex(second.sum), to_hex(first.sum));
  // And that of each range, of what is in it.
  const auto before = *world.jobs->checked(first.id, "", 100);
  const auto after = *world.jobs->checked(second.id, "", 100);
  ASSERT_EQ(before.size(), 10u);
  ASSERT_EQ(after.size(), 10u);
  for (size_t i = 0; i < 10; i++) EXPECT_EQ(before[i].sum == after[i].sum, i != 0) << i;
  const auto page = *world.jobs->checked(second.id, key + "z", 2);
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].range, after[0].range);
}

TEST(RangeJobs, AMapWithAHoleIsNotSaidToBeChecked) {
  for (const bool is_last : {false, true}) {
    Jobs world;
    const Bytes start = encode(RawKey{{5}, is_last ? "10900" : "10400"});
    Commit damage;
    damage.writes.remove(encode(RangeDescriptorKey{start}));
    ASSERT_TRUE(commit(world.engine, damage).has_value());
    for (const RangeJobKind kind : {RangeJobKind::check, RangeJobKind::recount}) {
      const auto job = world.jobs->start({.kind = kind});
      ASSERT_FALSE(job.has_value());
      EXPECT_EQ(job.error().code, Code::corrupt);
      EXPECT_NE(job.error().message.find(to_hex(start)), std::string::npos) << job.error().message;
    }
    ASSERT_TRUE(world.home->repair(0).has_value());
    EXPECT_TRUE(world.jobs->start({.kind = RangeJobKind::check}).has_value());
  }
}

TEST(RangeJobs, PauseResumeAndCancel) {
  Jobs world;
  const auto job = world.jobs->start(
      {.kind = RangeJobKind::recount, .threads = 1, .bytes_per_s = 1'000});  // takes minutes
  ASSERT_TRUE(job.has_value());
  const auto busy = world.jobs->start({.kind = RangeJobKind::check});
  ASSERT_FALSE(busy.has_value());
  EXPECT_EQ(busy.error().code, Code::busy);
  EXPECT_EQ(world.jobs->set_paused(job->id, true)->state, RangeJobState::paused);
  ASSERT_TRUE(world.jobs->set_limit(job->id, 0).has_value());
  EXPECT_EQ(world.jobs->find(job->id)->finished_ms, 0u);
  EXPECT_EQ(world.jobs->set_paused(job->id, false)->state, RangeJobState::running);
  EXPECT_EQ(world.wait(job->id).state, RangeJobState::done);

  const auto slow =
      world.jobs->start({.kind = RangeJobKind::recount, .threads = 1, .bytes_per_s = 1'000});
  ASSERT_TRUE(world.jobs->cancel(slow->id).has_value());
  EXPECT_EQ(world.wait(slow->id).state, RangeJobState::canceled);
  EXPECT_EQ(world.jobs->list().size(), 2u);
  EXPECT_EQ(world.jobs->find(77).error().code, Code::not_found);
}

}  // namespace
}  // namespace trellis
