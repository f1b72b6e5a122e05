// Every single fault and every pair of faults in a split and in a merge: the one who splits has the
// first, the one who comes next and puts things in order the second; and the other way round, every
// place at which the next comer interrupts one who goes on after that, with every fault of the
// comer. Before each operation of both, a writer and a reader act with headers that they read long
// ago; after all, somebody undoes what was done, before the last late operation arrives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <semaphore>
#include <thread>

#include "cluster_engine/range_audit.h"
#include "cluster_engine/range_change.h"
#include "cluster_engine/range_lookup.h"
#include "object_store/fake_object_store.h"
#include "object_store/faulty_object_store.h"

namespace trellis {
namespace {

constexpr RangeChangeOptions small_pages{.page_entries = 3, .page_bytes = 200};
constexpr int keys_max = 14;
constexpr std::string_view border = "k06";
const Bytes intent_key = "k10";  // has an intent, which goes where its key goes

enum class Operation : uint8_t { split, merge };

class World {
 public:
  void make(Operation operation) {
    ASSERT_TRUE(bootstrap_ranges(store_).has_value());
    for (int i = 0; i < keys_max; ++i) {
      const Bytes key = fmt::format("k{:02}", i);
      model_[key] = "0";
      const Bytes writer = encode_writer({1, ++sequence_});
      store_.write("make", "r.1",
                   {.changes = {OmapSet{entry_key(EntryKind::payload, key), encode_payload("0")},
                                OmapSet{entry_key(EntryKind::version, key), writer},
                                OmapSet{entry_key(EntryKind::structure, {}), writer}}});
    }
    store_.write("make", "r.1",
                 {.changes = {OmapSet{entry_key(EntryKind::intent, intent_key), "intent"}}});
    if (operation == Operation::merge) {
      const RangeHeader all = *find_range(store_, border);
      ASSERT_TRUE(split_range(store_, all, border, RangeId{2}).has_value());
    }
    for (const auto& [key, value] : model_) known_[key] = *find_range(store_, key);
  }
  void copy_from(const World& other) {
    store_.copy_from(other.store_);
    model_ = other.model_;
    known_ = other.known_;
    sequence_ = other.sequence_;
    turn_ = other.turn_;
  }

  void act() {
    ++turn_;
    const Bytes key = fmt::format("k{:02}", turn_ * 3 % keys_max);
    if (turn_ % 3 == 0) {
      read(key);
    } else {
      write(turn_ % 3 == 1 ? Bytes(border) : key);
    }
  }
  // Appends something unique to a value. False: the range may not be written now.
  bool write(const Bytes& key) {
    if (key == intent_key) return read(key);
    for (int attempt = 0; attempt < 3; ++attempt) {
      RangeHeader& header = known_[key];
      ReadAnswer seen;
      if (header.may_write(key) && look(header, key, seen)) {
        expect_model(key, seen);
        const Bytes value = model_[key] + "," + std::to_string(++sequence_);
        const Bytes version_key = entry_key(EntryKind::version, key);
        const Bytes writer = encode_writer({1, sequence_});
        const int answer = store_.write(
            "write", range_object_name(header.id),
            {.guards = {generation_is(header),
                        OmapIs{version_key, Compare::equal, seen.omap[version_key]}},
             .changes = {OmapSet{entry_key(EntryKind::payload, key), encode_payload(value)},
                         OmapSet{version_key, writer},
                         OmapSet{entry_key(EntryKind::structure, {}), writer}}});
        if (answer == 0) {
          model_[key] = value;
          return true;
        }
      }
      refresh(key);
    }
    return false;
  }
  bool read(const Bytes& key) {
    for (int attempt = 0; attempt < 3; ++attempt) {
      ReadAnswer seen;
      if (known_[key].may_read() && look(known_[key], key, seen)) {
        expect_model(key, seen);
        return true;
      }
      refresh(key);
    }
    return false;
  }

  // What a client does that meets a state which does not pass. True: all is quiet.
  // From either end: what is frozen may be met before or after who freezes it.
  static bool settle_all(ObjectStore& client, bool backwards = false) {
    for (int round = 0; round < 4; ++round) {
      std::vector<RangeId> ids;
      if (client.list("r.", [&](ByteView name) { ids.push_back(*parse_range_object_name(name)); }))
        return false;
      if (backwards) std::ranges::reverse(ids);
      bool quiet = true;
      for (const RangeId id : ids) {
        const Result<RangeHeader> header = read_header(client, "comer.read", id);
        if (!header.has_value()) continue;
        if (header->state == RangeState::live || header->state == RangeState::gone) continue;
        quiet = false;
        discard(settle_range(client, id));
      }
      if (quiet) return true;
    }
    return false;
  }

  void check() {
    EXPECT_TRUE(settle_all(store_));
    for (const auto& [key, value] : model_) EXPECT_TRUE(write(key) && read(key)) << key;
    const Result<RangeAudit> audit = audit_ranges(store_);
    ASSERT_TRUE(audit.has_value());
    EXPECT_EQ(audit->problems, std::vector<std::string>());
    EXPECT_TRUE(audit->ranges == 1 || audit->ranges == 2);
    for (const std::string& leftover : audit->leftovers)
      EXPECT_TRUE(leftover.find("\"gone") != Bytes::npos || leftover.starts_with("the directory"))
          << leftover;
    size_t intents = 0;
    EXPECT_TRUE(for_each_range(store_, [&](const RangeHeader& range) {
                  ReadAnswer answer;
                  store_.read("check", range_object_name(range.id),
                              {.omap_keys = {entry_key(EntryKind::intent, intent_key)}}, answer);
                  intents += answer.omap.size();
                  return Visit::go_on;
                }).has_value());
    EXPECT_EQ(intents, 1u);
  }

  // Merges what is split and splits what is one. REQUIRES: all is quiet
  void turn_around() {
    const Result<RangeHeader> left = find_range(store_, "k00");
    const Result<RangeHeader> right = find_range(store_, border);
    ASSERT_TRUE(left.has_value() && right.has_value());
    const Status done = left->id == right->id
                            ? split_range(store_, *left, border, RangeId{++last_id_})
                            : merge_ranges(store_, *left, *right);
    EXPECT_TRUE(done.has_value()) << to_string(done.error());
  }

  FakeObjectStore& store() { return store_; }

 private:
  bool look(const RangeHeader& header, const Bytes& key, ReadAnswer& seen) {
    return store_.read("look", range_object_name(header.id),
                       {.guards = {generation_is(header)},
                        .omap_keys = {entry_key(EntryKind::payload, key),
                                      entry_key(EntryKind::version, key)}},
                       seen) >= 0;
  }
  void expect_model(const Bytes& key, const ReadAnswer& seen) {
    const auto found = seen.omap.find(entry_key(EntryKind::payload, key));
    ASSERT_NE(found, seen.omap.end()) << "lost: " << key;
    EXPECT_EQ(found->second, encode_payload(model_[key])) << key;
  }
  void refresh(const Bytes& key) {
    Result<RangeHeader> header = find_range_from(store_, known_[key].id, key);
    ASSERT_TRUE(header.has_value()) << to_string(header.error());
    known_[key] = std::move(*header);
  }

  FakeObjectStore store_;
  std::map<Bytes, Bytes> model_;
  std::map<Bytes, RangeHeader> known_;
  uint64_t sequence_ = 0;
  int turn_ = 0;
  uint64_t last_id_ = 100;
};

// When what was delayed or is to be applied twice arrives.
enum class Arrival : uint8_t { before_next, after_next, at_the_end };

class RangeCrash : public testing::TestWithParam<std::tuple<Operation, bool>> {
 protected:
  void SetUp() override {
    operation_ = std::get<0>(GetParam());
    backwards_ = std::get<1>(GetParam());
    start_.make(operation_);
  }

  void begin(FaultyObjectStore& client, World& world) {
    const Result<RangeHeader> left = find_range(world.store(), "k00");
    if (operation_ == Operation::split) {
      discard(split_range(client, *left, border, RangeId{5}, 0, small_pages));
    } else {
      const Result<RangeHeader> right = find_range(world.store(), border);
      discard(merge_ranges(client, *left, *right, small_pages));
    }
  }

  // The same once more, if it is not done. REQUIRES: all is quiet
  void again(ObjectStore& client, World& world) {
    const Result<RangeHeader> left = find_range(world.store(), "k00");
    const Result<RangeHeader> right = find_range(world.store(), border);
    if (!left.has_value() || !right.has_value() || left->state != RangeState::live ||
        right->state != RangeState::live)
      return;
    if (operation_ == Operation::split && left->id == right->id)
      discard(split_range(client, *left, border, RangeId{6}, 0, small_pages));
    if (operation_ == Operation::merge && left->right == right->id)
      discard(merge_ranges(client, *left, *right, small_pages));
  }

  // The points that a client passes which has the first fault, or which comes next after it.
  std::vector<PassedPoint> points_of_first() {
    World world;
    world.copy_from(start_);
    FaultyObjectStore client(world.store());
    client.before_each([&](const PassedPoint&) { world.act(); });
    begin(client, world);
    world.check();
    return client.passed();
  }

  // Runs one case; returns what the next comer passed.
  std::vector<PassedPoint> run(const Fault& first, const std::optional<Fault>& second,
                               Arrival arrival, Arrival second_arrival = Arrival::after_next) {
    World world;
    world.copy_from(start_);
    FaultyObjectStore one(world.store());
    one.plan(first);
    one.before_each([&](const PassedPoint&) { world.act(); });
    begin(one, world);
    if (arrival == Arrival::before_next) one.release();

    FaultyObjectStore next(world.store());
    if (second) next.plan(*second);
    next.before_each([&](const PassedPoint&) { world.act(); });
    World::settle_all(next, backwards_);
    if (arrival == Arrival::after_next) one.release();
    if (second_arrival == Arrival::after_next) next.release();
    end(world, one, next);
    return next.passed();
  }

  // The comer acts before an operation of one who then goes on.
  std::vector<PassedPoint> interrupt(const PassedPoint& at, const std::optional<Fault>& fault) {
    World world;
    world.copy_from(start_);
    FaultyObjectStore one(world.store());
    FaultyObjectStore next(world.store());
    if (fault) next.plan(*fault);
    next.before_each([&](const PassedPoint&) { world.act(); });
    one.before_each([&](const PassedPoint& passed) {
      world.act();
      if (passed.point == at.point && passed.nth == at.nth) World::settle_all(next, backwards_);
    });
    begin(one, world);
    end(world, one, next);
    return next.passed();
  }

  void end(World& world, FaultyObjectStore& one, FaultyObjectStore& next) {
    world.check();
    world.turn_around();
    one.release();
    next.release();
    world.check();
    ++cases_;
  }

  // Each fault that one of these points can have.
  static void for_each_fault(const std::vector<PassedPoint>& points,
                             FunctionRef<void(const Fault&)> visit) {
    for (const PassedPoint& point : points) {
      for (const FaultMode mode : fault_modes) {
        // A read that is not answered has no effect in whatever way.
        if (!point.is_write && mode != FaultMode::error && mode != FaultMode::crash_before &&
            mode != FaultMode::lost)
          continue;
        const Fault fault{point.point, point.nth, mode};
        SCOPED_TRACE(name(fault));
        if (!HasFailure()) visit(fault);
      }
    }
  }

  static bool holds_back(FaultMode mode) {
    return mode == FaultMode::delayed || mode == FaultMode::duplicated;
  }
  static std::string name(const Fault& fault) {
    return fmt::format("{} {} {}", fault.point, fault.nth, to_string(fault.mode));
  }

  World start_;
  Operation operation_ = Operation::split;
  bool backwards_ = false;
  uint64_t cases_ = 0;
};

TEST_P(RangeCrash, EveryFaultAndEveryPairOfFaults) {
  const std::vector<PassedPoint> points = points_of_first();
  uint64_t singles = 0;
  for_each_fault(points, [&](const Fault& first) {
    std::vector<Arrival> arrivals = {Arrival::before_next};
    if (holds_back(first.mode))
      arrivals = {Arrival::before_next, Arrival::after_next, Arrival::at_the_end};
    for (const Arrival arrival : arrivals) {
      ++singles;
      for_each_fault(run(first, std::nullopt, arrival), [&](const Fault& second) {
        run(first, second, arrival);
        if (holds_back(second.mode)) run(first, second, arrival, Arrival::at_the_end);
      });
    }
  });
  std::printf("%zu fault points, %llu single faults, %llu cases\n", points.size(),
              static_cast<unsigned long long>(singles), static_cast<unsigned long long>(cases_));
}

TEST_P(RangeCrash, TheNextComerInterruptsEverywhere) {
  const std::vector<PassedPoint> points = points_of_first();
  for (const PassedPoint& at : points) {
    SCOPED_TRACE(fmt::format("before {} {}", at.point, at.nth));
    for_each_fault(interrupt(at, std::nullopt), [&](const Fault& fault) { interrupt(at, fault); });
    ASSERT_FALSE(HasFailure());
  }
  std::printf("%zu places, %llu cases\n", points.size(), static_cast<unsigned long long>(cases_));
}

// A client in a thread of its own, which makes so many operations and then waits.
class PausedClient {
 public:
  PausedClient(World& world, std::function<void(ObjectStore&)> work) : client_(world.store()) {
    client_.before_each([this, &world](const PassedPoint&) {
      world.act();
      if (left_-- > 0) return;
      stopped_.release();
      go_.acquire();
      --left_;
    });
    thread_ = std::thread([this, work = std::move(work)] {
      go_.acquire();
      work(client_);
      finished_ = true;
      stopped_.release();
    });
  }
  ~PausedClient() {
    finish();
    thread_.join();
  }
  void finish() {
    while (run(std::numeric_limits<int>::max())) {
    }
  }
  // False: it has finished. One client runs at a time, so nothing is left to chance.
  bool run(int operations) {
    if (finished_) return false;
    left_ = operations;
    go_.release();
    stopped_.acquire();
    return !finished_;
  }

 private:
  FaultyObjectStore client_;
  std::binary_semaphore go_{0}, stopped_{0};
  int left_ = 0;
  bool finished_ = false;
  std::thread thread_;
};

// One died in the middle. One who puts that in order is overtaken, after any operation, by another
// who does so too and begins anew, and who is overtaken by the first after any operation.
TEST_P(RangeCrash, TwoWhoComeNextOvertakeEachOther) {
  for (const PassedPoint& point : points_of_first()) {
    // Of many pages one is enough, and the directory decides nothing.
    if (!point.is_write || point.nth > 1 || point.point.ends_with(".directory")) continue;
    bool slow_goes_on = true;
    for (int slow_steps = 1; slow_goes_on; ++slow_steps) {
      bool quick_goes_on = true;
      for (int quick_steps = 1; quick_goes_on; ++quick_steps) {
        SCOPED_TRACE(
            fmt::format("after {} {}: {}, {}", point.point, point.nth, slow_steps, quick_steps));
        World world;
        world.copy_from(start_);
        FaultyObjectStore one(world.store());
        one.plan({point.point, point.nth, FaultMode::crash_after});
        begin(one, world);
        {
          PausedClient slow(world,
                            [&](ObjectStore& client) { World::settle_all(client, backwards_); });
          PausedClient quick(world, [&](ObjectStore& client) {
            World::settle_all(client, backwards_);
            again(client, world);
          });
          slow_goes_on = slow.run(slow_steps);
          quick_goes_on = quick.run(quick_steps);
          slow.finish();
          quick.finish();
        }
        world.check();
        ++cases_;
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  std::printf("%llu cases\n", static_cast<unsigned long long>(cases_));
}

INSTANTIATE_TEST_SUITE_P(All, RangeCrash,
                         testing::Combine(testing::Values(Operation::split, Operation::merge),
                                          testing::Bool()),
                         [](const auto& info) {
                           const bool split = std::get<0>(info.param) == Operation::split;
                           return std::string(split ? "Split" : "Merge") +
                                  (std::get<1>(info.param) ? "Backwards" : "");
                         });

}  // namespace
}  // namespace trellis
