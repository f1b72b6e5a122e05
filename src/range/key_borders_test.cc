#include "range/key_borders.h"

#include <gtest/gtest.h>

#include "codec/address.h"
#include "codec/keyspace_keys.h"
#include "codec/redis_keys.h"

namespace trellis {
namespace {

constexpr KeyspaceId keyspace{7};

Bytes raw_key(ByteView key) { return encode(RawKey{keyspace, key}); }
Bytes area(KeyMode mode) { return keyspace_interval(mode, keyspace).first; }
Bytes area_end(KeyMode mode) { return keyspace_interval(mode, keyspace).second; }

// Ranges that begin there, each with so many bytes.
void cut(RangeAccounting& accounting, std::vector<std::pair<Bytes, uint64_t>> starts) {
  std::vector<RangeDescriptor> ranges;
  for (size_t i = 0; i < starts.size(); i++) {
    RangeDescriptor range;
    range.id = RangeId{i + 1};
    range.start = starts[i].first;
    range.end = i + 1 < starts.size() ? starts[i + 1].first : Bytes("\xff\xff");
    ranges.push_back(range);
  }
  accounting.replace(ranges, 1);
  for (size_t i = 0; i < starts.size(); i++) accounting.set_size(ranges[i], starts[i].second, 1, 1);
}

TEST(KeyBorders, AreInsideOfTheIntervalAndOfTheKeyspace) {
  RangeAccounting accounting(1);
  cut(accounting, {{"", 1'000},
                   {encode(RawKey{KeyspaceId{6}, "x"}), 1'000},
                   {raw_key(""), 1'000},
                   {raw_key("b"), 1'000},
                   {raw_key("m"), 1'000},
                   {encode(RawKey{KeyspaceId{8}, "a"}), 1'000}});
  const auto of = [&](ByteView begin, ByteView end) { return key_borders(accounting, begin, end); };
  EXPECT_EQ(of(area(KeyMode::raw), area_end(KeyMode::raw)),
            (std::vector<Bytes>{raw_key("b"), raw_key("m")}));
  EXPECT_EQ(of(raw_key("b"), raw_key("m")), std::vector<Bytes>());
  EXPECT_EQ(of(raw_key("ba"), area_end(KeyMode::raw)), std::vector<Bytes>{raw_key("m")});
  EXPECT_EQ(of(area(KeyMode::txn), area_end(KeyMode::txn)), std::vector<Bytes>());
}

// The accounting does not know a range whose record is damaged.
TEST(KeyBorders, EndWhereALostRangeBegins) {
  RangeAccounting accounting(1);
  const RangeDescriptor known[] = {
      {RangeId{1}, {}, raw_key("b"), 1, {}, 0},
      {RangeId{2}, raw_key("b"), raw_key("c"), 1, {}, 0},
  };
  for (const RangeDescriptor& range : known) {
    accounting.replace({&range, 1}, 1);
    accounting.set_size(range, 1'000, 1, 1);
  }
  const std::vector<Bytes> borders{raw_key("b")};
  EXPECT_EQ(key_borders(accounting, area(KeyMode::raw), area_end(KeyMode::raw)), borders);
  EXPECT_TRUE(key_borders(accounting, area(KeyMode::txn), area_end(KeyMode::txn)).empty());
  EXPECT_TRUE(accounting.figures(raw_key("c"), 10).empty());
}

TEST(KeyBorders, SmallNeighboursAreOnePart) {
  RangeAccounting accounting(1);
  std::vector<std::pair<Bytes, uint64_t>> starts = {{"", 0}, {raw_key(""), 0}};
  for (int i = 100; i < 300; i++) starts.emplace_back(raw_key(std::to_string(i)), 64 << 10);
  starts.emplace_back(raw_key("large"), 1 << 30);
  starts.emplace_back(raw_key("last"), 1 << 20);
  cut(accounting, starts);
  const auto borders = key_borders(accounting, area(KeyMode::raw), area_end(KeyMode::raw));
  // 200 times 64 KiB is one part of 8 MiB, and what is left over goes with the large one.
  EXPECT_EQ(borders, (std::vector<Bytes>{raw_key("228"), raw_key("last")}));
}

TEST(KeyBorders, ARangeOfRedisStartsInEveryTable) {
  RangeAccounting accounting(1);
  const Bytes key = encode(RedisMetadataKey{keyspace, {.ns = "0", .key = "cart"}});
  Bytes granule;
  ASSERT_TRUE(append_granule(granule, key));
  cut(accounting, {{"", 1'000}, {granule, 1'000}});
  const auto borders = key_borders(accounting, area(KeyMode::txn), area_end(KeyMode::txn));
  ASSERT_EQ(borders.size(), 4u);
  EXPECT_EQ(borders[0], key);
  EXPECT_TRUE(std::is_sorted(borders.begin(), borders.end()));
  // All of a key's sub keys are on one side.
  const Bytes first = encode(
      RedisSubKey{keyspace, {.prefix = {.ns = "0", .key = "cart", .version = 0}, .sub = ""}});
  EXPECT_EQ(borders[1], first);
}

TEST(KeyBorders, ABorderInsideOfACollection) {
  RangeAccounting accounting(1);
  const Bytes sub = encode(
      RedisSubKey{keyspace, {.prefix = {.ns = "0", .key = "cart", .version = 9}, .sub = "m"}});
  Bytes address;
  ASSERT_TRUE(append_address(address, sub));
  // What is no address of a key, and no user key either, is no border.
  const Bytes broken = area(KeyMode::txn) + "d\x03x";
  cut(accounting, {{"", 1'000}, {address, 1'000}, {broken, 1'000}});
  const auto borders = key_borders(accounting, area(KeyMode::txn), area_end(KeyMode::txn));
  EXPECT_EQ(borders.size(), 4u);
  EXPECT_NE(std::find(borders.begin(), borders.end(), sub), borders.end());
}

}  // namespace
}  // namespace trellis
