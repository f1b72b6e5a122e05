#include "support/cluster_world.h"

#include <cstdlib>
#include <stdexcept>

#include "cluster_engine/range_audit.h"
#include "cluster_engine/range_change.h"
#include "cluster_engine/range_lookup.h"
#include "engine/memory_engine.h"
#include "support/test_engine.h"

namespace trellis {
namespace {

constexpr size_t ranges_max = 12;
constexpr ByteView first_split = "\x04";  // before it, the directory

// Ends the test, and only it: nothing can go on without an engine.
template <class T>
T or_throw(Result<T> result) {
  if (!result.has_value()) throw std::runtime_error(to_string(result.error()));
  return std::move(*result);
}

}  // namespace

ClusterWorld::ClusterWorld() {
  if (Status made = bootstrap_ranges(store_); !made.has_value())
    throw std::runtime_error(to_string(made.error()));
}

ClusterWorld::~ClusterWorld() { stop_changes(); }

ClusterWorld::Client ClusterWorld::open_client(ClusterEngineOptions options) {
  Client client;
  client.store = std::make_unique<FaultyObjectStore>(store_);
  client.engine = or_throw(ClusterEngine::open(*client.store, clock_, options));
  return client;
}

void ClusterWorld::split_at(ByteView address) {
  const Result<RangeHeader> range = find_range(store_, address);
  if (!range.has_value() || range->state != RangeState::live || range->start == address) return;
  if (split_range(store_, *range, address, RangeId{++last_range_}).has_value()) changes_++;
}

void ClusterWorld::split_one(Random& random, ObjectStore& client, const RangeHeader& range) {
  ReadAnswer answer;
  ReadOperation operation;
  operation.omap_pages.push_back({.start_after = entry_key(EntryKind::version, first_split),
                                  .prefix = entry_key(EntryKind::version, {})});
  if (store_.read("test", range_object_name(range.id), operation, answer) < 0) return;
  const auto& entries = answer.pages[0].entries;
  if (entries.empty()) return;
  const Bytes at = entries[random.below(entries.size())].first.substr(1);
  if (range.state == RangeState::live && range.start < at && at < range.end &&
      split_range(client, range, at, RangeId{++last_range_}).has_value())
    changes_++;
}

void ClusterWorld::change_one(Random& random) {
  std::vector<RangeHeader> ranges;
  discard(for_each_range(store_, [&](const RangeHeader& range) {
    ranges.push_back(range);
    return Visit::go_on;
  }));
  if (ranges.empty()) return;
  FaultyObjectStore client(store_);
  uint64_t operations_left = random.one_in(4) ? 1 + random.below(20) : 0;
  client.before_each([&](const PassedPoint&) {
    if (operations_left > 0 && --operations_left == 0) client.kill();
  });
  const size_t chosen = random.below(ranges.size());
  if (ranges[chosen].state != RangeState::live && random.one_in(2))
    return discard(settle_range(store_, ranges[chosen].id));
  if (ranges.size() < ranges_max && random.one_in(2))
    return split_one(random, client, ranges[chosen]);
  if (chosen + 1 == ranges.size() || ranges[chosen].end != ranges[chosen + 1].start) return;
  if (ranges[chosen].end <= first_split) return;
  const bool are_live =
      ranges[chosen].state == RangeState::live && ranges[chosen + 1].state == RangeState::live;
  if (are_live && merge_ranges(client, ranges[chosen], ranges[chosen + 1]).has_value()) changes_++;
}

void ClusterWorld::start_changes(uint64_t seed) {
  enough_ = false;
  changer_ = std::thread([this, seed] {
    Random random(seed);
    while (!enough_) {
      const uint64_t start_us = clock_.monotonic_us();
      change_one(random);
      clock_.pause_us(clock_.monotonic_us() - start_us + random.below(500));
    }
  });
}

void ClusterWorld::stop_changes() {
  enough_ = true;
  if (changer_.joinable()) changer_.join();
}

std::vector<std::string> ClusterWorld::problems() {
  Result<RangeAudit> audit = audit_ranges(store_);
  if (!audit.has_value()) return {to_string(audit.error())};
  return std::move(audit->problems);
}

TestEngine open_test_engine() {
  const char* const wanted = std::getenv("TRELLIS_TEST_ENGINE");
  if (wanted == nullptr) return {nullptr, std::make_unique<MemoryEngine>()};
  if (std::string_view(wanted) != "cluster")
    throw std::runtime_error("TRELLIS_TEST_ENGINE knows cluster only");
  struct OneClient {
    ClusterWorld world;
    std::unique_ptr<FaultyObjectStore> store;
  };
  auto one = std::make_shared<OneClient>();
  for (const ByteView at : {ByteView("\x04/keyspaces/t"), ByteView("r\0\0\0", 4),
                            ByteView("r\0\0\1m", 5), ByteView("x\0\0\0d", 5),
                            ByteView("x\0\0\0d\1"
                                     "0k",
                                     8),
                            ByteView("x\0\0\0k", 5)})
    one->world.split_at(at);
  ClusterWorld::Client client = one->world.open_client();
  one->store = std::move(client.store);
  return {std::move(one), std::move(client.engine)};
}

}  // namespace trellis
