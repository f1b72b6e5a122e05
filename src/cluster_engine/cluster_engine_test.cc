#include "cluster_engine/cluster_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "codec/address.h"
#include "support/commit_run.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using Model = std::map<Bytes, Bytes>;

Bytes few_letters(Random& random, size_t size_max) {
  Bytes out;
  for (uint64_t i = random.below(size_max + 1); i > 0; i--)
    out.push_back(
        "\x01"
        "ab"[random.below(3)]);
  return out;
}

// Redis records, files and plain keys of one keyspace.
Bytes any_key(Random& random) {
  Bytes key("x\0\0\1", 4);
  switch (random.below(3)) {
    case 0: {
      const char table = "chmstz"[random.below(6)];
      key += 'd';
      key += table;
      key += Bytes(
          "\1"
          "0",
          2);
      const Bytes user = few_letters(random, 2);
      if (table == 'm') return key + user;
      append_be32(key, static_cast<uint32_t>(user.size()));
      key += user;
      append_be64(key, random.below(2));
      return key + few_letters(random, 3);
    }
    case 1:
      key += 'f';
      key += static_cast<char>(1 + random.below(7));
      append_be64(key, random.below(4));
      return key + few_letters(random, 2);
    default: return "r" + few_letters(random, 4);
  }
}

// Pages so small that every walk goes over many of them.
class SmallPages : public testing::Test {
 protected:
  SmallPages() {
    EXPECT_OK(bootstrap_ranges(store_));
    engine_ = std::move(*ClusterEngine::open(store_, clock_));
  }
  void split_somewhere() {
    if (model_.empty()) return;
    auto at = model_.begin();
    std::advance(at, random_.below(model_.size()));
    Bytes address;
    ASSERT_OK(append_address(address, at->first));
    const Result<RangeHeader> range = find_range(store_, address);
    ASSERT_OK(range);
    if (range->start == address) return;
    ASSERT_OK(split_range(store_, *range, address, RangeId{++last_range_}));
  }
  void write_some() {
    Commit wanted;
    for (uint64_t i = 1 + random_.below(20); i > 0; i--) {
      const Bytes key = any_key(random_);
      if (random_.one_in(4)) {
        wanted.writes.remove(key);
        model_.erase(key);
      } else {
        wanted.writes.put(key, std::to_string(i));
        model_[key] = std::to_string(i);
      }
    }
    if (random_.one_in(10)) {
      Bytes begin = any_key(random_);
      Bytes end = any_key(random_);
      if (begin > end) std::swap(begin, end);
      if (begin < end) {
        wanted.writes.remove_range(begin, end);
        model_.erase(model_.lower_bound(begin), model_.lower_bound(end));
      }
    }
    ASSERT_OK(commit(*engine_, wanted));
  }
  void check_scan() {
    Bytes begin = random_.one_in(3) ? Bytes("\x04") : any_key(random_);
    Bytes end = random_.one_in(3) ? Bytes() : any_key(random_);
    if (!end.empty() && begin > end) std::swap(begin, end);
    const bool reverse = random_.one_in(2);
    std::vector<std::pair<Bytes, Bytes>> expected(
        model_.lower_bound(begin), end.empty() ? model_.end() : model_.lower_bound(end));
    if (reverse) std::reverse(expected.begin(), expected.end());
    std::vector<std::pair<Bytes, Bytes>> found;
    const size_t entries_max = 1 + random_.below(30);
    while (true) {
      const auto page = engine_->scan(
          {.begin = begin, .end = end, .reverse = reverse, .entries_max = entries_max},
          [&](ByteView key, ByteView value) {
            found.emplace_back(key, value);
            return Visit::go_on;
          });
      ASSERT_OK(page);
      if (!page->resume) break;
      (reverse ? end : begin) = *page->resume;
    }
    EXPECT_EQ(found, expected);
    visited_ += found.size();
  }

  FakeObjectStore store_{FakeObjectStoreLimits{.read_entries = 5}};
  FakeClock clock_{0};
  std::unique_ptr<ClusterEngine> engine_;
  Random random_{1};
  Model model_;
  uint64_t last_range_ = 1;
  size_t visited_ = 0;
};

TEST_F(SmallPages, ScansOfAllKindsOfKeys) {
  random_ = Random(test_seed(9));
  const uint64_t rounds = test_rounds(300);
  for (uint64_t round = 0; round < rounds && !HasFailure(); round++) {
    write_some();
    if (random_.one_in(10)) split_somewhere();
    for (int i = 0; i < 3 && !HasFailure(); i++) check_scan();
  }
  EXPECT_GT(visited_, rounds * 10);
}

class ClusterDeaths : public testing::Test {
 protected:
  static size_t logs(FakeObjectStore& store) {
    size_t count = 0;
    store.list("tx.", [&](ByteView) { count++; });
    return count;
  }
  static size_t entries(FakeObjectStore& store, ByteView prefix) {
    size_t count = 0;
    std::vector<Bytes> names;
    store.list("r.", [&](ByteView object) { names.emplace_back(object); });
    for (const Bytes& name : names) {
      ReadAnswer answer;
      ReadOperation operation;
      operation.omap_pages.push_back({.start_after = {}, .prefix = Bytes(prefix)});
      EXPECT_GE(store.read("test", name, operation, answer), 0);
      count += answer.pages[0].entries.size();
    }
    return count;
  }
};

TEST_F(ClusterDeaths, ASweepFinishesWhatWasDecidedAndRemovesTheLog) {
  CommitRun run({Reach::three_ranges, Meanwhile::nothing});
  run.committer().plan({"resolve", 1, FaultMode::crash_before});
  EXPECT_OK(run.commit());
  EXPECT_EQ(entries(run.objects(), "i"), 5u);
  const size_t before = logs(run.objects());
  run.sweep_committer();
  EXPECT_EQ(entries(run.objects(), "i"), 0u);
  EXPECT_EQ(logs(run.objects()), before - 1);
  EXPECT_EQ(run.witness(), after_commit);
}

TEST_F(ClusterDeaths, WhoIsFencedOffCommitsNothingAcrossRanges) {
  CommitRun run({Reach::three_ranges, Meanwhile::nothing});
  run.sweep_committer();
  const Status status = run.commit();
  EXPECT_EQ(status.error().code, Code::unavailable) << status.error().message;
  EXPECT_EQ(run.witness(), before_commit);
}

TEST_F(ClusterDeaths, AClosedEngineLeavesNoLog) {
  FakeObjectStore store;
  FakeClock clock(0);
  { const auto engine = ClusterEngine::open(store, clock); }
  EXPECT_EQ(logs(store), 0u);
}

TEST(ClusterEngine, TheLargestCommitAcrossRanges) {
  FakeObjectStore store;
  FakeClock clock(0);
  const auto engine = std::move(*ClusterEngine::open(store, clock));
  ASSERT_OK(split_range(store, *find_range(store, "n"), "n", RangeId{2}));
  const Bytes large(value_bytes_max - key_bytes_max, 'v');
  Commit wanted;  // nearly all of it in one of them
  for (const char* key : {"a", "b"}) wanted.writes.put(key, large);
  wanted.writes.put("z", "small");
  ASSERT_OK(commit(*engine, wanted));
  Value value;
  ASSERT_OK(engine->get("b", value));
  EXPECT_TRUE(value.bytes() == large);
}

TEST(ClusterEngine, KeysThatAreNotInTheMap) {
  FakeObjectStore store;
  FakeClock clock(0);
  const auto engine = std::move(*ClusterEngine::open(store, clock));
  const Bytes wrong[] = {"\xff\xff",
                         "\xff\xff"
                         "a",
                         Bytes("x\0\0\1d", 5), Bytes("x\0\0\1d?", 6), Bytes("x\0\0\1f\1short", 11)};
  for (const Bytes& key : wrong) {
    Value value;
    EXPECT_OK(engine->get(key, value));
    EXPECT_FALSE(value.found());
    Commit wanted;
    wanted.writes.put(key, "v");
    EXPECT_EQ(commit(*engine, wanted).error().code, Code::invalid) << quote(key);
    wanted.writes.clear();
    wanted.writes.remove_range(key, "");  // any bytes bound an interval
    EXPECT_OK(commit(*engine, wanted));
  }
}

}  // namespace
}  // namespace trellis
