#include "cluster_engine/range_router.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <semaphore>
#include <thread>

#include "cluster_engine/range_change.h"
#include "object_store/fake_object_store.h"
#include "object_store/faulty_object_store.h"
#include "support/expect_ok.h"

namespace trellis {
namespace {

constexpr size_t cache_bytes = 64 * 1024 * 1024;

class Router : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(bootstrap_ranges(store_)); }

  FakeObjectStore store_;
  FakeClock clock_{0};
  FaultyObjectStore client_{store_};
  RangeRouter router_{client_, clock_, 1'000, cache_bytes};
};

TEST_F(Router, ThoseWhoMissTheSameShareOneLookup) {
  constexpr uint64_t callers = 8;
  // The first one waits in its lookup until all others have missed as well.
  client_.before_each([&](const PassedPoint& passed) {
    if (passed.point != "directory.read" || passed.nth != 1) return;
    while (router_.figures().misses < callers) std::this_thread::yield();
  });
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < callers; i++)
    threads.emplace_back([&] { EXPECT_EQ((*router_.find("k"))->id, first_range_id); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(router_.figures().lookups, 1u);
  EXPECT_EQ(client_.passed().size(), 2u);  // the directory, and the header that confirms it
}

// What one finds in the middle of a change is no error of those who waited for its lookup.
TEST_F(Router, ALookupThatMeetsASplitDoesNotSpoilThoseOfOthers) {
  FaultyObjectStore dying(store_);
  dying.plan({.point = "split.commit", .mode = FaultMode::crash_before});
  EXPECT_FALSE(split_range(dying, *find_range(store_, "k"), "m", RangeId{2}).has_value());
  for (const char* const address : {"k", "z"}) {
    const Result<RangePointer> range = router_.find(address);
    ASSERT_OK(range);
    EXPECT_EQ((*range)->state, RangeState::split);
    EXPECT_EQ((*range)->may_write(address), Bytes(address) < "m");
  }
  EXPECT_EQ(router_.figures().entries, 0u);  // it is not to be written by who knows it from there
}

TEST_F(Router, ManyRangesWithoutADirectoryAreWalkedOnce) {
  constexpr uint64_t ranges = 12'000;
  const auto border = [](uint64_t i) { return fmt::format("k{:05}", i); };
  store_.write("test", "r.1", {.changes = {RemoveObject{}}});
  for (uint64_t i = 1; i <= ranges; i++) {
    const RangeHeader header{.id = RangeId{i},
                             .generation = 1,
                             .start = i == 1 ? "" : border(i),
                             .end = i == ranges ? "\xff\xff" : border(i + 1),
                             .right = RangeId{i == ranges ? 0 : i + 1},
                             .other = {},
                             .split_at = {}};
    ASSERT_GE(store_.write("test", range_object_name(header.id),
                           {.create_exclusively = true, .changes = header_changes(header)}),
              0);
  }
  EXPECT_EQ((*router_.find("z"))->id.value, ranges);
  const size_t reads = client_.passed().size();
  EXPECT_GT(reads, ranges);
  EXPECT_EQ((*router_.find(border(11'000)))->id.value, 11'000u);
  EXPECT_EQ((*router_.find(border(11'000), Side::before))->id.value, 10'999u);
  EXPECT_EQ(client_.passed().size(), reads);
}

TEST_F(Router, LinksInACircleAreAnError) {
  ASSERT_OK(split_range(store_, *find_range(store_, "m"), "m", RangeId{2}));
  ASSERT_OK(split_range(store_, *find_range(store_, "p"), "p", RangeId{3}));
  store_.write("break", "r.2", {.changes = {SetAttribute{"right", "1"}}});
  store_.write("break", "r.1", {.changes = {OmapRemoveRange{"d\x02", "d\x04"}}});
  EXPECT_CODE(router_.find("z"), Code::corrupt);
}

}  // namespace
}  // namespace trellis
