// A walk of an interval of addresses finds what going through all keys finds, each entry once.
#include "range/address_walk.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "codec/address.h"
#include "codec/fs_keys.h"
#include "codec/redis_keys.h"
#include "engine/memory_engine.h"
#include "support/expect_ok.h"
#include "support/key_probes.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

Bytes few_bytes(Random& random, size_t size_max) {
  constexpr ByteView alphabet(
      "\x00\x01\x02\xfe\xff"
      "am",
      7);
  Bytes out;
  for (size_t size = random.below(size_max + 1); size > 0; size--)
    out.push_back(alphabet[random.below(alphabet.size())]);
  return out;
}

// Keys that meet: few keyspaces, few namespaces, user keys of which many begin like others.
Bytes redis_key(Random& random) {
  Bytes key = "x";
  append_be24(key, static_cast<uint32_t>(5 + random.below(2)));
  key += 'd';
  const char tag = "mnstz"[random.below(5)];
  key += tag;
  const Bytes ns =
      random.one_in(3) ? Bytes("12") : Bytes(1, static_cast<char>('0' + random.below(2)));
  key += static_cast<char>(ns.size());
  key += ns;
  const Bytes user_key = few_bytes(random, 3);
  if (tag == 'm' || tag == 'n') return key + user_key;
  append_be32(key, static_cast<uint32_t>(user_key.size()));
  key += user_key;
  append_be64(key, random.below(2));
  return key + few_bytes(random, 2);
}

Bytes file_key(Random& random) {
  Bytes key = "x";
  append_be24(key, static_cast<uint32_t>(5 + random.below(2)));
  key += 'f';
  key += static_cast<char>(random.below(9));
  append_be64(key, random.one_in(4) ? random.next() : random.below(4));
  return key + few_bytes(random, 2);
}

Bytes any_key(Random& random) {
  const auto probes = key_probes();
  switch (random.below(5)) {
    case 0:
    case 1: return redis_key(random);
    case 2: return file_key(random);
    case 3: {
      Bytes key = random.one_in(2) ? redis_key(random) : file_key(random);  // most are none
      return key.substr(0, 5 + random.below(key.size() - 4));
    }
    default:
      while (true) {
        const KeyProbe& probe = probes[random.below(probes.size())];
        if (probe.kind->place == Place::in_map) return probe.sample(random);
      }
  }
}

struct World {
  MemoryEngine engine;
  std::map<Bytes, Bytes> keys_by_address;
  uint64_t malformed = 0;

  void fill(Random& random, size_t count) {
    for (size_t i = 0; i < count; i++) {
      const Bytes key = any_key(random);
      Value value;
      EXPECT_OK(engine.get(key, value));
      if (value.found()) continue;
      Commit one;
      one.writes.put(key, random.bytes(random.below(30)));
      if (!commit(engine, one)) continue;  // a counter wants a value of its own kind
      Bytes address;
      if (append_address(address, key))
        keys_by_address.emplace(address, key);
      else
        malformed++;
    }
  }

  // Places of all kinds: addresses, what they begin with, what lies just beside them.
  Bytes any_bound(Random& random) const {
    auto at = keys_by_address.begin();
    std::advance(at, static_cast<long>(random.below(keys_by_address.size())));
    Bytes bound = at->first;
    switch (random.below(4)) {
      case 0: break;
      case 1: bound.resize(random.below(bound.size()) + 1); break;
      case 2: bound += few_bytes(random, 2); break;
      default: bound[random.below(bound.size())] = few_bytes(random, 1)[0];
    }
    return bound;
  }

  std::map<Bytes, int> expected(ByteView begin, ByteView end) const {
    std::map<Bytes, int> keys;
    for (auto at = keys_by_address.lower_bound(Bytes(begin));
         at != keys_by_address.end() && at->first < end; ++at)
      keys[at->second]++;
    return keys;
  }
};

TEST(AddressWalk, FindsWhatLookingAtAllKeysFinds) {
  Random random(test_seed(71));
  for (uint64_t round = 0; round < test_rounds(20); round++) {
    World world;
    world.fill(random, 1'000);
    for (int i = 0; i < 100; i++) {
      Bytes begin = world.any_bound(random);
      Bytes end = random.one_in(10) ? Bytes("\xff\xff") : world.any_bound(random);
      if (end < begin) std::swap(begin, end);
      SCOPED_TRACE(to_hex(begin) + " " + to_hex(end));
      std::map<Bytes, int> seen;
      Bytes last;
      // In small pages, stopped and begun again wherever it likes.
      Bytes position;
      bool done = false;
      while (!done) {
        AddressWalk walk(world.engine, begin, end, position);
        for (int page = 0; page < 3 && !walk.done(); page++) {
          const auto visit = [&](ByteView key, ByteView) {
            seen[Bytes(key)]++;
            EXPECT_LT(last, key);
            last = key;
            return random.one_in(5) ? Visit::stop : Visit::go_on;
          };
          ASSERT_OK(walk.next(visit, 1 + random.below(400)));
        }
        position = walk.position();
        done = walk.done();
      }
      ASSERT_EQ(seen, world.expected(begin, end));
    }
  }
}

// Ranges tile the map: so do their walks.
TEST(AddressWalk, PartsMakeTheWhole) {
  Random random(test_seed(72));
  World world;
  world.fill(random, 3'000);
  std::set<Bytes> bounds = {Bytes(), Bytes("\xff\xff")};
  for (int i = 0; i < 50; i++) bounds.insert(world.any_bound(random));
  uint64_t entries = 0;
  uint64_t bytes = 0;
  for (auto at = bounds.begin(); std::next(at) != bounds.end(); ++at) {
    AddressWalk walk(world.engine, *at, *std::next(at));
    const auto visit = [](ByteView, ByteView) { return Visit::go_on; };
    while (!walk.done()) ASSERT_OK(walk.next(visit));
    entries += walk.figures().entries;
    bytes += walk.figures().bytes;
  }
  AddressWalk whole(world.engine, {}, "\xff\xff");
  const auto visit = [](ByteView, ByteView) { return Visit::go_on; };
  while (!whole.done()) ASSERT_OK(whole.next(visit));
  EXPECT_EQ(entries, world.keys_by_address.size());
  EXPECT_EQ(whole.figures().entries, entries);
  EXPECT_EQ(whole.figures().bytes, bytes);
  EXPECT_EQ(whole.figures().malformed, world.malformed);
  EXPECT_GT(world.malformed, 0u);
}

// Half of a huge hash is walked by looking at that half.
TEST(AddressWalk, ReadsOnlyWhatIsInside) {
  MemoryEngine engine;
  Commit filling;
  const auto field = [](uint64_t version, ByteView name) {
    return encode(RedisSubKey{{5}, {{"0", "huge", version}, name}});
  };
  for (int i = 0; i < 1'000; i++) filling.writes.put(field(1, std::to_string(i)), "v");
  ASSERT_OK(commit(engine, filling));
  Bytes middle;
  ASSERT_OK(append_address(middle, field(1, "5")));
  AddressWalk walk(engine, middle, "\xff\xff");
  uint64_t seen = 0;
  const auto visit = [&](ByteView, ByteView) {
    seen++;
    return Visit::go_on;
  };
  while (!walk.done()) ASSERT_OK(walk.next(visit));
  EXPECT_EQ(seen, 555u);  // 5, 50..59, 500..599 and so on up to 9...
}

}  // namespace
}  // namespace trellis
