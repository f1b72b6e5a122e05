#include "backup/units.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "engine/memory_engine.h"
#include "support/expect_ok.h"

namespace trellis {
namespace {

std::vector<Bytes> keys_in(Engine& engine, const KeyInterval& interval) {
  std::vector<Bytes> keys;
  std::optional<Bytes> from = interval.first;
  while (from) {
    auto page = engine.scan({.begin = *from, .end = interval.second}, [&](ByteView key, ByteView) {
      keys.emplace_back(key);
      return Visit::go_on;
    });
    EXPECT_OK(page);
    from = page ? std::move(page->resume) : std::nullopt;
  }
  return keys;
}

void fill(MemoryEngine& engine, const std::set<Bytes>& keys) {
  Commit all;
  for (const Bytes& key : keys) all.writes.put(key, "v");
  ASSERT_OK(commit(engine, all));
}

TEST(UnitsTest, TileWhatTheyCut) {
  Random random(7);
  for (const size_t count : {0, 1, 5, 64}) {
    MemoryEngine engine;
    std::set<Bytes> keys;
    for (int i = 0; i < 20'000; i++) {
      // Crowded at one end, so that halves are unlike.
      Bytes key = random.below(4) == 0 ? "r"
                                       : "x\x01\x02\x03"
                                         "d";
      append_be32(key, static_cast<uint32_t>(random.below(uint64_t{1} << random.below(33))));
      keys.insert(key);
    }
    fill(engine, keys);
    const auto units = cut_units(engine, {{"r", "s"}, {"t", "u"}, {"x", ""}}, count);
    ASSERT_OK(units);
    EXPECT_LE(units->size(), 3 + count);
    if (count == 64) {
      EXPECT_GT(units->size(), 8U);
    }
    std::vector<Bytes> found;
    for (const KeyInterval& unit : *units) {
      const std::vector<Bytes> part = keys_in(engine, unit);
      EXPECT_FALSE(part.empty());
      found.insert(found.end(), part.begin(), part.end());
    }
    EXPECT_EQ(found, std::vector<Bytes>(keys.begin(), keys.end()));
    const auto again = cut_units(engine, {{"r", "s"}, {"t", "u"}, {"x", ""}}, count);
    ASSERT_OK(again);
    EXPECT_EQ(*again, *units);
  }
}

TEST(UnitsTest, OfNothingThereAreNone) {
  MemoryEngine engine;
  const auto units = cut_units(engine, {{"", ""}}, 64);
  ASSERT_OK(units);
  EXPECT_TRUE(units->empty());
}

TEST(UnitsTest, KeysThatHaveNoMiddleStayTogether) {
  MemoryEngine engine;
  std::set<Bytes> keys;
  Bytes key = "r";
  for (int i = 0; i < 3'000; i++) keys.insert(key += '\0');
  fill(engine, keys);
  const auto units = cut_units(engine, {{"", ""}}, 64);
  ASSERT_OK(units);
  std::vector<Bytes> found;
  for (const KeyInterval& unit : *units)
    for (Bytes& part : keys_in(engine, unit)) found.push_back(std::move(part));
  EXPECT_EQ(found, std::vector<Bytes>(keys.begin(), keys.end()));
}

}  // namespace
}  // namespace trellis
