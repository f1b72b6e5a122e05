#include "range/range_keeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "base/random.h"
#include "codec/keyspace_keys.h"
#include "codec/meta_keys.h"
#include "codec/redis_keys.h"
#include "codec/tenant_keys.h"
#include "engine/memory_engine.h"
#include "range/directory.h"
#include "range/embedded_home.h"
#include "range/size_split.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

// Ranges that can be made to fail, or to wait.
class HookedHome final : public RangeHome {
 public:
  explicit HookedHome(std::unique_ptr<EmbeddedHome> home) : home_(std::move(home)) {}
  std::function<Status(const RangeDescriptor&)> before_all = [](const auto&) { return Status(); };
  std::function<Status()> before_merge = [] { return Status(); };
  std::function<void()> before_walk = [] {};

  Result<RangeDescriptor> find(ByteView address) override { return home_->find(address); }
  Status for_each(FunctionRef<Visit(const RangeDescriptor&)> visit) override {
    return home_->for_each(visit);
  }
  Result<std::pair<RangeDescriptor, RangeDescriptor>> split(const SplitRequest& request) override {
    TRY(before_all(request.range));
    return home_->split(request);
  }
  Result<RangeDescriptor> merge(const RangeDescriptor& left, const RangeDescriptor& right,
                                std::string_view reason) override {
    TRY(before_all(left));
    TRY(before_merge());
    return home_->merge(left, right, reason);
  }
  Status walk(const RangeDescriptor& range, ScanVisitor visit,
              FunctionRef<Visit()> between) override {
    TRY(before_all(range));
    before_walk();
    return home_->walk(range, visit, between);
  }
  const RangeLog& log() const { return home_->log(); }

 private:
  const std::unique_ptr<EmbeddedHome> home_;
};

struct Kept {
  MemoryEngine engine;
  FakeClock clock{1'700'000'000'000};
  uint64_t last_id = 1;
  uint64_t keys_max = 1'000'000;
  uint64_t walk_bytes_per_s = 0;
  uint64_t relist_ms = 0;
  std::vector<KeyspaceId> living;
  std::unique_ptr<HookedHome> home;
  std::unique_ptr<RangeAccounting> accounting;
  std::unique_ptr<RangeKeeper> keeper;

  explicit Kept(uint64_t bytes_max = 10'000, uint64_t load_max = 1'000) {
    auto opened = EmbeddedHome::open(
        engine, clock, {.next_id = [this]() -> Result<RangeId> { return RangeId{++last_id}; }});
    EXPECT_TRUE(opened.has_value());
    home = std::make_unique<HookedHome>(std::move(*opened));
    restart(bytes_max, load_max);
  }
  void restart(uint64_t bytes_max, uint64_t load_max) {
    accounting = std::make_unique<RangeAccounting>(16);
    keeper = std::make_unique<RangeKeeper>(
        engine, clock, *home, *accounting,
        KeeperOptions{.range_bytes_max = bytes_max,
                      .range_keys_max = keys_max,
                      .range_load_max = load_max,
                      .walk_bytes_per_s = walk_bytes_per_s,
                      .relist_ms = relist_ms,
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
      while (keeper->count_next()) continue;
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

// One range is counted, slowly; meanwhile the rounds go on: rates, borders, merges.
TEST(RangeKeeper, DecidesWhileALargeRangeIsCounted) {
  Kept kept(10 << 20, 1'000'000);
  kept.walk_bytes_per_s = 100'000;
  kept.restart(10 << 20, 1'000'000);
  for (int i = 0; i < 40; i++) kept.put(encode(RawKey{{5}, std::to_string(i)}), 100'000);
  ASSERT_TRUE(kept.keeper->tick().has_value());
  std::atomic<bool> is_counting = false;
  std::atomic<bool> go_on = false;
  kept.home->before_walk = [&] {
    is_counting = true;
    is_counting.notify_all();
    go_on.wait(false);
  };
  std::thread counting([&] { EXPECT_TRUE(kept.keeper->count_next()); });
  is_counting.wait(false);
  kept.living = {{7}};
  kept.clock.advance_ms(1'000);
  EXPECT_TRUE(kept.keeper->tick().has_value());
  EXPECT_EQ(kept.ranges().size(), 3u);
  const uint64_t before_us = kept.clock.monotonic_us();
  go_on = true;
  go_on.notify_all();
  counting.join();
  EXPECT_GE(kept.clock.monotonic_us() - before_us, 30'000'000u);  // it keeps to its pace
  // What was counted is no range any more.
  EXPECT_EQ(kept.ranges()[0].counted_ms, 0u);
}

TEST(RangeKeeper, CutsByKeysToo) {
  Kept kept(1 << 20);
  kept.keys_max = 1'000;
  kept.restart(1 << 20, 1'000);
  for (int i = 0; i < 5'000; i++) kept.put(encode(RawKey{{5}, std::to_string(10'000 + i)}), 1);
  ASSERT_TRUE(kept.keeper->tick().has_value());
  while (kept.keeper->count_next()) continue;
  EXPECT_EQ(kept.last_reason(), "keys: 5004 keys in 50114 bytes, over 1000 keys: 10 parts");
  const auto ranges = kept.ranges();
  EXPECT_EQ(ranges.size(), 10u);
  for (const RangeFigures& figures : ranges) {
    EXPECT_GT(figures.keys, 400u);
    EXPECT_LT(figures.keys, 600u);
  }
  // Two together are half of it and more: they stay apart, though they are small.
  ASSERT_NO_FATAL_FAILURE(kept.tick(100));
  EXPECT_EQ(kept.ranges().size(), 10u);
  for (int i = 0; i < 4'990; i++) {
    Commit removal;
    removal.writes.remove(encode(RawKey{{5}, std::to_string(10'000 + i)}));
    ASSERT_TRUE(commit(kept.engine, removal).has_value());
  }
  for (const RangeFigures& figures : kept.ranges()) kept.keeper->set_counted({figures.range, 9, 9});
  const auto plan = kept.keeper->plan(10);
  ASSERT_EQ(plan->total, 5u);
  EXPECT_EQ(plan->actions[0].reason,
            "small: 18 bytes in 18 keys together, 0 operations per second");
  for (const RangeFigures& figures : kept.ranges())
    kept.keeper->set_counted({figures.range, 9, 125});
  EXPECT_EQ(kept.keeper->plan(10)->total, 0u);
  kept.keeper->set_counted({kept.ranges()[4].range, 9, 1'001});
  ASSERT_EQ(kept.keeper->plan(10)->total, 1u);
  EXPECT_EQ(kept.keeper->plan(10)->actions[0].reason,
            "keys: about 1001 keys in 9 bytes, over 1000 keys");
}

// However sizes are spread, no part is over either limit, and there are not many more than needed.
TEST(RangeKeeper, PartsKeepToBothLimits) {
  Random random(test_seed(77));
  for (int round = 0; round < 50; round++) {
    const SizeLimits limits{20'000 + random.below(100'000), 500 + random.below(2'000)};
    SizeSplit split(limits);
    std::vector<std::pair<Bytes, Bytes>> entries;
    uint64_t value_bytes = 1;
    for (size_t i = 0; i < 20'000; i++) {
      if (random.one_in(2'000)) value_bytes = 1 + random.below(random.one_in(2) ? 10 : 200);
      entries.emplace_back(encode(RawKey{{5}, std::to_string(100'000 + i)}),
                           Bytes(random.below(value_bytes), 'v'));
    }
    const bool shuffled = random.one_in(2);
    auto shown = entries;
    for (size_t i = shown.size(); shuffled && i > 1; i--)
      std::swap(shown[i - 1], shown[random.below(i)]);
    for (const auto& [key, value] : shown) split.add(key, value);
    const auto parts = split.parts(bootstrap_range());
    ASSERT_GE(parts.size(), 2u);
    const double bytes_share =
        static_cast<double>(split.bytes()) / static_cast<double>(limits.bytes);
    const double keys_share = static_cast<double>(split.keys()) / static_cast<double>(limits.keys);
    EXPECT_LE(static_cast<double>(parts.size()), 2 * (bytes_share + keys_share) + 1);
    uint64_t bytes_said = 0;
    uint64_t keys_said = 0;
    size_t at = 0;
    for (size_t i = 0; i < parts.size(); i++) {
      uint64_t bytes = 0;
      uint64_t keys = 0;
      for (;
           at < entries.size() && (i + 1 == parts.size() || entries[at].first < parts[i + 1].start);
           at++) {
        bytes += entries[at].first.size() + entries[at].second.size();
        keys++;
      }
      // Of what comes in no order a step is a sample: it may be far off, and is counted again.
      EXPECT_FALSE(limits.are_exceeded(shuffled ? bytes / 2 : bytes, shuffled ? keys / 2 : keys))
          << "round " << round << " part " << i << " of " << parts.size() << ": " << bytes << " of "
          << limits.bytes << " bytes, " << keys << " of " << limits.keys << " keys";
      bytes_said += parts[i].bytes;
      keys_said += parts[i].keys;
    }
    EXPECT_EQ(bytes_said, split.bytes());
    EXPECT_EQ(keys_said, split.keys());
  }
}

TEST(RangeKeeper, CutsAtTheBorderOfAKeyWhereThereIsOne) {
  const auto show = [](SizeSplit& split, int keys, int fields) {
    for (int key = 0; key < keys; key++)
      for (int field = 0; field < fields; field++)
        split.add(
            encode(RedisSubKey{{5}, {{"0", std::to_string(100 + key), 1}, std::to_string(field)}}),
            Bytes(80, 'v'));
  };
  SizeSplit split({100'000, 1'000'000});
  show(split, 20, 100);
  const auto parts = split.parts(bootstrap_range());
  ASSERT_GE(parts.size(), 4u);
  for (size_t i = 1; i < parts.size(); i++)
    EXPECT_TRUE(parts[i].start.ends_with(ByteView("\0\x01", 2))) << to_hex(parts[i].start);
  // One key that is more than a part is cut in its middle.
  SizeSplit one({50'000, 1'000'000});
  show(one, 1, 1'000);
  EXPECT_GE(one.parts(bootstrap_range()).size(), 4u);
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
  const auto plan = kept.keeper->plan(10);
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->total, 1u);
  EXPECT_EQ(plan->actions.at(0).kind, RangeAction::Kind::merge);
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

// A stored size is of the range as it was: of one that was cut since nothing is known.
TEST(RangeKeeper, SizesOfAnOlderGenerationAreForgotten) {
  Kept kept(1'000'000);
  kept.put(encode(RawKey{{5}, "k"}), 5'000);
  ASSERT_NO_FATAL_FAILURE(kept.tick(11));
  ASSERT_TRUE(kept.keeper->split("r", 0, "by hand").has_value());
  kept.restart(1'000'000, 1'000);  // before figures were stored again
  for (const RangeFigures& figures : kept.ranges()) {
    EXPECT_EQ(figures.counted_ms, 0u);
    EXPECT_EQ(figures.bytes, 0u);
  }
  ASSERT_NO_FATAL_FAILURE(kept.tick());
  EXPECT_GT(kept.ranges()[1].bytes, 5'000u);
}

TEST(RangeKeeper, ABadRangeKeepsNoOtherFromItsTurn) {
  Kept kept(1'000'000);
  for (uint32_t id = 1; id <= 5; id++)
    ASSERT_TRUE(kept.keeper->split(encode(RawKey{{id}, {}}), 0, "").has_value());
  const RangeId bad = kept.ranges()[2].range.id;
  unsigned tried = 0;
  kept.home->before_all = [&](const RangeDescriptor& range) -> Status {
    if (range.id != bad) return {};
    tried++;
    return Error{Code::unavailable, "its disk is gone"};
  };
  ASSERT_NO_FATAL_FAILURE(kept.tick(62));
  for (const RangeFigures& figures : kept.ranges())
    EXPECT_EQ(figures.counted_ms == 0, figures.range.id == bad) << to_string(figures.range);
  ASSERT_NO_FATAL_FAILURE(kept.tick(60));
  EXPECT_EQ(kept.ranges().size(), 3u);  // what is left of it, it, what is right of it
  EXPECT_EQ(tried, 4u);                 // after 10, 20, 40 s
  // As soon as it is well again, and was waited for, it is a range like others.
  kept.home->before_all = [](const RangeDescriptor&) { return Status(); };
  ASSERT_NO_FATAL_FAILURE(kept.tick(200));
  EXPECT_EQ(kept.ranges().size(), 1u);
}

// Its neighbour is cut all the same, when that is due.
TEST(RangeKeeper, ARangeThatCannotBeMergedHoldsItsNeighbourUpInNothingElse) {
  Kept kept(10'000);
  const Bytes middle = encode(RawKey{{5}, "m"});
  ASSERT_TRUE(kept.keeper->split(middle, 0, "").has_value());
  kept.home->before_merge = [] { return Status(Error{Code::unavailable, "its disk is gone"}); };
  ASSERT_NO_FATAL_FAILURE(kept.tick(62));
  for (int i = 0; i < 100; i++) kept.put(encode(RawKey{{5}, std::to_string(10 + i)}), 200);
  kept.keeper->set_counted({kept.ranges()[0].range, 20'000, 100});
  ASSERT_NO_FATAL_FAILURE(kept.tick());
  EXPECT_GE(kept.ranges().size(), 4u);
}

TEST(RangeKeeper, AStoreThatIsGoneIsNotAskedForEveryRange) {
  Kept kept(1'000'000);
  for (uint32_t id = 1; id <= 20; id++)
    ASSERT_TRUE(kept.keeper->split(encode(RawKey{{10 * id}, {}}), 0, "").has_value());
  for (uint32_t id = 1; id <= 200; id++) kept.living.push_back({id});
  unsigned tried = 0;
  kept.home->before_all = [&](const RangeDescriptor&) -> Status {
    tried++;
    return Error{Code::unavailable, "nobody answers"};
  };
  kept.clock.advance_ms(1'000);
  const Status done = kept.keeper->tick();
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::unavailable);
  EXPECT_EQ(tried, 10u);
  kept.home->before_all = [](const RangeDescriptor&) { return Status(); };
  ASSERT_NO_FATAL_FAILURE(kept.tick(12));
  EXPECT_EQ(kept.ranges().size(), 401u);
}

// Several keepers of the same ranges, and hands: each learns what the others did.
TEST(RangeKeeper, LearnsWhatOthersMadeOfTheRanges) {
  Random random(test_seed(5));
  Kept kept(1 << 30);
  kept.relist_ms = 10'000;
  kept.restart(1 << 30, 1'000);
  kept.keeper->set_paused(true);
  RangeHome& others = *kept.home;
  for (int round = 0; round < 100; round++) {
    for (uint64_t i = random.below(10); i > 0; i--) {
      const Bytes at = encode(RawKey{{static_cast<uint32_t>(random.below(200))}, {}});
      const RangeDescriptor range = *others.find(at);
      if (random.one_in(3) && range.end != map_key_max) {
        ASSERT_TRUE(others.merge(range, *others.find(range.end), "others").has_value());
      } else if (range.start != at) {
        ASSERT_TRUE(others.split({.range = range, .at = at}).has_value());
      }
    }
    // By hand, through a keeper that knows only the half of it.
    const Bytes by_hand = encode(RawKey{{static_cast<uint32_t>(random.below(200))}, {}});
    discard(kept.keeper->split(by_hand, 0, "by hand"));
    ASSERT_NO_FATAL_FAILURE(kept.tick(11));
    std::vector<RangeDescriptor> there;
    ASSERT_TRUE(others
                    .for_each([&](const RangeDescriptor& range) {
                      there.push_back(range);
                      return Visit::go_on;
                    })
                    .has_value());
    std::vector<RangeDescriptor> known;
    for (const RangeFigures& figures : kept.ranges()) known.push_back(figures.range);
    ASSERT_EQ(known, there) << "round " << round;
  }
}

TEST(RangeKeeper, PlansManyRangesPieceByPiece) {
  Kept kept(1 << 30);
  std::vector<RangeDescriptor> many;
  Bytes start;
  for (uint32_t i = 1; i <= 25'001; i++) {
    Bytes end = i == 25'001 ? Bytes(map_key_max) : encode(RawKey{{i}, {}});
    many.push_back({RangeId{i}, start, end, 7, {}, 0});
    start = std::move(end);
  }
  kept.accounting->replace(many, 0);
  for (const RangeDescriptor& range : many) kept.keeper->set_counted({range, 1, 1});
  const auto plan = kept.keeper->plan(250);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->total, 300u);  // 100 of each 10,000, and of the rest
  std::set<RangeId> seen;
  for (const RangeAction& action : plan->actions) {
    EXPECT_TRUE(seen.insert(action.range.id).second);
    EXPECT_TRUE(seen.insert(action.right->id).second);
  }
  EXPECT_EQ(kept.keeper->plan(3)->actions.size(), 3u);
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
  EXPECT_EQ(kept.keeper->plan(10)->total, 0u);
  kept.accounting->sampled({}, removal);
  ASSERT_EQ(kept.keeper->plan(10)->total, 1u);
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

// Its two threads beside writers and hands: what it knows in the end is what there is.
TEST(RangeKeeper, RunsBesideWritersAndHands) {
  MemoryEngine engine;
  SystemClock clock;
  std::atomic<uint64_t> last_id = 1;
  auto home = EmbeddedHome::open(
      engine, clock, {.next_id = [&]() -> Result<RangeId> { return RangeId{++last_id}; }});
  ASSERT_TRUE(home.has_value());
  RangeAccounting accounting(16);
  RangeKeeper keeper(engine, clock, **home, accounting,
                     {.range_bytes_max = 5'000,
                      .range_keys_max = 50,
                      .walk_bytes_per_s = 0,
                      .relist_ms = 5,
                      .recount_ms = 5,
                      .tick_ms = 1});
  ASSERT_TRUE(keeper.load().has_value());
  keeper.start();
  const uint64_t seed = test_seed(12);
  std::vector<std::thread> others;
  for (uint64_t i = 0; i < 2; i++)
    others.emplace_back([&, i] {
      Random random(seed + i);
      for (int n = 0; n < 5'000; n++) {
        const Bytes key = encode(RawKey{{5}, std::to_string(random.below(1'000))});
        Commit one;
        one.writes.put(key, Bytes(random.below(50), 'v'));
        EXPECT_TRUE(commit(engine, one).has_value());
        one.writes.add(encode(CounterKey{{5}, Model::raw, CounterName::keys, 0}), 1);
        accounting.sampled({}, one.writes);  // which thinks of 16: so ranges seem too large soon
        if (random.one_in(10)) discard(keeper.split(key, 0, "by hand"));
        if (random.one_in(10)) discard(keeper.merge(key, "by hand"));
        if (random.one_in(50)) discard(keeper.plan(10));
        if (random.one_in(50)) accounting.hottest(3);
      }
    });
  for (std::thread& other : others) other.join();
  keeper.stop();
  std::vector<RangeDescriptor> there;
  Bytes end;
  ASSERT_TRUE((*home)
                  ->for_each([&](const RangeDescriptor& range) {
                    EXPECT_EQ(range.start, end);
                    end = range.end;
                    there.push_back(range);
                    return Visit::go_on;
                  })
                  .has_value());
  EXPECT_EQ(end, map_key_max);
  const auto events = (*home)->log().read(0, 100'000);
  ASSERT_TRUE(events.has_value());
  EXPECT_TRUE(std::any_of(events->begin(), events->end(), [](const RangeEvent& event) {
    return event.reason.starts_with("keys: ");
  }));
  std::vector<RangeDescriptor> known;
  for (const RangeFigures& figures : accounting.figures({}, 1'000'000))
    known.push_back(figures.range);
  EXPECT_EQ(known, there);
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
