#include "range/embedded_ranges.h"

#include <gtest/gtest.h>

#include <thread>

#include "codec/local_keys.h"
#include "codec/meta_keys.h"
#include "engine/memory_engine.h"

namespace trellis {
namespace {

struct Opened {
  MemoryEngine engine;
  FakeClock clock{1'700'000'000'000};
  RangeAccounting accounting{16};
  std::unique_ptr<EmbeddedRanges> ranges;

  explicit Opened(size_t cache_bytes_max = 1 << 20) {
    auto opened = EmbeddedRanges::open(engine, clock, accounting,
                                       {.keeper = {}, .cache_bytes_max = cache_bytes_max});
    EXPECT_TRUE(opened.has_value());
    ranges = std::move(*opened);
  }
};

TEST(EmbeddedRanges, ALookupSaysWhatCameFromTheCache) {
  Opened opened;
  auto cold = opened.ranges->lookup("r-key");
  ASSERT_TRUE(cold.has_value());
  ASSERT_EQ(cold->size(), 2u);
  EXPECT_EQ((*cold)[0].level, "meta1");
  EXPECT_FALSE((*cold)[0].from_cache);
  EXPECT_EQ((*cold)[1].level, "meta2");
  EXPECT_EQ((*cold)[1].range.id, first_range_id);
  const auto warm = opened.ranges->lookup("r-key");
  EXPECT_TRUE((*warm)[0].from_cache);
  EXPECT_TRUE((*warm)[1].from_cache);

  // Behind the cache's back.
  const auto parts = opened.ranges->home().split({.range = bootstrap_range(), .at = "r"});
  ASSERT_TRUE(parts.has_value());
  const auto stale = opened.ranges->lookup("r-key");
  ASSERT_TRUE(stale.has_value());
  EXPECT_TRUE((*stale)[0].was_stale);
  EXPECT_EQ((*stale)[0].range, parts->first);
  EXPECT_FALSE((*stale)[1].from_cache);
  EXPECT_EQ((*stale)[1].range, parts->second);
  const auto again = opened.ranges->lookup("r-key");
  EXPECT_TRUE((*again)[1].from_cache);
  EXPECT_FALSE((*again)[1].was_stale);
}

// A range that changes between the look into the directory and that at the range is no damage.
TEST(EmbeddedRanges, LookupsBesideSplitsFindNoDamage) {
  Opened opened(1);  // nothing is cached
  std::jthread changes([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto whole = opened.ranges->home().find("r");
      if (!whole) return;
      const auto parts = opened.ranges->home().split({.range = *whole, .at = "r"});
      if (!parts || !opened.ranges->home().merge(parts->first, parts->second, "a test")) return;
    }
  });
  for (int i = 0; i < 3'000; i++) {
    const auto steps = opened.ranges->lookup("r-key");
    ASSERT_TRUE(steps.has_value()) << i << ": " << steps.error().message;
  }
}

TEST(EmbeddedRanges, Meta2AndWhatIsBeforeItTakeFewerSteps) {
  Opened opened;
  EXPECT_EQ(opened.ranges->lookup("\x03z")->size(), 1u);
  EXPECT_EQ(opened.ranges->lookup("\x02z")->at(0).level, "first");
  EXPECT_EQ(opened.ranges->lookup("\x01sxyz")->at(0).level, "first");
  EXPECT_EQ(opened.ranges->lookup(map_key_max).error().code, Code::invalid);
}

TEST(EmbeddedRanges, ADamagedDescriptorStopsNobodyElse) {
  Opened opened;
  ASSERT_TRUE(opened.ranges->keeper().split("r", 0, "").has_value());
  opened.ranges.reset();
  Commit damage;
  damage.writes.put(encode(RangeDescriptorKey{{}}), "nonsense");
  ASSERT_TRUE(commit(opened.engine, damage).has_value());
  RangeAccounting accounting(16);
  auto reopened = EmbeddedRanges::open(opened.engine, opened.clock, accounting, {});
  ASSERT_TRUE(reopened.has_value());
  EXPECT_FALSE((*reopened)->verify().has_value() && (*reopened)->verify()->clean());
  EXPECT_EQ((*reopened)->lookup("a").error().code, Code::corrupt);
  EXPECT_TRUE((*reopened)->home().find("r").has_value());
  EXPECT_EQ(accounting.ranges(), 1u);
  EXPECT_TRUE(accounting.find(ByteView("r")).has_value());
}

TEST(EmbeddedRanges, IdsOfRangesAreNotGivenTwice) {
  Opened opened;
  RangeKeeper& keeper = opened.ranges->keeper();
  const uint64_t first = keeper.split("r", 0, "")->second.id.value;
  ASSERT_TRUE(keeper.merge("a", "").has_value());
  opened.ranges.reset();
  RangeAccounting accounting(16);
  auto reopened = EmbeddedRanges::open(opened.engine, opened.clock, accounting, {});
  ASSERT_TRUE(reopened.has_value());
  EXPECT_GT(first, first_range_id.value);
  EXPECT_GT((*reopened)->keeper().split("r", 0, "")->second.id.value, first);
}

TEST(EmbeddedRanges, WhatTheDirectoryLostIsNotMadeUp) {
  Opened opened;
  for (const ByteView at : {"r", "s"})
    ASSERT_TRUE(opened.ranges->home().split({.range = *opened.ranges->home().find(at), .at = at}));
  Commit damage;
  damage.writes.remove("\x03s");
  ASSERT_TRUE(commit(opened.engine, damage).has_value());
  const auto lost = opened.ranges->lookup("r-key");
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, Code::corrupt);
  EXPECT_EQ(opened.ranges->rebuild()->directory.written, 1u);
  EXPECT_TRUE(opened.ranges->lookup("r-key").has_value());
}

}  // namespace
}  // namespace trellis
