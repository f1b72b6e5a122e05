#include "map/record_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "base/random.h"
#include "codec/redis_keys.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr size_t cache_bytes = 256 * 1024;

Bytes cached_key(uint64_t number) { return Bytes("x\0\0\1dm0", 7) + std::to_string(number); }

void put(RecordCache& cache, ByteView key, ByteView bytes) {
  Value value;
  value.set_borrowed(bytes);
  cache.put_read(key, value);
}

std::optional<Bytes> known(RecordCache& cache, ByteView key) {
  Value value;
  if (!cache.get(key, value)) return std::nullopt;
  return value.found() ? "found " + Bytes(value.bytes()) : "absent";
}

TEST(RecordCache, KnowsWhatWasPut) {
  RecordCache cache(cache_bytes);
  EXPECT_EQ(known(cache, cached_key(1)), std::nullopt);
  put(cache, cached_key(1), "one");
  cache.put_read(cached_key(2), Value());
  EXPECT_EQ(known(cache, cached_key(1)), "found one");
  EXPECT_EQ(known(cache, cached_key(2)), "absent");
  put(cache, cached_key(1), "");
  EXPECT_EQ(known(cache, cached_key(1)), "found ");
  cache.put_read(cached_key(1), Value());
  EXPECT_EQ(known(cache, cached_key(1)), "absent");
  cache.forget(cached_key(1));
  EXPECT_EQ(known(cache, cached_key(1)), std::nullopt);
  EXPECT_EQ(cache.figures().records, 1u);
}

TEST(RecordCache, WhatIsWrittenReplacesWhatIsKnown) {
  RecordCache cache(cache_bytes);
  put(cache, cached_key(1), "one");
  cache.put_written(cached_key(1), "two");
  EXPECT_EQ(known(cache, cached_key(1)), "found two");
  cache.put_written(cached_key(1), std::nullopt);
  EXPECT_EQ(known(cache, cached_key(1)), "absent");
}

TEST(RecordCache, WhatIsRemovedFromACollectionIsForgotten) {
  RecordCache cache(cache_bytes);
  const Bytes member("x\0\0\1ds0", 7);
  put(cache, member, "one");
  cache.put_written(member, std::nullopt);
  EXPECT_EQ(known(cache, member), std::nullopt);
}

// What is read makes room for itself, what is only written does not.
TEST(RecordCache, WhatIsWrittenIsPutInWhileThereIsRoom) {
  RecordCache cache(cache_bytes);
  cache.put_written(cached_key(0), "zero");
  EXPECT_EQ(known(cache, cached_key(0)), "found zero");
  constexpr uint64_t many = 10'000;
  const Bytes value(100, 'v');
  for (uint64_t i = 1; i < many; i++) cache.put_written(cached_key(i), value);
  EXPECT_GT(cache.figures().bytes, cache_bytes / 2);
  EXPECT_LT(cache.figures().bytes, cache_bytes / 10 * 9);
  EXPECT_EQ(known(cache, cached_key(0)), "found zero");
}

TEST(RecordCache, HoldsOnlyRecordsOfRedisKeys) {
  EXPECT_TRUE(RecordCache::holds(cached_key(1)));
  EXPECT_TRUE(RecordCache::holds(ByteView("x\0\0\1ds0", 7)));
  for (const ByteView other : {ByteView(), ByteView("x\0\0\1d", 5), ByteView("x\0\0\1dz0", 7),
                               ByteView("r\0\0\1dm0", 7), ByteView("x\0\0\1fm0", 7)})
    EXPECT_FALSE(RecordCache::holds(other)) << quote(other);
}

TEST(RecordCache, HoldsWhatIsReadOfGroupsOfStreamsByName) {
  const KvrocksSubPrefix life{.ns = "0", .key = "stream", .version = 7};
  const auto key = [&](ByteView sub) {
    Bytes bytes = encode(RedisSubKey{KeyspaceId{1}, {.prefix = life, .sub = sub}});
    bytes[5] = 't';
    return bytes;
  };
  const Bytes delimiter(8, '\xff');
  for (const char kind : {'\1', '\2', '\3'})
    EXPECT_TRUE(RecordCache::holds(key(delimiter + kind + "name")));
  // What is pending by consumer, entries, and what is no record of a stream.
  for (const Bytes& other : {delimiter + '\4' + "name", delimiter + '\x80', Bytes(16, '\1'),
                             Bytes(16, '\xff').replace(0, 1, "\xfe"), delimiter, Bytes()})
    EXPECT_FALSE(RecordCache::holds(key(other))) << quote(other);
}

TEST(RecordCache, ALargeValueIsNotKept) {
  RecordCache cache(cache_bytes);
  put(cache, cached_key(1), "small");
  put(cache, cached_key(1), Bytes(100'000, 'x'));
  EXPECT_EQ(known(cache, cached_key(1)), std::nullopt);
}

TEST(RecordCache, WhatWasReadStaysWhenItsRecordGoes) {
  RecordCache cache(cache_bytes);
  put(cache, cached_key(1), "still here");
  Value value;
  ASSERT_TRUE(cache.get(cached_key(1), value));
  put(cache, cached_key(1), "another");
  cache.forget(cached_key(1));
  EXPECT_EQ(value.bytes(), "still here");
  Value moved = std::move(value);
  EXPECT_EQ(moved.bytes(), "still here");
}

TEST(RecordCache, WhatWasReadStaysWhenItIsWrittenOver) {
  RecordCache cache(cache_bytes);
  put(cache, cached_key(1), "one");
  {
    Value held;
    ASSERT_TRUE(cache.get(cached_key(1), held));
    cache.put_written(cached_key(1), "two");  // of the same size: it would fit in its place
    EXPECT_EQ(held.bytes(), "one");
    EXPECT_EQ(known(cache, cached_key(1)), "found two");
  }
  cache.put_written(cached_key(1), "six");
  EXPECT_EQ(known(cache, cached_key(1)), "found six");
  EXPECT_EQ(cache.figures().records, 1u);
}

TEST(RecordCache, ForgetsAnInterval) {
  RecordCache cache(cache_bytes);
  for (uint64_t i = 0; i < 1'000; i++) put(cache, cached_key(i), "v");
  cache.forget_range(Bytes("x\0\0\1fs", 6), Bytes("x\0\0\1fs1", 7));
  EXPECT_EQ(cache.figures().records, 1'000u);
  cache.forget_range(cached_key(5), cached_key(6));  // 5, 50 to 59, 500 to 599
  EXPECT_EQ(cache.figures().records, 1'000u - 111);
  EXPECT_EQ(known(cache, cached_key(55)), std::nullopt);
  EXPECT_EQ(known(cache, cached_key(6)), "found v");
  cache.forget_range(cached_key(9), {});
  EXPECT_EQ(known(cache, cached_key(99)), std::nullopt);
}

// Whatever it still knows is what was put last, and it keeps to its memory.
TEST(RecordCache, NeverKnowsAnythingElse) {
  const uint64_t seed = test_seed(1);
  Random random(seed);
  RecordCache cache(cache_bytes);
  std::map<Bytes, Bytes> last;  // as known() shows it
  size_t hits = 0;
  for (uint64_t n = test_rounds(200'000); n > 0; n--) {
    const Bytes key = cached_key(random.below(random.one_in(2) ? 100 : 5'000));
    const uint64_t what = random.below(20);
    if (what < 10) {
      if (const auto got = known(cache, key)) {
        hits++;
        ASSERT_EQ(*got, last[key]);
      }
    } else if (what < 16) {
      const Bytes value(random.below(200), static_cast<char>('a' + random.below(26)));
      put(cache, key, value);
      last[key] = "found " + value;
    } else if (what < 18) {
      cache.put_read(key, Value());
      last[key] = "absent";
    } else {
      cache.forget(key);
      EXPECT_EQ(known(cache, key), std::nullopt);
    }
    ASSERT_LE(cache.figures().bytes, cache_bytes);
  }
  EXPECT_GT(hits, 0u);
}

// What is read again and again stays, however much is read once.
TEST(RecordCache, KeepsWhatIsReadOften) {
  RecordCache cache(cache_bytes);
  for (uint64_t i = 0; i < 20; i++) put(cache, cached_key(i), "often");
  size_t lost = 0;
  for (uint64_t i = 1'000; i < 50'000; i++) {
    put(cache, cached_key(i), "once");
    const Bytes often = cached_key(i % 20);
    if (known(cache, often)) continue;
    lost++;
    put(cache, often, "often");
  }
  EXPECT_LT(lost, 500u);
}

TEST(RecordCache, ManyThreads) {
  RecordCache cache(cache_bytes);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      Random random(t);
      for (uint64_t n = test_rounds(20'000); n > 0; n--) {
        const uint64_t number = random.below(3'000);
        // Each key has one writer, as latches see to it, and any number of readers.
        if (number % 4 == t) put(cache, cached_key(number), std::to_string(number));
        Value value;
        if (cache.get(cached_key(number), value)) {
          ASSERT_EQ(value.bytes(), std::to_string(number));
        }
        if (number == 0) cache.forget_range(cached_key(1), cached_key(2));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace trellis
