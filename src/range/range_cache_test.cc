#include "range/range_cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <latch>
#include <optional>
#include <thread>

#include "codec/meta_keys.h"
#include "support/range_map.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr size_t plenty_bytes = 64 << 20;

RangeDescriptor some_range(ByteView start, ByteView end, uint64_t generation = 1, uint64_t id = 9) {
  return {RangeId{id}, Bytes(start), Bytes(end), generation, "", 0};
}

class RangeCacheTest : public testing::Test {
 protected:
  void expect_found(ByteView address, Side side = Side::at) {
    const Result<RangeRef> range = cache_.find(address, side);
    ASSERT_OK(range);
    EXPECT_EQ(range->descriptor(), map_.at(address, side)) << to_hex(address);
  }
  std::optional<RangeDescriptor> cached(ByteView address, Side side = Side::at) {
    const RangeRef range = cache_.get(address, side);
    if (!range) return std::nullopt;
    return range.descriptor();
  }

  RangeMap map_;
  EngineMetaReader reader_{map_.engine()};
  Directory directory_{reader_};
  RangeCache cache_{directory_, plenty_bytes};
};

TEST_F(RangeCacheTest, AWarmLookupReadsNothing) {
  for (const ByteView border : {"\x04", "xa", "xb", "xc", "xd"}) map_.split(border);
  expect_found("xb");
  const uint64_t reads = directory_.reads();
  EXPECT_EQ(reads, 1u);
  for (const ByteView address : {"xb", "xba", "xc", "xd", "y"})
    expect_found(address);  // neighbours
  expect_found("xc", Side::before);
  expect_found("\x03xb");  // meta2 came along too
  EXPECT_EQ(directory_.reads(), reads);
  const RangeCacheFigures figures = cache_.figures();
  EXPECT_EQ(figures.hits, 7u);
  EXPECT_EQ(figures.misses, 1u);
  EXPECT_EQ(figures.lookups, 1u);
  EXPECT_EQ(figures.directory_reads, 1u);
}

TEST_F(RangeCacheTest, RangesOfMeta2AreRememberedAndSaveARead) {
  for (const ByteView border : {"\x03", "\x03xg", "\x03xm", "\x04"}) map_.split(border);
  for (char a = 'a'; a <= 'z'; a++)
    for (char b = 'a'; b <= 'z'; b++) map_.split(Bytes{'x', a, b});
  expect_found("xha");
  EXPECT_EQ(directory_.reads(), 2u);
  expect_found("xka");
  EXPECT_EQ(directory_.reads(), 3u);
}

TEST_F(RangeCacheTest, TheHigherGenerationWins) {
  EXPECT_TRUE(cache_.insert(some_range("b", "d", 3)));
  EXPECT_TRUE(cache_.insert(some_range("d", "f", 3)));
  EXPECT_TRUE(cache_.insert(some_range("b", "d", 3)));      // the same
  EXPECT_FALSE(cache_.insert(some_range("b", "d", 3, 8)));  // as new, and another
  EXPECT_FALSE(cache_.insert(some_range("a", "c", 2)));
  EXPECT_FALSE(cache_.insert(some_range("a", "z", 3)));
  EXPECT_EQ(cache_.figures().entries, 2u);
  EXPECT_TRUE(cache_.insert(some_range("c", "e", 4)));  // both overlap it
  EXPECT_EQ(cache_.figures().entries, 1u);
  EXPECT_FALSE(cached("b"));
  EXPECT_EQ(cached("d"), some_range("c", "e", 4));
  EXPECT_FALSE(cached("e"));
  EXPECT_FALSE(cached("c", Side::before));
  EXPECT_EQ(cached("e", Side::before), some_range("c", "e", 4));
  EXPECT_FALSE(cache_.insert(some_range("q", "q", 4)));
}

TEST_F(RangeCacheTest, EvictTakesOnlyWhatFailed) {
  EXPECT_TRUE(cache_.insert(some_range("a", "m", 1)));
  EXPECT_TRUE(cache_.insert(some_range("m", "z", 1)));
  const RangeRef stale = cache_.get("b");
  const RangeDescriptor halves[] = {some_range("a", "f", 2), some_range("f", "m", 2, 10)};
  EXPECT_OK(cache_.evict(stale, halves));
  EXPECT_EQ(cached("b"), halves[0]);
  EXPECT_EQ(cached("g"), halves[1]);
  EXPECT_EQ(cached("n"), some_range("m", "z", 1));
  // Another one comes with the same stale token: what is there now did not fail.
  EXPECT_OK(cache_.evict(stale));
  EXPECT_EQ(cached("b"), halves[0]);
  EXPECT_OK(cache_.evict(stale, std::span(halves, 1)));
  EXPECT_EQ(cached("b"), halves[0]);
  EXPECT_EQ(cache_.figures().stale_hops, 3u);
  EXPECT_EQ(stale.descriptor(), some_range("a", "m", 1));  // the token lives as long as it is held
}

TEST_F(RangeCacheTest, WhatIsEvictedIsNotFoundByAnyWay) {
  EXPECT_TRUE(cache_.insert(some_range("a", "m", 1)));
  const RangeRef stale = cache_.get("b");
  EXPECT_TRUE(cached("b"));  // the thread remembers it
  EXPECT_OK(cache_.evict(stale));
  EXPECT_FALSE(cached("b"));
}

TEST_F(RangeCacheTest, AReplacementThatIsWhatFailedIsAnError) {
  EXPECT_TRUE(cache_.insert(some_range("a", "m", 1)));
  const RangeRef stale = cache_.get("b");
  const RangeDescriptor same[] = {stale.descriptor()};
  EXPECT_CODE(cache_.evict(stale, same), Code::corrupt);
  EXPECT_FALSE(cached("b"));
}

TEST_F(RangeCacheTest, AnErrorOfTheDirectoryIsTold) {
  Commit change;
  change.writes.remove_range("\x03", "\x04");
  EXPECT_OK(commit(map_.engine(), change));
  EXPECT_CODE(cache_.find("x"), Code::corrupt);
  EXPECT_CODE(cache_.find("\xff\xff"), Code::invalid);
  EXPECT_EQ(cache_.figures().entries, 0u);
}

TEST_F(RangeCacheTest, StaysWithinItsBytesAndKeepsWhatIsUsed) {
  constexpr size_t bytes_max = 100'000;
  RangeCache cache(directory_, bytes_max);
  const auto range = [](int i) {
    return some_range(fmt::format("k{:06}", i), fmt::format("k{:06}", i + 1));
  };
  EXPECT_TRUE(cache.insert(range(0)));
  for (int i = 1; i < 20'000; i++) {
    EXPECT_TRUE(cache.insert(range(i)));
    EXPECT_TRUE(cache.get("k000000")) << i;
    ASSERT_LE(cache.figures().bytes, bytes_max);
  }
  const RangeCacheFigures figures = cache.figures();
  EXPECT_EQ(figures.entries + figures.evictions, 20'000u);
  EXPECT_GT(figures.entries, 500u);
  // One that cannot hold anything still answers.
  RangeCache tiny(directory_, 1);
  const Result<RangeRef> found = tiny.find("x");
  ASSERT_OK(found);
  EXPECT_EQ(found->descriptor(), map_.at("x"));
  EXPECT_EQ(tiny.figures().entries, 0u);
}

// Keys that share long beginnings, that are beginnings of others, and that are equal for eight
// bytes and more: where comparing heads decides nothing.
Bytes tricky_key(Random& random) {
  static const Bytes beginnings[] = {"a",
                                     Bytes("a\0\0\0\0\0\0\0\0", 9),
                                     "abcdefgh",
                                     "abcdefghabcdefgh",
                                     "abcdefghxyz",
                                     Bytes(300, 'q'),
                                     "z"};
  Bytes key = beginnings[random.below(std::size(beginnings))];
  for (uint64_t n = random.below(4); n > 0; n--) key += "\0\x01\xff"[random.below(3)];
  return key;
}

// The same rules, with no tree.
class CacheModel {
 public:
  bool insert(const RangeDescriptor& range) {
    for (const RangeDescriptor& other : ranges_) {
      if (other == range) return true;
      if (other.overlaps(range) && other.generation >= range.generation) return false;
    }
    std::erase_if(ranges_, [&](const RangeDescriptor& other) { return other.overlaps(range); });
    ranges_.push_back(range);
    return true;
  }
  void evict(const RangeDescriptor& failed) { std::erase(ranges_, failed); }
  std::optional<RangeDescriptor> get(ByteView address, Side side) const {
    for (const RangeDescriptor& range : ranges_)
      if (holds(range, address, side)) return range;
    return std::nullopt;
  }
  size_t size() const { return ranges_.size(); }
  const RangeDescriptor& any(Random& random) const { return ranges_[random.below(size())]; }

 private:
  std::vector<RangeDescriptor> ranges_;
};

TEST_F(RangeCacheTest, DoesWhatAModelDoes) {
  Random random(test_seed(7));
  for (uint64_t round = test_rounds(20); round > 0; round--) {
    RangeCache cache(directory_, plenty_bytes);
    CacheModel model;
    const uint64_t wide = 1 + random.below(2000);
    for (uint64_t step = 0; step < 600; step++) {
      if (model.size() > 0 && random.one_in(8)) {
        const RangeDescriptor failed = model.any(random);
        EXPECT_OK(cache.evict(cache.get(failed.start)));
        model.evict(failed);
      } else {
        // Narrow ranges mostly, so that there are many, and now and then one that covers some.
        Bytes start =
            random.one_in(2) ? tricky_key(random) : fmt::format("k{:06}", random.below(wide));
        Bytes end = random.one_in(10) ? tricky_key(random) : successor(start);
        if (end < start) std::swap(start, end);
        if (start == end) continue;
        RangeDescriptor range = some_range(start, end, 1 + step / 30, 1 + random.below(2));
        range.home = Bytes(random.below(4), 'h');
        ASSERT_EQ(cache.insert(range), model.insert(range)) << to_string(range);
      }
      for (int i = 0; i < 4; i++) {
        const Bytes address =
            random.one_in(2) ? tricky_key(random) : fmt::format("k{:06}", random.below(wide));
        for (const Side side : {Side::at, Side::before}) {
          const RangeRef got = cache.get(address, side);
          const std::optional<RangeDescriptor> want = model.get(address, side);
          ASSERT_EQ(static_cast<bool>(got), want.has_value()) << to_hex(address);
          if (want) {
            ASSERT_EQ(got.descriptor(), *want);
          }
        }
      }
      ASSERT_EQ(cache.figures().entries, model.size());
    }
  }
}

// Holds every read of the directory until it is told to go on.
class HeldReader final : public MetaReader {
 public:
  explicit HeldReader(MetaReader& inner) : inner_(inner) {}
  Result<MetaRead> read(const RangeDescriptor& from, std::span<const MetaScan> scans) override {
    {
      std::unique_lock lock(mutex_);
      waiting_++;
      changed_.notify_all();
      changed_.wait(lock, [&] { return open_; });
    }
    return inner_.read(from, scans);
  }
  void wait_for_reader() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ > 0; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  MetaReader& inner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

TEST_F(RangeCacheTest, ThoseWhoMissTheSameIntervalShareOneLookup) {
  for (const ByteView border : {"xa", "xm", "xz"}) map_.split(border);
  HeldReader held(reader_);
  Directory directory(held);
  RangeCache cache(directory, plenty_bytes);
  constexpr int threads_count = 16;
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < threads_count; i++) {
    threads.emplace_back([&, i] {
      const Bytes address = fmt::format("xb{:02}", i);
      const Result<RangeRef> range = cache.find(address);
      if (range.has_value() && range->descriptor() == map_.at(address)) right++;
    });
  }
  held.wait_for_reader();
  held.open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, threads_count);
  EXPECT_EQ(cache.figures().lookups, 1u);
  EXPECT_EQ(directory.reads(), 1u);
}

TEST_F(RangeCacheTest, ThoseWhoMissElsewhereWaitNoLongerThanTwice) {
  Random random(1);
  for (int i = 0; i < 1000; i++) map_.split(fmt::format("x{:03}", i));
  HeldReader held(reader_);
  Directory directory(held);
  RangeCache cache(directory, plenty_bytes);
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; i++) {
    threads.emplace_back([&, i] {
      const Bytes address = fmt::format("x{:03}a", i * 60);
      const Result<RangeRef> range = cache.find(address);
      if (range.has_value() && range->descriptor() == map_.at(address)) right++;
    });
  }
  held.wait_for_reader();
  held.open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 16);
  EXPECT_EQ(cache.figures().lookups, 16u);  // each its own, none twice
}

// What a client of a home does: asks the range that it believes in, and corrects itself.
TEST_F(RangeCacheTest, AStaleClientAlwaysArrives) {
  Random random(test_seed(3));
  for (uint64_t step = test_rounds(3000); step > 0; step--) {
    if (random.one_in(3)) {
      const Bytes border = random_border(random);
      if (random.one_in(3))
        map_.merge(border);
      else
        map_.split(border);
    }
    const Bytes address = random_border(random);
    unsigned hops = 0;
    for (;; hops++) {
      ASSERT_LT(hops, 10u);
      const Result<RangeRef> range = cache_.find(address);
      ASSERT_OK(range);
      const RangeDescriptor truth = map_.at(address);
      if (range->descriptor() == truth) break;
      // Its home knows what became of it, or only that it is not there any more.
      if (random.one_in(2))
        ASSERT_OK(cache_.evict(*range, std::span(&truth, 1)));
      else
        ASSERT_OK(cache_.evict(*range));
    }
  }
  EXPECT_GT(cache_.figures().stale_hops, 0u);
}

// Readers, clients that correct themselves, splits and merges, and too little room, all at once.
TEST_F(RangeCacheTest, ReadersAndWritersOfAllKinds) {
  const uint64_t seed = test_seed(11);
  RangeCache cache(directory_, 6'000);
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> arrived = 0;
  std::atomic<uint64_t> wrong = 0;
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    Random random(seed);
    const uint64_t rounds = test_rounds(4000);
    // Few rounds may be over before the others have begun, or before there is too little room.
    const auto goes_on = [&](uint64_t n) {
      return n < rounds || (n < 100 * rounds && (arrived == 0 || cache.figures().evictions == 0));
    };
    for (uint64_t n = 0; goes_on(n); n++) {
      const Bytes border = random_border(random);
      if (random.one_in(3))
        map_.merge(border);
      else
        map_.split(border);
      cache.insert(map_.at(random_border(random)));
    }
    stop = true;
  });
  for (uint64_t i = 1; i <= 3; i++) {
    threads.emplace_back([&, i] {
      Random random(seed + i);
      while (!stop) {
        const Bytes address = random_border(random);
        const Side side = random.one_in(4) ? Side::before : Side::at;
        const Result<RangeRef> range = cache.find(address, side);
        // Stale it may be, but never one that does not hold what was asked for.
        if (!range.has_value() || !range->holds(address, side)) {
          wrong++;
          continue;
        }
        const RangeDescriptor truth = map_.at(address, side);
        if (range->generation() < truth.generation) {
          if (!cache.evict(*range, std::span(&truth, 1)).has_value()) wrong++;
        } else {
          arrived++;
        }
        if (cache.figures().bytes > 6'000) wrong++;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(arrived, 0u);
  EXPECT_GT(cache.figures().evictions, 0u);
}

}  // namespace
}  // namespace trellis
