#include "range/accounting.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "codec/keyspace_keys.h"
#include "codec/meta_keys.h"
#include "codec/tenant_keys.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr uint64_t second_us = 1'000'000;

RangeDescriptor accounted_range(uint64_t id, ByteView start, ByteView end,
                                uint64_t generation = 1) {
  return {RangeId{id}, Bytes(start), Bytes(end), generation, {}, 0};
}

WriteSet put_of(ByteView key, int64_t bytes, int64_t keys) {
  WriteSet writes;
  writes.put(key, "v");
  writes.add(encode(CounterKey{{5}, Model::raw, CounterName::bytes, 0}), bytes);
  writes.add(encode(CounterKey{{5}, Model::raw, CounterName::keys, 0}), keys);
  return writes;
}

size_t news(RangeAccounting& accounting) {
  size_t count = 0;
  EXPECT_TRUE(accounting
                  .take_news([&](std::span<const RangeFigures> piece) {
                    count += piece.size();
                    return Status();
                  })
                  .has_value());
  return count;
}

TEST(RangeAccounting, GivesATransactionToItsRange) {
  RangeAccounting accounting(16);
  const RangeDescriptor all[] = {accounted_range(1, "", "m"), accounted_range(2, "m", map_key_max)};
  accounting.replace(all, 0);
  accounting.tick(second_us, 1e9);
  for (int i = 0; i < 100; i++) {
    accounting.sampled({}, put_of(encode(RawKey{{5}, "k"}), 10, 1));
    const std::vector<Bytes> reads = {"a", "b", "n"};
    accounting.sampled(reads, {});
  }
  accounting.tick(101 * second_us, 1e9);  // long enough for a rate to be what it is
  const auto figures = accounting.figures("", 10);
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_NEAR(figures[0].reads_per_s, 32, 0.1);  // 2 x 16 x 100 in 100 s
  EXPECT_EQ(figures[0].writes_per_s, 0);
  EXPECT_NEAR(figures[1].reads_per_s, 16, 0.1);
  EXPECT_NEAR(figures[1].writes_per_s, 16, 0.1);
  EXPECT_EQ(figures[1].bytes, 16'000u);
  EXPECT_EQ(figures[1].keys, 1'600u);
  EXPECT_EQ(news(accounting), 2u);
  EXPECT_EQ(news(accounting), 0u);
  EXPECT_TRUE(figures[0].was_used);
  accounting.set_size(all[1], 7, 3, 1'000);
  RangeDescriptor newer = all[1];
  newer.generation++;
  accounting.set_size(newer, 9, 9, 2'000);  // nobody knows it

  EXPECT_EQ(accounting.find("x")->bytes, 7u);
  EXPECT_EQ(accounting.find("x")->counted_ms, 1'000u);
  EXPECT_EQ(news(accounting), 1u);
}

TEST(RangeAccounting, SharesAndAddsUp) {
  RangeAccounting accounting(16);
  const RangeDescriptor whole = accounted_range(1, "", map_key_max);
  const RangeDescriptor parts[] = {accounted_range(1, "", "m", 2),
                                   accounted_range(2, "m", map_key_max, 2)};
  accounting.replace({&whole, 1}, 0);
  accounting.set_size(whole, 101, 10, 5);
  accounting.replace(parts, 1);
  EXPECT_EQ(accounting.find("a")->bytes, 51u);
  EXPECT_EQ(accounting.find("z")->bytes, 50u);
  EXPECT_EQ(accounting.find("z")->counted_ms, 0u);
  accounting.replace({&whole, 1}, 2);  // that is long ago
  EXPECT_EQ(accounting.ranges(), 2u);
  const RangeDescriptor merged = accounted_range(1, "", map_key_max, 3);
  accounting.replace({&merged, 1}, 2);
  EXPECT_EQ(accounting.find("a")->bytes, 101u);
  EXPECT_EQ(accounting.ranges(), 1u);
}

// Whatever is cut and put together, nothing that was accounted gets lost, and nothing is doubled.
TEST(RangeAccounting, NothingIsLostInSplitsAndMerges) {
  Random random(test_seed(31));
  RangeAccounting accounting(16);
  std::vector<RangeDescriptor> ranges = {accounted_range(1, "", map_key_max)};
  accounting.replace(ranges, 0);
  accounting.tick(second_us, 1e9);
  uint64_t last_id = 1;
  int64_t bytes = 0;
  uint64_t drift_bytes = 0;
  uint64_t drift_keys = 0;
  uint64_t writes = 0;
  for (int round = 0; round < 3'000; round++) {
    const size_t at = random.below(ranges.size());
    if (random.one_in(2)) {
      const int64_t added = 1 + static_cast<int64_t>(random.below(50));
      accounting.sampled(
          {},
          put_of(encode(RawKey{{5}, Bytes(1, static_cast<char>(random.below(256)))}), added, -1));
      bytes += 16 * added;
      drift_bytes += 16 * static_cast<uint64_t>(added);
      drift_keys += 16;
      writes += 16;
    } else if (random.one_in(2) && at + 1 < ranges.size()) {
      ranges[at].end = ranges[at + 1].end;
      ranges[at].generation = std::max(ranges[at].generation, ranges[at + 1].generation) + 1;
      ranges.erase(ranges.begin() + static_cast<ptrdiff_t>(at) + 1);
      accounting.replace({&ranges[at], 1}, 0);
    } else {
      const Bytes place = encode(RawKey{{5}, Bytes(1, static_cast<char>(random.below(256)))});
      if (place <= ranges[at].start || place >= ranges[at].end) continue;
      ranges[at].generation++;
      RangeDescriptor right = ranges[at];
      right.id = RangeId{++last_id};
      ranges[at].end = right.start = place;
      ranges.insert(ranges.begin() + static_cast<ptrdiff_t>(at) + 1, right);
      accounting.replace({&ranges[at], 2}, 0);
    }
  }
  uint64_t drift_bytes_there = 0;
  uint64_t drift_keys_there = 0;
  const auto figures = accounting.figures({}, 10'000);
  ASSERT_EQ(figures.size(), ranges.size());
  for (size_t i = 0; i < figures.size(); i++) {
    EXPECT_EQ(figures[i].range, ranges[i]);
    drift_bytes_there += figures[i].drift_bytes;
    drift_keys_there += figures[i].drift_keys;
  }
  EXPECT_EQ(accounting.totals().bytes, static_cast<uint64_t>(bytes));
  EXPECT_EQ(drift_bytes_there, drift_bytes);
  EXPECT_EQ(drift_keys_there, drift_keys);
  accounting.tick(1'001 * second_us, 1e9);
  EXPECT_NEAR(accounting.totals().writes_per_s, static_cast<double>(writes) / 1'000, 0.01);
}

TEST(RangeAccounting, LooksAtManyRangesInPieces) {
  Random random(test_seed(32));
  RangeAccounting accounting(1);
  std::vector<RangeDescriptor> ranges;
  Bytes start;
  for (uint32_t i = 1; i <= 5'500; i++) {
    Bytes end = i == 5'500 ? Bytes(map_key_max) : encode(RawKey{{i}, {}});
    ranges.push_back(accounted_range(i, start, end));
    start = std::move(end);
  }
  accounting.replace(ranges, 0);
  accounting.tick(second_us, 1e9);
  std::vector<std::pair<int64_t, uint64_t>> loads;  // by load, the most first
  uint64_t reads = 0;
  for (uint32_t i = 0; i < 5'499; i++) {
    const std::vector<Bytes> keys(random.below(1'000), encode(RawKey{{i}, "k"}));
    reads += keys.size();
    accounting.sampled(keys, {});
    loads.emplace_back(-static_cast<int64_t>(keys.size()), i);
    accounting.set_size(ranges[i], i, 2 * i, 1);
  }
  accounting.tick(101 * second_us, 1e9);  // less than one in 100 s is none
  std::sort(loads.begin(), loads.end());
  for (const size_t limit : {size_t{0}, size_t{1}, size_t{20}, size_t{1'500}, size_t{10'000}}) {
    const auto hottest = accounting.hottest(limit);
    ASSERT_EQ(hottest.size(), std::min(limit, ranges.size()));
    for (size_t i = 0; i < std::min(hottest.size(), loads.size()); i++)
      ASSERT_NEAR(hottest[i].reads_per_s, static_cast<double>(-loads[i].first) / 100, 0.0101);
  }
  const RangeTotals totals = accounting.totals();
  EXPECT_EQ(totals.ranges, 5'500u);
  EXPECT_EQ(totals.bytes, 5'498u * 5'499 / 2);
  EXPECT_EQ(totals.keys, 5'498u * 5'499);
  EXPECT_NEAR(totals.reads_per_s, static_cast<double>(reads) / 100, 1);
  const auto page = accounting.figures(ranges[1'234].start, 3'000);
  ASSERT_EQ(page.size(), 3'000u);
  for (size_t i = 0; i < page.size(); i++) ASSERT_EQ(page[i].range, ranges[1'234 + i]);

  // What could not be stored is news again, and nothing else is.
  size_t pieces = 0;
  size_t stored = 0;
  EXPECT_FALSE(accounting
                   .take_news([&](std::span<const RangeFigures> piece) -> Status {
                     if (++pieces == 3) return Error{Code::unavailable, "no"};
                     stored += piece.size();
                     return {};
                   })
                   .has_value());
  EXPECT_EQ(stored, 2'000u);
  EXPECT_EQ(news(accounting), 3'499u);
  EXPECT_EQ(news(accounting), 0u);
}

TEST(RangeAccounting, FindsWhereABusyRangeIsCutBest) {
  RangeAccounting accounting(16);
  const RangeDescriptor whole = accounted_range(1, "", map_key_max);
  accounting.replace({&whole, 1}, 0);
  accounting.tick(second_us, 100);
  Random random(3);
  const auto load = [&] {
    for (int i = 0; i < 1'000; i++) {
      const std::vector<Bytes> reads = {"r" + std::to_string(100 + random.below(100))};
      accounting.sampled(reads, {});
    }
  };
  load();
  EXPECT_FALSE(accounting.load_split_at(RangeId{1}).has_value());
  accounting.tick(2 * second_us, 100);
  EXPECT_EQ(accounting.find("r")->busy_since_us, 2 * second_us);
  load();
  accounting.tick(3 * second_us, 100);
  EXPECT_EQ(accounting.find("r")->busy_since_us, 2 * second_us);
  const auto at = accounting.load_split_at(RangeId{1});
  ASSERT_TRUE(at.has_value());
  EXPECT_GT(*at, "r120");
  EXPECT_LT(*at, "r180");
  accounting.tick(100 * second_us, 100);
  EXPECT_EQ(accounting.find("r")->busy_since_us, 0u);
  EXPECT_FALSE(accounting.load_split_at(RangeId{1}).has_value());
}

// One hot key cannot be shared.
TEST(RangeAccounting, DoesNotCutAOneKeyLoad) {
  LoadSplit split(1);
  for (int i = 0; i < 10'000; i++) split.record("r-hot");
  EXPECT_FALSE(split.best().has_value());
}

}  // namespace
}  // namespace trellis
