#include "backup/units.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "backup/manifest.h"
#include "base/random.h"
#include "codec/address.h"
#include "codec/keyspace_keys.h"
#include "codec/meta_keys.h"
#include "codec/redis_keys.h"
#include "engine/memory_engine.h"
#include "range/embedded_home.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using Entries = std::map<Bytes, Bytes>;
const std::vector<Interval> everything = {{"", "\x01s"}, {"\x01t", Bytes(map_key_max)}};

// A store of the embedded engine: with ranges, and with all kinds of keys.
struct Store {
  MemoryEngine engine;
  SystemClock clock;
  uint64_t last_id = 1;
  std::unique_ptr<EmbeddedHome> home;
  std::vector<Bytes> addresses;

  Store() {
    home = std::move(*EmbeddedHome::open(
        engine, clock, {.next_id = [this]() -> Result<RangeId> { return RangeId{++last_id}; }}));
  }

  void put(const Bytes& key, const Bytes& value) {
    Commit one;
    one.writes.put(key, value);
    ASSERT_OK(commit(engine, one));
    Bytes address;
    ASSERT_OK(append_address(address, key));
    addresses.push_back(std::move(address));
  }

  // Raw keys, Redis records, sub keys under user keys of many lengths, and files, of few keyspaces.
  void fill(Random& random, int count) {
    for (int i = 0; i < count; i++) {
      const KeyspaceId keyspace{static_cast<uint32_t>(5 + random.below(3))};
      const Bytes name = random.bytes(1 + random.below(8));
      Bytes value = random.bytes(random.below(400));
      switch (random.below(4)) {
        case 0: put(encode(RawKey{keyspace, name}), value); break;
        case 1: put(encode(RedisMetadataKey{keyspace, {"0", name}}), value); break;
        case 2: {
          Bytes file = "x";
          append_be24(file, keyspace.value);
          file += 'f';
          file += static_cast<char>(random.below(9));
          append_be64(file, random.below(1'000));
          put(file + name, value);
          break;
        }
        default:
          for (uint64_t field = random.below(8); field > 0; field--)
            put(encode(RedisSubKey{keyspace, {{"0", name, 7}, random.bytes(3)}}), value);
      }
    }
  }

  void split(Random& random, int count) {
    for (int i = 0; i < count; i++) {
      const Bytes& at = addresses[random.below(addresses.size())];
      const auto range = home->find(at);
      ASSERT_OK(range);
      if (range->start < at) discard(home->split({.range = *range, .at = at}));
    }
  }

  Entries scan(const std::vector<Interval>& scope) {
    Entries entries;
    for (const auto& [begin, end] : scope) {
      std::optional<Bytes> from = begin;
      while (from) {
        auto page = engine.scan({.begin = *from, .end = end}, [&](ByteView key, ByteView value) {
          entries[Bytes(key)] = value;
          return Visit::go_on;
        });
        EXPECT_OK(page);
        from = page ? std::move(page->resume) : std::nullopt;
      }
    }
    return entries;
  }
};

// What all units give, and that each entry is there once.
std::vector<ChunkFacts> walk_all(Store& store, const std::vector<Interval>& scope,
                                 const Units& units, Random& random, std::set<Bytes>& plains) {
  std::vector<ChunkFacts> chunks;
  Entries found;
  for (size_t i = 0; i < units.size(); i++) {
    UnitWalk walk(store.engine, scope, units.unit(i));
    std::vector<EntryChunk> cut;
    while (!walk.done()) EXPECT_OK(walk.next(1 + random.below(100'000), cut));
    EXPECT_EQ(walk.left_out(), 0U);
    for (const EntryChunk& chunk : cut) {
      EXPECT_OK(for_each_entry(chunk.plain, [&](ByteView key, ByteView value) {
        EXPECT_TRUE(found.emplace(key, value).second) << to_hex(key);
        return Status();
      }));
      plains.insert(chunk.plain);
      chunks.push_back(chunk.facts);
    }
  }
  EXPECT_TRUE(found == store.scan(scope));
  std::ranges::sort(chunks, {}, &ChunkFacts::first_key);
  return chunks;
}

// That who asks for a keyspace by the first keys alone gets all chunks that have some of it.
void expect_findable(Store& store, const std::vector<ChunkFacts>& chunks,
                     const std::set<Bytes>& plains) {
  for (const uint32_t id : {5u, 6u, 7u}) {
    const auto scope = keyspace_intervals(KeyspaceId{id});
    std::set<Bytes> first_keys;
    for (const ChunkFacts& chunk : chunks_in(chunks, scope)) first_keys.insert(chunk.first_key);
    size_t entries = 0;
    for (const Bytes& plain : plains) {
      Bytes first;
      EXPECT_OK(for_each_entry(plain, [&](ByteView key, ByteView) {
        if (first.empty()) first = key;
        for (const auto& [begin, end] : scope)
          if (begin <= key && key < end) {
            entries++;
            EXPECT_TRUE(first_keys.contains(first)) << to_hex(key);
          }
        return Status();
      }));
    }
    EXPECT_EQ(entries, store.scan(scope).size());
  }
}

TEST(UnitsTest, EveryEntryIsInOneUnitHoweverTheyAreCut) {
  Random random(test_seed(81));
  for (int round = 0; round < 6; round++) {
    Store store;
    store.fill(random, 3'000);
    store.split(random, static_cast<int>(random.below(300)));
    const std::vector<std::vector<Interval>> scopes = {
        everything, keyspace_intervals(KeyspaceId{5}), keyspace_intervals(KeyspaceId{99})};
    for (const auto& scope : scopes) {
      for (const uint64_t wanted : {1u, 2u, 9u, 64u}) {
        SCOPED_TRACE(wanted);
        const UnitsRequest request{
            .scope = scope, .bytes = wanted * 1'000, .unit_bytes = 1'000, .bounds_before = {}};
        const auto units = cut_units(store.engine, request);
        ASSERT_OK(units);
        EXPECT_EQ(units->warning, "");
        EXPECT_LE(units->size(), wanted);
        if (scope == everything) {
          EXPECT_GT(units->size(), wanted / 3);
        }
        EXPECT_EQ(cut_units(store.engine, request)->bounds, units->bounds);
        std::set<Bytes> plains;
        const auto chunks = walk_all(store, scope, *units, random, plains);
        if (scope == everything) expect_findable(store, chunks, plains);
      }
    }
  }
}

// A run of ranges each: not one for each, nor one that begins inside of a range.
TEST(UnitsTest, AreRunsOfRanges) {
  Random random(test_seed(82));
  Store store;
  store.fill(random, 2'000);
  store.split(random, 1'000);
  std::set<Bytes> starts;
  ASSERT_OK(store.home->for_each([&](const RangeDescriptor& range) {
    starts.insert(range.start);
    return Visit::go_on;
  }));
  ASSERT_GT(starts.size(), 500U);
  const auto units = cut_units(store.engine, {.scope = everything, .bytes = 10, .unit_bytes = 1});
  ASSERT_OK(units);
  EXPECT_EQ(units->size(), 10U);
  for (const Bytes& bound : units->bounds) EXPECT_TRUE(starts.contains(bound)) << to_hex(bound);
  // They are as they were, whatever the ranges are by now, until there are too few or too many.
  store.split(random, 1'000);
  const auto again = [&](uint64_t bytes) {
    return *cut_units(
        store.engine,
        {.scope = everything, .bytes = bytes, .unit_bytes = 1, .bounds_before = units->bounds});
  };
  EXPECT_EQ(again(10).bounds, units->bounds);
  EXPECT_EQ(again(20).bounds, units->bounds);
  EXPECT_EQ(again(5).bounds, units->bounds);
  EXPECT_EQ(again(40).size(), 40U);
  EXPECT_EQ(again(2).size(), 2U);
  EXPECT_EQ(again(0).size(), 1U);
}

// Of a directory with records that are cut short, lost, doubled or changed some bounds are taken or
// none, and no entry is lost for it.
TEST(UnitsTest, ADamagedDirectoryCostsNoEntry) {
  Random random(test_seed(83));
  int warnings = 0;
  for (int round = 0; round < 30; round++) {
    Store store;
    store.fill(random, 300);
    store.split(random, 50);
    std::vector<std::pair<Bytes, Bytes>> records;
    for (auto& [key, value] : store.scan({{"\x01k", "\x01l"}})) records.emplace_back(key, value);
    ASSERT_GT(records.size(), 20U);
    for (uint64_t i = 1 + random.below(3); i > 0; i--) {
      auto& [key, value] = records[random.below(records.size())];
      Commit damage;
      switch (random.below(4)) {
        case 0: damage.writes.put(key, value.substr(0, random.below(value.size()))); break;
        case 1: damage.writes.remove(key); break;
        case 2: damage.writes.put(key, records[random.below(records.size())].second); break;
        default:
          value[random.below(value.size())] ^= static_cast<char>(1 + random.below(255));
          damage.writes.put(key, value);
      }
      ASSERT_OK(commit(store.engine, damage));
    }
    const auto units = cut_units(store.engine, {.scope = everything, .bytes = 8, .unit_bytes = 1});
    ASSERT_OK(units);
    warnings += units->warning.empty() ? 0 : 1;
    EXPECT_GT(units->size(), 2U);
    std::set<Bytes> plains;
    walk_all(store, everything, *units, random, plains);
  }
  EXPECT_GT(warnings, 15);  // some damage changes nothing
  Store none;               // ranges that were never made
  Commit removed;
  removed.writes.remove_range("\x01", "\x05");
  ASSERT_OK(commit(none.engine, removed));
  none.fill(random, 300);
  const auto units = cut_units(none.engine, {.scope = everything, .bytes = 8, .unit_bytes = 1});
  ASSERT_OK(units);
  EXPECT_EQ(units->size(), 8U);
  std::set<Bytes> plains;
  walk_all(none, everything, *units, random, plains);
}

TEST(UnitsTest, OfNothingThereIsOne) {
  MemoryEngine engine;
  const auto units = cut_units(engine, {.scope = everything, .bytes = 64, .unit_bytes = 1});
  ASSERT_OK(units);
  EXPECT_EQ(units->size(), 1U);
}

TEST(UnitsTest, KeysThatHaveNoMiddleStayTogether) {
  Random random(1);
  Store store;
  Bytes key = encode(RawKey{{5}, ""});
  for (int i = 0; i < 1'000; i++) store.put(key += '\0', "v");
  const auto units = cut_units(
      store.engine, {.scope = keyspace_intervals(KeyspaceId{5}), .bytes = 64, .unit_bytes = 1});
  ASSERT_OK(units);
  std::set<Bytes> plains;
  walk_all(store, keyspace_intervals(KeyspaceId{5}), *units, random, plains);
}

TEST(UnitsTest, KeysThatNoMapHasAreToldOf) {
  MemoryEngine engine;
  Commit all;
  all.writes.put(Bytes("x\0\0\5", 4) + "dm", "cut short");
  all.writes.put(encode(RawKey{{5}, "k"}), "v");
  ASSERT_OK(commit(engine, all));
  UnitWalk walk(engine, everything, Units().unit(0));
  std::vector<EntryChunk> cut;
  while (!walk.done()) ASSERT_OK(walk.next(1'000, cut));
  EXPECT_EQ(walk.left_out(), 1U);
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].facts.entries, 1U);
}

}  // namespace
}  // namespace trellis
