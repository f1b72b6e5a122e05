#include "range/embedded_home.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "codec/local_keys.h"
#include "codec/meta_keys.h"
#include "codec/system_keys.h"
#include "engine/memory_engine.h"
#include "range/directory.h"

namespace trellis {
namespace {

struct Home {
  MemoryEngine engine;
  FakeClock clock{1'700'000'000'000};
  uint64_t last_id = 1;
  std::unique_ptr<EmbeddedHome> home = open();

  std::unique_ptr<EmbeddedHome> open() {
    auto opened = EmbeddedHome::open(
        engine, clock, {.next_id = [this]() -> Result<RangeId> { return RangeId{++last_id}; }});
    EXPECT_TRUE(opened.has_value());
    return std::move(*opened);
  }
  std::vector<RangeDescriptor> all() {
    std::vector<RangeDescriptor> ranges;
    EXPECT_TRUE(home->for_each([&](const RangeDescriptor& range) {
                      ranges.push_back(range);
                      return Visit::go_on;
                    })
                    .has_value());
    return ranges;
  }
  Result<std::pair<RangeDescriptor, RangeDescriptor>> split(ByteView at) {
    TRY_ASSIGN(const RangeDescriptor range, home->find(at));
    return home->split({.range = range, .at = at, .reason = "a test"});
  }
  // The ranges tile the map, and the directory has exactly the records that they need.
  void check() {
    Bytes expected_start;
    std::map<Bytes, Bytes> expected;
    for (const RangeDescriptor& range : all()) {
      ASSERT_EQ(range.start, expected_start);
      expected_start = range.end;
      const auto keys = directory_keys(range);
      ASSERT_TRUE(keys.has_value());
      for (const Bytes& key : *keys) expected[key] = encode_descriptor(range);
    }
    EXPECT_EQ(expected_start, map_key_max);
    std::map<Bytes, Bytes> found;
    const auto visit = [&](ByteView key, ByteView value) {
      found.emplace(key, value);
      return Visit::go_on;
    };
    ASSERT_TRUE(engine.scan({.begin = "\x02", .end = "\x04"}, visit).has_value());
    EXPECT_EQ(found, expected);
  }
};

TEST(EmbeddedHome, ADamagedEntryOfTheLogStopsNothing) {
  Home home;
  ASSERT_TRUE(home.split("r").has_value());
  Commit damage;
  damage.writes.put(encode(RangeLogKey{2}), "damaged");
  ASSERT_TRUE(commit(home.engine, damage).has_value());
  ASSERT_TRUE(home.split("x").has_value());
  EXPECT_EQ(home.all().size(), 3u);
  const auto events = home.home->log().read(0, 10);
  ASSERT_TRUE(events.has_value());
  ASSERT_EQ(events->size(), 2u);
  EXPECT_EQ(events->at(0).sequence, 3u);
  EXPECT_EQ(events->at(1).sequence, 1u);
}

TEST(EmbeddedHome, BeginsWithOneRangeAndStaysAsItWas) {
  Home world;
  ASSERT_EQ(world.all(), std::vector{bootstrap_range()});
  world.check();
  ASSERT_TRUE(world.split("m").has_value());
  world.home = world.open();
  EXPECT_EQ(world.all().size(), 2u);
  world.check();
}

TEST(EmbeddedHome, SplitsAndMergesAreOneCommitWithTheirReason) {
  Home world;
  const auto parts = world.split("r");
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ(parts->first.generation, 2u);
  EXPECT_EQ(parts->second.generation, 2u);
  EXPECT_EQ(parts->second.id.value, 2u);
  EXPECT_EQ(*world.home->find("q"), parts->first);
  EXPECT_EQ(*world.home->find("r"), parts->second);
  world.check();
  const auto whole = world.home->merge(parts->first, parts->second, "small");
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->generation, 3u);
  EXPECT_EQ(world.all(), std::vector{*whole});
  world.check();
  const auto events = world.home->log().read(0, 10);
  ASSERT_TRUE(events.has_value());
  ASSERT_EQ(events->size(), 3u);
  EXPECT_EQ((*events)[0].action, "merge");
  EXPECT_EQ((*events)[0].reason, "small");
  EXPECT_EQ((*events)[1].action, "split");
  EXPECT_EQ((*events)[1].right, parts->second);
  EXPECT_EQ((*events)[2].action, "bootstrap");
  EXPECT_EQ(world.home->log().read((*events)[0].sequence, 1)->at(0).action, "split");
}

TEST(EmbeddedHome, RefusesWhatIsNotAsKnown) {
  Home world;
  const RangeDescriptor old = world.all()[0];
  ASSERT_TRUE(world.split("m").has_value());
  const auto late = world.home->split({.range = old, .at = "r"});
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Code::conflict);
  const auto ranges = world.all();
  RangeDescriptor newer = ranges[1];
  newer.generation++;
  const auto merged = world.home->merge(ranges[0], newer, "");
  ASSERT_FALSE(merged.has_value());
  EXPECT_EQ(merged.error().code, Code::conflict);
  world.check();
}

TEST(EmbeddedHome, RefusesPlacesWhereNoRangeMayBegin) {
  Home world;
  const RangeDescriptor all = world.all()[0];
  for (const ByteView at : {ByteView(""), ByteView("\x01k"), ByteView("\x02"), ByteView("\x02zz"),
                            ByteView("\x03\xff\xff", 3), ByteView("\x03\xff\xff\x05", 4),
                            ByteView("\xff\xff", 2), ByteView("\xff\xff\x01", 3)}) {
    SCOPED_TRACE(to_hex(at));
    const auto split = world.home->split({.range = all, .at = at});
    ASSERT_FALSE(split.has_value());
    EXPECT_EQ(split.error().code, Code::invalid);
  }
  for (const ByteView at : {ByteView("\x03"), ByteView("\x03z"), ByteView("\x04"), ByteView("x")})
    EXPECT_TRUE(world.split(at).has_value()) << to_hex(at);
  world.check();
}

TEST(EmbeddedHome, AnySplitsAndMergesTileTheMap) {
  Home world;
  Random random(4);
  for (int i = 0; i < 500; i++) {
    const auto ranges = world.all();
    if (ranges.size() > 1 && random.one_in(2)) {
      const size_t left = random.below(ranges.size() - 1);
      ASSERT_TRUE(world.home->merge(ranges[left], ranges[left + 1], "").has_value());
    } else {
      Bytes at = random.bytes(1 + random.below(3));
      if (random.one_in(2)) at[0] = "\x03\x04xr"[random.below(4)];
      const auto split = world.split(at);
      if (!split) {
        ASSERT_EQ(split.error().code, Code::invalid) << split.error().message;
      }
    }
    ASSERT_NO_FATAL_FAILURE(world.check());
  }
}

TEST(EmbeddedHome, SaysWhenARangeIsMissing) {
  Home world;
  ASSERT_TRUE(world.split("m").has_value());
  Commit lost;
  lost.writes.remove(encode(RangeDescriptorKey{"m"}));
  ASSERT_TRUE(commit(world.engine, lost).has_value());
  const auto found = world.home->find("n");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, Code::corrupt);
  EXPECT_TRUE(world.home->find("a").has_value());
}

TEST(RangeLog, IsBounded) {
  MemoryEngine engine;
  RangeLog log(engine, 5);
  for (int i = 0; i < 20; i++) {
    Commit one;
    ASSERT_TRUE(log.append(one, {.sequence = 0,
                                 .time_ms = 1,
                                 .action = "split",
                                 .reason = std::to_string(i),
                                 .left = bootstrap_range(),
                                 .right = {}})
                    .has_value());
    ASSERT_TRUE(commit(engine, one).has_value());
  }
  const auto events = log.read(0, 100);
  ASSERT_EQ(events->size(), 5u);
  EXPECT_EQ(events->front().sequence, 20u);
  EXPECT_EQ(events->back().reason, "15");
}

}  // namespace
}  // namespace trellis
