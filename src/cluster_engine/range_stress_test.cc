// Many clients at once: writers and those who split, merge and give up in the middle, at random.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "base/random.h"
#include "cluster_engine/cluster_home.h"
#include "cluster_engine/range_audit.h"
#include "cluster_engine/range_lookup.h"
#include "cluster_engine/range_sweeper.h"
#include "object_store/fake_object_store.h"
#include "object_store/faulty_object_store.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr int stress_keys = 40;
Bytes stress_key(uint64_t index) { return fmt::format("k{:02}", index); }

// Appends numbers of its own to the values of all keys.
class Appender {
 public:
  Appender(ObjectStore& store, uint64_t incarnation, uint64_t seed)
      : store_(store), incarnation_(incarnation), random_(seed) {}

  void append(uint64_t count) {
    while (sequence_ < count) {
      const Bytes key = stress_key(random_.below(stress_keys));
      ++sequence_;
      const Bytes token = fmt::format("{}.{} ", incarnation_, sequence_);
      for (unsigned tries = 0; !try_append(key, token); ++tries) {
        // It waits a little for the state to pass, then helps.
        if (tries % 8 == 7) discard(settle_range(store_, known_[key].id));
        known_[key] = find_range_from(store_, known_[key].id, key).value_or(known_[key]);
      }
    }
  }

 private:
  bool try_append(const Bytes& key, const Bytes& token) {
    if (known_[key].generation == 0) known_[key] = find_range(store_, key).value_or(RangeHeader{});
    const RangeHeader& header = known_[key];
    if (!header.holds(key) || !header.may_write(key)) return false;
    const Bytes payload_key = entry_key(EntryKind::payload, key);
    const Bytes version_key = entry_key(EntryKind::version, key);
    const Bytes object = range_object_name(header.id);
    ReadAnswer seen;
    if (store_.read("get", object,
                    {.guards = {generation_is(header)}, .omap_keys = {payload_key, version_key}},
                    seen) < 0)
      return false;
    const Bytes value = seen.omap.contains(payload_key) ? seen.omap[payload_key] : Bytes("\x01");
    return store_.write("put", object,
                        {.guards = {generation_is(header),
                                    OmapIs{version_key, Compare::equal, seen.omap[version_key]}},
                         .changes = {OmapSet{payload_key, value + token},
                                     OmapSet{version_key, encode_writer({incarnation_, sequence_})},
                                     OmapSet{entry_key(EntryKind::structure, {}),
                                             encode_writer({incarnation_, sequence_})}}}) >= 0;
  }

  ObjectStore& store_;
  uint64_t incarnation_;
  Random random_;
  uint64_t sequence_ = 0;
  std::map<Bytes, RangeHeader> known_;
};

// Splits and merges at random; every few of its lives end in the middle of one.
void split_and_merge(FakeObjectStore& store, uint64_t seed, const std::atomic<bool>& stop,
                     std::atomic<uint64_t>& changes) {
  Random random(seed);
  SystemClock clock;
  while (!stop) {
    FaultyObjectStore client(store, random.next());
    client.plan({random.one_in(2) ? "split.copy" : "merge.copy", 1 + random.below(30),
                 fault_modes[random.below(std::size(fault_modes))]});
    client.plan({random.one_in(2) ? "split.commit" : "merge.commit", 1 + random.below(5),
                 fault_modes[random.below(std::size(fault_modes))]});
    RangeIdCounter ids(client);
    ClusterHome home(client, clock, [&] { return ids.next(); },
                     {.page_entries = 4, .patience_us = 500});
    RangeSweeper sweeper(client);
    for (int i = 0; i < 20 && !stop && !client.dead(); ++i) {
      const Bytes at = stress_key(random.below(stress_keys));
      const Result<RangeDescriptor> range = home.find(at);
      if (!range.has_value()) continue;
      if (random.one_in(2)) {
        if (home.split({*range, at}).has_value()) ++changes;
      } else if (range->end < "z") {
        const Result<RangeDescriptor> right = home.find(range->end);
        if (right.has_value() && home.merge(*range, *right, "random").has_value()) ++changes;
      }
      if (random.one_in(10)) discard(sweeper.sweep());
    }
    client.release();
  }
}

TEST(RangeStress, NoAppendIsLostOrDoubledWhileRangesAreSplitAndMerged) {
  const uint64_t seed = test_seed(7);
  const uint64_t appends = test_rounds(20'000);
  FakeObjectStore store;
  ASSERT_OK(bootstrap_ranges(store));
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> changes = 0;
  std::vector<std::thread> changers, writers;
  for (uint64_t i = 0; i < 2; ++i)
    changers.emplace_back([&, i] { split_and_merge(store, seed + i, stop, changes); });
  for (uint64_t i = 1; i <= 3; ++i)
    writers.emplace_back([&, i] { Appender(store, i, seed + i).append(appends); });
  for (std::thread& writer : writers) writer.join();
  stop = true;
  for (std::thread& changer : changers) changer.join();

  RangeSweeper sweeper(store);
  for (int i = 0; i < 10; ++i) ASSERT_OK(sweeper.sweep());
  const Result<RangeAudit> audit = audit_ranges(store);
  ASSERT_OK(audit);
  EXPECT_EQ(audit->problems, std::vector<std::string>());
  for (const std::string& leftover : audit->leftovers)
    EXPECT_TRUE(leftover.starts_with("the directory")) << leftover;
  std::map<Bytes, int> tokens;
  for (uint64_t i = 0; i < stress_keys; ++i) {
    const Bytes key = stress_key(i);
    const Result<RangeHeader> header = find_range(store, key);
    ASSERT_OK(header);
    ReadAnswer answer;
    store.read("check", range_object_name(header->id),
               {.omap_keys = {entry_key(EntryKind::payload, key)}}, answer);
    ByteView value = answer.omap[entry_key(EntryKind::payload, key)];
    if (!value.empty()) value.remove_prefix(1);
    for (size_t space; (space = value.find(' ')) != ByteView::npos; value.remove_prefix(space + 1))
      ++tokens[Bytes(value.substr(0, space))];
  }
  EXPECT_EQ(tokens.size(), 3 * appends);
  for (const auto& [token, count] : tokens) EXPECT_EQ(count, 1) << token;
  std::printf("%llu splits and merges, %zu ranges\n",
              static_cast<unsigned long long>(changes.load()), audit->ranges);
  EXPECT_GT(changes.load(), 20u);
}

}  // namespace
}  // namespace trellis
