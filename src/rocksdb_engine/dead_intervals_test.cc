#include "rocksdb_engine/dead_intervals.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "rocksdb_engine/rocksdb_status.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using Decision = rocksdb::CompactionFilter::Decision;

Bytes key_of(uint64_t number) { return {static_cast<char>('a' + number)}; }

class DeadIntervalsTest : public ::testing::Test {
 protected:
  static constexpr int levels = 7;

  std::unique_ptr<rocksdb::CompactionFilter> filter() { return dead_.CreateCompactionFilter({}); }
  // Where a compaction goes on that meets this key; empty: it keeps it.
  static Bytes passes_to(const rocksdb::CompactionFilter& filter, ByteView key, int level = 0) {
    std::string ignored;
    std::string skip_until;
    const Decision decision =
        filter.FilterV2(level, to_slice(key), rocksdb::CompactionFilter::ValueType::kValue, "",
                        &ignored, &skip_until);
    EXPECT_EQ(decision == Decision::kRemoveAndSkipUntil, !skip_until.empty());
    return skip_until;
  }

  DeadIntervals dead_{levels};
};

TEST_F(DeadIntervalsTest, NothingIsPassedOverBeforeItIsHiddenForGood) {
  EXPECT_EQ(filter(), nullptr);
  {
    const DeadIntervals::Watch watch(dead_);
    dead_.watch("b", "d");
    EXPECT_EQ(filter(), nullptr);
    dead_.bury();
    const auto one = filter();
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(passes_to(*one, "a"), "");
    EXPECT_EQ(passes_to(*one, "b"), "d");
    EXPECT_EQ(passes_to(*one, "c7"), "d");
    EXPECT_EQ(passes_to(*one, "d"), "");
    // Between two levels of which neither is the first or the last nothing is.
    for (int level = 0; level < levels; level++)
      EXPECT_EQ(passes_to(*one, "b", level), level == 0 || level >= levels - 2 ? "d" : "") << level;
  }
  EXPECT_EQ(filter(), nullptr);
}

TEST_F(DeadIntervalsTest, WhatIsWrittenIsRevived) {
  const DeadIntervals::Watch watch(dead_);
  dead_.watch("b", "f");
  dead_.bury();
  const auto before = filter();
  WriteSet writes;
  writes.put("c", "v");
  writes.add("d", 1);
  writes.remove("e");
  writes.remove_range("e5", "e7");
  writes.put("f", "v");
  dead_.revive(writes);
  const DeadIntervals::Intervals expected = {
      {"b", "c"}, {successor("c"), "d"}, {successor("d"), "e"}, {successor("e"), "f"}};
  EXPECT_EQ(dead_.watched(), expected);
  EXPECT_EQ(passes_to(*filter(), "b5"), "c");
  EXPECT_EQ(passes_to(*filter(), "c"), "");
  EXPECT_EQ(passes_to(*filter(), "e6"), "f");
  EXPECT_EQ(passes_to(*before, "c"), "f") << "it has no tables with what came later";
}

TEST_F(DeadIntervalsTest, ModelOfSets) {
  Random random(test_seed(20261122));
  constexpr uint64_t keys = 20;
  for (uint64_t round = 0; round < test_rounds(2'000) && !HasFailure(); round++) {
    SCOPED_TRACE(round);
    const DeadIntervals::Watch watch(dead_);
    const uint64_t begin = random.below(keys - 1);
    const uint64_t end = begin + 1 + random.below(keys - begin - 1);
    dead_.watch(key_of(begin), key_of(end));
    std::set<uint64_t> dead;
    for (uint64_t key = begin; key < end; key++) dead.insert(key);
    for (uint64_t i = random.below(6); i > 0; i--) {
      const uint64_t from = random.below(keys);
      const uint64_t to = from + random.below(4);
      dead_.revive(key_of(from), key_of(to));
      dead.erase(dead.lower_bound(from), dead.lower_bound(to));
    }
    dead_.bury();
    const auto now = filter();
    EXPECT_EQ(now == nullptr, dead.empty());
    for (uint64_t key = 0; key < keys && now; key++) {
      uint64_t next = key;
      while (dead.contains(next)) next++;
      EXPECT_EQ(passes_to(*now, key_of(key)), next == key ? "" : key_of(next));
    }
  }
}

}  // namespace
}  // namespace trellis
