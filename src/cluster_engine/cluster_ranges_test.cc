#include "cluster_engine/cluster_ranges.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "cluster_engine/cluster_engine.h"
#include "cluster_engine/range_audit.h"
#include "codec/keyspace_keys.h"
#include "codec/meta_keys.h"
#include "object_store/fake_object_store.h"
#include "object_store/faulty_object_store.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

// One client of a cluster: a map, its ranges, who keeps them.
struct KeeperClient {
  KeeperClient(ObjectStore& shared, FakeClock& its_clock, std::vector<KeyspaceId>& living,
               KeeperOptions options)
      : store(shared), clock(its_clock) {
    auto opened = ClusterEngine::open(store, clock);
    EXPECT_OK(opened);
    engine = std::move(*opened);
    options.living = [&living]() -> Result<std::vector<KeyspaceId>> { return living; };
    auto kept =
        ClusterRanges::open(store, *engine, clock, accounting,
                            {.keeper = std::move(options), .changes = {.page_entries = 50}});
    EXPECT_OK(kept);
    ranges = std::move(*kept);
  }
  void tick(int times = 1) {
    for (int i = 0; i < times; i++) {
      clock.advance_ms(1'000);
      ASSERT_OK(ranges->keeper().tick());
      while (ranges->keeper().count_next()) continue;
    }
  }
  std::vector<RangeFigures> figures() { return accounting.figures({}, 1'000'000); }
  std::vector<std::string> reasons() {
    std::vector<std::string> all;
    const auto events = ranges->log().read(0, 1'000);
    EXPECT_OK(events);
    for (const RangeEvent& event : *events) all.push_back(event.action + " " + event.reason);
    return all;
  }
  size_t writes() const {
    size_t count = 0;
    for (const PassedPoint& point : store.passed()) count += point.is_write ? 1 : 0;
    return count;
  }

  FaultyObjectStore store;
  FakeClock& clock;
  std::unique_ptr<ClusterEngine> engine;
  RangeAccounting accounting{1};
  std::unique_ptr<ClusterRanges> ranges;
};

KeeperOptions small_ranges() {
  KeeperOptions options = cluster_keeper_options();
  options.range_bytes_max = 20'000;
  options.range_keys_max = 200;
  options.walk_bytes_per_s = 0;
  options.recount_ms = 30'000;
  options.relist_ms = 20'000;
  return options;
}

class ClusterKeeper : public testing::Test {
 protected:
  KeeperClient& open(const KeeperOptions& options = small_ranges()) {
    clients_.push_back(std::make_unique<KeeperClient>(store_, clock_, living_, options));
    return *clients_.back();
  }
  static Bytes key_of(uint32_t keyspace, uint64_t n) {
    return encode(RawKey{{keyspace}, fmt::format("{:06}", n)});
  }
  void put(Engine& engine, uint32_t keyspace, uint64_t first, uint64_t end, size_t value_bytes) {
    Commit some;
    for (uint64_t n = first; n < end; n++) {
      const Bytes key = key_of(keyspace, n);
      some.writes.put(key, Bytes(value_bytes, 'v'));
      model_[key] = Bytes(value_bytes, 'v');
    }
    ASSERT_OK(commit(engine, some));
  }
  void remove(Engine& engine, uint32_t keyspace, uint64_t first, uint64_t end) {
    Commit some;
    for (uint64_t n = first; n < end; n++) {
      some.writes.remove(key_of(keyspace, n));
      model_.erase(key_of(keyspace, n));
    }
    ASSERT_OK(commit(engine, some));
  }
  std::vector<RangeDescriptor> ranges() {
    std::vector<RangeDescriptor> all;
    EXPECT_OK(clients_[0]->ranges->home().for_each([&](const RangeDescriptor& range) {
      all.push_back(range);
      return Visit::go_on;
    }));
    return all;
  }
  // Everything that was written is there, the objects are as they must be, and no range goes over
  // the border of a keyspace.
  void expect_sound(Engine& engine) {
    std::map<Bytes, Bytes> there;
    Bytes begin = "r";
    while (true) {
      const auto page =
          engine.scan({.begin = begin, .end = "s"}, [&](ByteView key, ByteView value) {
            there.emplace(key, value);
            return Visit::go_on;
          });
      ASSERT_OK(page);
      if (!page->resume) break;
      begin = *page->resume;
    }
    EXPECT_EQ(there, model_);
    const auto audit = audit_ranges(store_);
    ASSERT_OK(audit);
    EXPECT_EQ(audit->problems, std::vector<std::string>());
    for (const RangeDescriptor& range : ranges())
      for (const KeyspaceId keyspace : living_) {
        const Bytes border = encode(RawKey{keyspace, {}});
        EXPECT_FALSE(range.start < border && border < range.end) << to_string(range);
      }
  }

  FakeObjectStore store_;
  FakeClock clock_{1'700'000'000'000};
  std::vector<KeyspaceId> living_;
  std::map<Bytes, Bytes> model_;
  std::vector<std::unique_ptr<KeeperClient>> clients_;
};

TEST_F(ClusterKeeper, AClusterHasItsOwnLimits) {
  const KeeperOptions options = cluster_keeper_options();
  EXPECT_EQ(options.range_bytes_max, 64u << 20);
  EXPECT_EQ(options.range_keys_max, 50'000u);
}

TEST_F(ClusterKeeper, SplitsByKeysAndBytesMergesAndSaysWhy) {
  KeeperClient& client = open();
  living_ = {{3}, {5}, {7}};
  ASSERT_NO_FATAL_FAILURE(client.tick());
  EXPECT_EQ(ranges().size(), 7u);  // 'r' and 'x' of three keyspaces, and what is before them
  EXPECT_EQ(client.reasons().at(0), "split border: keyspace 7 begins there");
  ASSERT_NO_FATAL_FAILURE(client.tick(62));  // new ones rest before they are counted

  ASSERT_NO_FATAL_FAILURE(put(*client.engine, 3, 0, 1'000, 1));
  ASSERT_NO_FATAL_FAILURE(put(*client.engine, 5, 0, 100, 1'000));
  // Nobody sampled this traffic: it is seen when it is counted again.
  clock_.advance_ms(30'000);
  const size_t before = ranges().size();
  const size_t writes = client.writes();
  const auto plan = client.ranges->keeper().plan(100);
  ASSERT_OK(plan);
  EXPECT_EQ(plan->total, before);
  for (const RangeAction& action : plan->actions) EXPECT_EQ(action.kind, RangeAction::Kind::count);
  EXPECT_EQ(client.writes(), writes);  // a dry run
  EXPECT_EQ(ranges().size(), before);

  ASSERT_NO_FATAL_FAILURE(client.tick(2));
  EXPECT_EQ(ranges().size(), before + 9 + 9);  // 1,000 keys by 100, 100 KB by 10
  const std::vector<std::string> reasons = client.reasons();
  EXPECT_EQ(std::count(reasons.begin(), reasons.end(),
                       "split keys: 1000 keys in 11000 bytes, over 200 keys: 10 parts"),
            9);
  EXPECT_EQ(std::count(reasons.begin(), reasons.end(),
                       "split size: 101000 bytes in 100 keys, over 20000 bytes: 10 parts"),
            9);
  ASSERT_NO_FATAL_FAILURE(expect_sound(*client.engine));

  ASSERT_NO_FATAL_FAILURE(remove(*client.engine, 3, 3, 1'000));
  ASSERT_NO_FATAL_FAILURE(remove(*client.engine, 5, 3, 100));
  ASSERT_NO_FATAL_FAILURE(client.tick(100));
  EXPECT_EQ(ranges().size(), 7u);  // as before, and never over the border of a keyspace
  EXPECT_TRUE(client.reasons().at(0).starts_with("merge small: ")) << client.reasons().at(0);
  ASSERT_NO_FATAL_FAILURE(expect_sound(*client.engine));
  living_.clear();
  ASSERT_NO_FATAL_FAILURE(client.tick(100));
  EXPECT_LE(ranges().size(), 2u);  // the log and figures are keys of the map too
  ASSERT_NO_FATAL_FAILURE(expect_sound(*client.engine));
}

TEST_F(ClusterKeeper, KeepsToItsPaceAlsoWhenItCopies) {
  KeeperOptions options = small_ranges();
  options.walk_bytes_per_s = 10'000;
  KeeperClient& client = open(options);
  living_ = {{5}};
  ASSERT_NO_FATAL_FAILURE(client.tick(62));
  ASSERT_NO_FATAL_FAILURE(put(*client.engine, 5, 0, 100, 1'000));
  clock_.advance_ms(30'000);
  const uint64_t before_us = clock_.monotonic_us();
  ASSERT_NO_FATAL_FAILURE(client.tick(1));
  EXPECT_GE(ranges().size(), 10u);
  // 100 KB are read, and all but the first part are copied.
  EXPECT_GE(clock_.monotonic_us() - before_us, 19'000'000u);
  EXPECT_LE(clock_.monotonic_us() - before_us, 25'000'000u);
}

TEST_F(ClusterKeeper, ARangeThatFailsStopsNoOther) {
  KeeperClient& client = open();
  living_ = {{3}, {5}, {7}};
  ASSERT_NO_FATAL_FAILURE(client.tick(62));
  for (const uint32_t keyspace : {3u, 5u, 7u})
    ASSERT_NO_FATAL_FAILURE(put(*client.engine, keyspace, 0, 300, 1));
  clock_.advance_ms(30'000);
  size_t copies = 0;
  for (const PassedPoint& point : client.store.passed()) copies += point.point == "split.copy";
  client.store.plan({.point = "split.copy", .nth = copies + 1, .mode = FaultMode::error});
  const size_t before = ranges().size();
  ASSERT_NO_FATAL_FAILURE(client.tick());
  const size_t after = ranges().size();
  EXPECT_EQ(after, before + 4);  // two of three, in three parts each
  ASSERT_NO_FATAL_FAILURE(client.tick(12));
  EXPECT_EQ(ranges().size(), before + 6);
  ASSERT_NO_FATAL_FAILURE(expect_sound(*client.engine));
}

// Any number of clients keep the same ranges, none asks another.
TEST_F(ClusterKeeper, SeveralKeepersOfTheSameRanges) {
  Random random(test_seed(97));
  living_ = {{3}, {5}};
  for (int i = 0; i < 3; i++) open();
  for (uint64_t round = 0; round < 40; round++) {
    KeeperClient& client = *clients_[random.below(3)];
    const auto keyspace = static_cast<uint32_t>(3 + 2 * random.below(3));
    const uint64_t first = random.below(2'000);
    const uint64_t end = first + random.below(300);
    if (random.one_in(2))
      ASSERT_NO_FATAL_FAILURE(remove(*client.engine, keyspace, first, end));
    else
      ASSERT_NO_FATAL_FAILURE(put(*client.engine, keyspace, first, end, random.below(300)));
    if (random.one_in(10)) living_ = {{3}, {5}, {7}};
    if (random.one_in(10)) living_ = {{3}, {7}};
    ASSERT_NO_FATAL_FAILURE(clients_[random.below(3)]->tick(static_cast<int>(random.below(40))));
  }
  // They all come to rest, with ranges that are as they are to be.
  for (int i = 0; i < 200; i++)
    for (const auto& client : clients_) ASSERT_NO_FATAL_FAILURE(client->tick());
  ASSERT_NO_FATAL_FAILURE(expect_sound(*clients_[0]->engine));
  const std::vector<RangeDescriptor> there = ranges();
  for (const RangeDescriptor& range : there) {
    uint64_t bytes = 0;
    uint64_t keys = 0;
    const auto visit = [&](ByteView key, ByteView value) {
      bytes += key.size() + value.size();
      keys++;
      return Visit::go_on;
    };
    ASSERT_OK(clients_[0]->ranges->home().walk(range, visit, [] { return Visit::go_on; }));
    EXPECT_LE(keys, 200u) << to_string(range);
    EXPECT_LE(bytes, 20'000u) << to_string(range);
  }
  for (const auto& client : clients_) {
    std::vector<RangeDescriptor> known;
    for (const RangeFigures& figures : client->figures()) known.push_back(figures.range);
    EXPECT_EQ(known, there);
  }
}

}  // namespace
}  // namespace trellis
