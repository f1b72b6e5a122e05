#include "range/accounting.h"

#include <gtest/gtest.h>

#include "codec/keyspace_keys.h"
#include "codec/meta_keys.h"
#include "codec/tenant_keys.h"

namespace trellis {
namespace {

constexpr uint64_t second_us = 1'000'000;

RangeDescriptor range_of(uint64_t id, ByteView start, ByteView end) {
  return {RangeId{id}, Bytes(start), Bytes(end), 1, {}, 0};
}

WriteSet put_of(ByteView key, int64_t bytes, int64_t keys) {
  WriteSet writes;
  writes.put(key, "v");
  writes.add(encode(CounterKey{{5}, Model::raw, CounterName::bytes, 0}), bytes);
  writes.add(encode(CounterKey{{5}, Model::raw, CounterName::keys, 0}), keys);
  return writes;
}

TEST(RangeAccounting, GivesATransactionToItsRange) {
  RangeAccounting accounting(16);
  const RangeDescriptor all[] = {range_of(1, "", "m"), range_of(2, "m", map_key_max)};
  accounting.replace({}, all, 0);
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
  EXPECT_EQ(accounting.take_news().size(), 2u);
  EXPECT_EQ(accounting.take_news().size(), 0u);
  EXPECT_TRUE(figures[0].was_used);
  accounting.set_size(RangeId{2}, 7, 3, 1'000);
  EXPECT_EQ(accounting.find("x")->bytes, 7u);
  EXPECT_EQ(accounting.find("x")->counted_ms, 1'000u);
  EXPECT_EQ(accounting.take_news().size(), 1u);
}

TEST(RangeAccounting, SharesAndAddsUp) {
  RangeAccounting accounting(16);
  const RangeDescriptor whole = range_of(1, "", map_key_max);
  const RangeDescriptor parts[] = {range_of(1, "", "m"), range_of(2, "m", map_key_max)};
  accounting.replace({}, {&whole, 1}, 0);
  accounting.set_size(RangeId{1}, 100, 10, 5);
  accounting.replace({&whole, 1}, parts, 1);
  EXPECT_EQ(accounting.find("a")->bytes, 50u);
  EXPECT_EQ(accounting.find("z")->bytes, 50u);
  EXPECT_EQ(accounting.find("z")->counted_ms, 0u);
  accounting.replace(parts, {&whole, 1}, 2);
  EXPECT_EQ(accounting.find("a")->bytes, 100u);
  EXPECT_EQ(accounting.ranges(), 1u);
}

TEST(RangeAccounting, FindsWhereABusyRangeIsCutBest) {
  RangeAccounting accounting(16);
  const RangeDescriptor whole = range_of(1, "", map_key_max);
  accounting.replace({}, {&whole, 1}, 0);
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
