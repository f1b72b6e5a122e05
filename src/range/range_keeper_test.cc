#include "range/range_keeper.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "codec/keyspace_keys.h"
#include "codec/meta_keys.h"
#include "codec/redis_keys.h"
#include "codec/tenant_keys.h"
#include "engine/memory_engine.h"
#include "range/directory.h"
#include "range/embedded_home.h"
#include "range/size_split.h"

namespace trellis {
namespace {

struct Kept {
  MemoryEngine engine;
  FakeClock clock{1'700'000'000'000};
  uint64_t last_id = 1;
  uint64_t walk_bytes_per_s = 0;
  std::vector<KeyspaceId> living;
  std::unique_ptr<EmbeddedHome> home;
  std::unique_ptr<RangeAccounting> accounting;
  std::unique_ptr<RangeKeeper> keeper;

  explicit Kept(uint64_t bytes_max = 10'000, uint64_t load_max = 1'000) {
    auto opened = EmbeddedHome::open(
        engine, clock, {.next_id = [this]() -> Result<RangeId> { return RangeId{++last_id}; }});
    EXPECT_TRUE(opened.has_value());
    home = std::move(*opened);
    restart(bytes_max, load_max);
  }
  void restart(uint64_t bytes_max, uint64_t load_max) {
    accounting = std::make_unique<RangeAccounting>(16);
    keeper = std::make_unique<RangeKeeper>(
        engine, clock, *home, *accounting,
        KeeperOptions{.range_bytes_max = bytes_max,
                      .range_load_max = load_max,
                      .walk_bytes_per_s = walk_bytes_per_s,
                      .node = NodeId{3},
                      .version = "test",
                      .living = [this]() -> Result<std::vector<KeyspaceId>> { return living; }});
    EXPECT_TRUE(keeper->load().has_value());
  }
  void put(ByteView key, size_t value_bytes) {
    Commit one;
    one.writes.put(key, Bytes(value_bytes, 'v'));
    EXPECT_TRUE(commit(engine, one).has_value());
  }
  void tick(int times = 1) {
    for (int i = 0; i < times; i++) {
      clock.advance_ms(1'000);
      const Status done = keeper->tick();
      ASSERT_TRUE(done.has_value()) << done.error().message;
    }
  }
  std::vector<RangeFigures> ranges() { return accounting->figures({}, 1'000'000); }
  std::string last_reason() { return home->log().read(0, 1)->at(0).reason; }
};

TEST(RangeKeeper, CutsAtTheBordersOfKeyspacesThatLive) {
  Kept kept(1 << 30);
  for (uint32_t id = 1; id <= 3'000; id++) kept.living.push_back({2 * id});
  ASSERT_NO_FATAL_FAILURE(kept.tick(10));
  const auto ranges = kept.ranges();
  ASSERT_EQ(ranges.size(), 6'001u);
  EXPECT_EQ(ranges[1].range.start, encode(RawKey{{2}, {}}));
  EXPECT_EQ(ranges[1].range.end, encode(RawKey{{4}, {}}));
  // Nothing is merged across them, however small.
  ASSERT_NO_FATAL_FAILURE(kept.tick(100));
  EXPECT_EQ(kept.ranges().size(), 6'001u);
  // A keyspace that lives no more keeps no range for itself.
  kept.living.clear();
  ASSERT_NO_FATAL_FAILURE(kept.tick(200));
  EXPECT_LT(kept.ranges().size(), 10u);
  EXPECT_TRUE(kept.last_reason().starts_with("small:")) << kept.last_reason();
}

TEST(RangeKeeper, CutsALargeRangeIntoAllItsPartsAtOnce) {
  Kept kept(10'000);
  for (int i = 0; i < 1'000; i++) kept.put(encode(RawKey{{5}, std::to_string(10'000 + i)}), 90);
  ASSERT_NO_FATAL_FAILURE(kept.tick());
  const auto ranges = kept.ranges();
  EXPECT_GE(ranges.size(), 18u);  // 100 KB in parts of 5 KB
  EXPECT_LE(ranges.size(), 25u);
  uint64_t keys = 0;
  for (const RangeFigures& figures : ranges) {
    size_t in_range = 0;
    const auto visit = [&](ByteView key, ByteView) {
      in_range += key[0] == 'r' ? 1 : 0;
      return Visit::go_on;
    };
    const auto between = [] { return Visit::go_on; };
    ASSERT_TRUE(kept.home->walk(figures.range, visit, between).has_value());
    EXPECT_LT(in_range, 100u);
    keys += in_range;
  }
  EXPECT_EQ(keys, 1'000u);
  EXPECT_TRUE(kept.last_reason().starts_with("size:")) << kept.last_reason();
}

TEST(RangeKeeper, RatesFollowWhileALargeRangeIsCounted) {
  Kept kept(10 << 20, 1'000'000);
  kept.walk_bytes_per_s = 100'000;
  kept.restart(10 << 20, 1'000'000);
  for (int i = 0; i < 40; i++) kept.put(encode(RawKey{{5}, std::to_string(i)}), 100'000);
  const Bytes read[] = {encode(RawKey{{5}, "1"})};
  kept.keeper->set_paused(true);
  ASSERT_NO_FATAL_FAILURE(kept.tick());
  for (int i = 0; i < 1'000; i++) kept.accounting->sampled(read, {});
  ASSERT_NO_FATAL_FAILURE(kept.tick());
  EXPECT_GT(kept.ranges()[0].reads_per_s, 1'000);
  kept.keeper->set_paused(false);
  const uint64_t before_us = kept.clock.monotonic_us();
  ASSERT_NO_FATAL_FAILURE(kept.tick());
  ASSERT_GE(kept.clock.monotonic_us() - before_us, 30'000'000u);
  ASSERT_EQ(kept.ranges().size(), 1u);
  EXPECT_NE(kept.ranges()[0].counted_ms, 0u);
  EXPECT_LT(kept.ranges()[0].reads_per_s, 30);
}

TEST(RangeKeeper, CutsAtTheBorderOfAKeyWhereThereIsOne) {
  SizeSplit split(1'000);
  for (int key = 0; key < 20; key++)
    for (int field = 0; field < 100; field++)
      split.add(
          encode(RedisSubKey{{5}, {{"0", std::to_string(100 + key), 1}, std::to_string(field)}}),
          Bytes(80, 'v'));
  const auto cuts = split.cuts(bootstrap_range(), split.bytes() / 4);
  ASSERT_EQ(cuts.size(), 3u);
  for (const Bytes& cut : cuts) EXPECT_TRUE(cut.ends_with(ByteView("\0\x01", 2))) << to_hex(cut);
  // One key that is more than a part is cut in its middle.
  SizeSplit one(1'000);
  for (int field = 0; field < 1'000; field++)
    one.add(encode(RedisSubKey{{5}, {{"0", "huge", 1}, std::to_string(field)}}), Bytes(80, 'v'));
  EXPECT_EQ(one.cuts(bootstrap_range(), one.bytes() / 4).size(), 3u);
}

TEST(RangeKeeper, CutsABusyRangeOnceAMinute) {
  Kept kept(1 << 30, 1'000);
  ASSERT_NO_FATAL_FAILURE(kept.tick(61));
  ASSERT_EQ(kept.ranges().size(), 1u);
  Random random(8);
  const auto load_for = [&](int seconds) {
    for (int s = 0; s < seconds; s++) {
      for (int i = 0; i < 200; i++) {  // 16 * 200 = 3,200 per second
        const std::vector<Bytes> reads = {encode(RawKey{{5}, std::to_string(random.below(1'000))})};
        kept.accounting->sampled(reads, {});
      }
      ASSERT_NO_FATAL_FAILURE(kept.tick());
    }
  };
  load_for(9);
  EXPECT_EQ(kept.ranges().size(), 1u);
  load_for(20);
  ASSERT_EQ(kept.ranges().size(), 2u);
  EXPECT_TRUE(kept.last_reason().starts_with("load:")) << kept.last_reason();
  load_for(30);
  EXPECT_EQ(kept.ranges().size(), 2u);
  load_for(60);
  EXPECT_GT(kept.ranges().size(), 2u);
  // And when the load is gone they are one again.
  ASSERT_NO_FATAL_FAILURE(kept.tick(400));
  EXPECT_EQ(kept.ranges().size(), 1u);
}

TEST(RangeKeeper, KeepsWhatIsStickyOrPausedAndSaysWhatItWouldDo) {
  Kept kept;
  ASSERT_NO_FATAL_FAILURE(kept.tick());
  ASSERT_TRUE(kept.keeper->split("r", kept.clock.unix_ms() + 600'000, "by hand").has_value());
  ASSERT_NO_FATAL_FAILURE(kept.tick(200));
  EXPECT_EQ(kept.ranges().size(), 2u);
  kept.keeper->set_paused(true);
  ASSERT_NO_FATAL_FAILURE(kept.tick(500));
  EXPECT_EQ(kept.ranges().size(), 2u);
  const auto plan = kept.keeper->plan();
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->size(), 1u);
  EXPECT_EQ(plan->at(0).kind, RangeAction::Kind::merge);
  EXPECT_EQ(kept.ranges().size(), 2u);
  kept.keeper->set_paused(false);
  ASSERT_NO_FATAL_FAILURE(kept.tick());
  EXPECT_EQ(kept.ranges().size(), 1u);
}

TEST(RangeKeeper, KnowsSizesAfterARestart) {
  Kept kept(1'000'000);
  kept.put(encode(RawKey{{5}, "k"}), 5'000);
  ASSERT_NO_FATAL_FAILURE(kept.tick(11));
  const uint64_t bytes = kept.ranges()[0].bytes;
  EXPECT_GT(bytes, 5'000u);
  kept.restart(1'000'000, 1'000);
  EXPECT_EQ(kept.ranges()[0].bytes, bytes);
  EXPECT_NE(kept.ranges()[0].counted_ms, 0u);
  const auto points = kept.keeper->series().read("range.bytes", "1", kept.clock.unix_ms() - 60'000,
                                                 kept.clock.unix_ms() + 1);
  ASSERT_EQ(points->size(), 1u);
  EXPECT_EQ(points->at(0).value, bytes);
}

// A sample of what removes much at once is far off: so it is counted again.
TEST(RangeKeeper, CountsAgainWhatChangedMuch) {
  Kept kept(100'000);
  kept.put(encode(RawKey{{5}, "k"}), 5'000);
  ASSERT_NO_FATAL_FAILURE(kept.tick());
  const uint64_t bytes = kept.ranges()[0].bytes;
  WriteSet removal;
  removal.remove(encode(RawKey{{5}, "k"}));
  removal.add(encode(CounterKey{{5}, Model::raw, CounterName::bytes, 0}), -5'000);
  kept.accounting->sampled({}, removal);
  EXPECT_EQ(kept.ranges()[0].bytes, 0u);
  EXPECT_TRUE(kept.keeper->plan()->empty());
  kept.accounting->sampled({}, removal);
  ASSERT_EQ(kept.keeper->plan()->size(), 1u);
  ASSERT_NO_FATAL_FAILURE(kept.tick());
  EXPECT_GE(kept.ranges()[0].bytes, bytes);
  EXPECT_EQ(kept.ranges()[0].drift_bytes, 0u);
}

TEST(RangeKeeper, CountsWhatIsLeftOfADeadKeyspace) {
  Kept kept(1 << 20);
  kept.living = {{5}};
  kept.put(encode(RawKey{{5}, "k"}), 500'000);
  ASSERT_NO_FATAL_FAILURE(kept.tick(100));
  const size_t ranges = kept.ranges().size();
  EXPECT_EQ(ranges, 3u);
  kept.living.clear();
  Commit removal;
  removal.writes.remove(encode(RawKey{{5}, "k"}));
  ASSERT_TRUE(commit(kept.engine, removal).has_value());
  ASSERT_NO_FATAL_FAILURE(kept.tick(100));
  EXPECT_EQ(kept.ranges().size(), 3u);  // what seems large is kept apart
  kept.clock.advance_ms(600'000);
  ASSERT_NO_FATAL_FAILURE(kept.tick(3));
  EXPECT_EQ(kept.ranges().size(), 1u);
}

TEST(RangeKeeper, MergesByHandWithTheRightNeighbour) {
  Kept kept;
  ASSERT_TRUE(kept.keeper->split("r", 0, "by hand").has_value());
  ASSERT_TRUE(kept.keeper->merge("a", "by hand").has_value());
  EXPECT_EQ(kept.ranges().size(), 1u);
  const auto last = kept.keeper->merge("a", "by hand");
  ASSERT_FALSE(last.has_value());
  EXPECT_EQ(last.error().code, Code::invalid);
}

}  // namespace
}  // namespace trellis
