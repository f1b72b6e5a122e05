// Every single fault of a commit, and every pair of one in the commit and one in whoever helps:
// what was answered is there, what was refused is not, nothing is ever half there or there twice.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "base/clock.h"
#include "cluster_engine/cluster_engine.h"
#include "cluster_engine/range_audit.h"
#include "cluster_engine/range_change.h"
#include "cluster_engine/range_lookup.h"
#include "object_store/fake_object_store.h"
#include "object_store/faulty_object_store.h"
#include "support/expect_ok.h"

namespace trellis {
namespace {

using State = std::vector<std::optional<Bytes>>;
constexpr const char* key_names[] = {"k1", "k2", "m1", "m2", "p1", "p2"};
const State before_commit = {"old", std::nullopt, "old", "old", "old", "old"};
const State after_commit = {"new", "new", "new", std::nullopt, "old", "new"};
const State after_writer = {"writer", "writer", "writer", "writer", "old", "writer"};
constexpr int looks_max = 2;                        // of one kind, that are made to fail
constexpr const char* range_starts[] = {"l", "n"};  // k.. | m.. | p..

enum class Change : uint8_t { none, split };
enum class Reach : uint8_t { one_range, three_ranges };

struct Scenario {
  Reach reach;
  Change change;  // after all caches were filled
};

struct Client {
  Client(FakeObjectStore& objects, Clock& clock)
      : store(objects),
        engine(std::move(*ClusterEngine::open(store, clock, {.patience_us = 500}))) {}
  FaultyObjectStore store;
  std::unique_ptr<ClusterEngine> engine;
};

State read_state(Engine& engine, Status& status) {
  std::vector<ByteView> keys(std::begin(key_names), std::end(key_names));
  std::vector<Value> values(keys.size());
  status = engine.multi_get(keys, values);
  State state;
  for (const Value& value : values)
    state.push_back(value.found() ? std::optional<Bytes>(value.bytes()) : std::nullopt);
  return state;
}

// One run from the same start: a committer that reads and commits, clients with old caches.
class CommitRun {
 public:
  explicit CommitRun(const Scenario& scenario) : scenario_(scenario) {
    for (Client* client : {&committer_, &helper_, &witness_}) {
      Status status;
      EXPECT_EQ(read_state(*client->engine, status), before_commit);
      EXPECT_OK(status);
    }
    plan_commit();
    if (scenario.change == Change::split) {
      for (const ByteView at : {ByteView("k2"), ByteView("m2")}) {
        const Result<RangeHeader> range = find_range(objects_, at);
        EXPECT_OK(split_range(objects_, *range, at, RangeId{100 + static_cast<uint64_t>(at[0])}));
      }
    }
  }
  ~CommitRun() {
    // A committer that died is swept; nothing of it is left.
    committer_.store.kill();
    EXPECT_OK(witness_.engine->sweep(
        [&](uint64_t incarnation) { return incarnation == committer_.engine->incarnation(); }));
    EXPECT_EQ(intents(), 0u);
    const auto audit = audit_ranges(objects_);
    EXPECT_OK(audit);
    EXPECT_TRUE(audit->problems.empty()) << audit->problems.front();
  }

  Status commit() { return trellis::commit(*committer_.engine, commit_); }
  // Meets whatever the committer has left.
  State help(Status& status) { return read_state(*helper_.engine, status); }
  State witness() {
    Status status;
    State state = read_state(*witness_.engine, status);
    EXPECT_OK(status);
    return state;
  }
  Status write_as_witness() {
    Commit writes;
    for (const char* name : {"k1", "k2", "m1", "m2", "p2"}) writes.writes.put(name, "writer");
    return trellis::commit(*witness_.engine, writes);
  }
  size_t release() { return committer_.store.release() + helper_.store.release(); }

  FaultyObjectStore& committer() { return committer_.store; }
  FaultyObjectStore& helper() { return helper_.store; }

 private:
  static const FakeObjectStore& start() {
    static FakeObjectStore* const made = [] {
      auto* store = new FakeObjectStore;
      EXPECT_OK(bootstrap_ranges(*store));
      uint64_t id = 1;
      for (const ByteView at : range_starts)
        EXPECT_OK(split_range(*store, *find_range(*store, at), at, RangeId{++id}));
      FakeClock clock(0);
      auto engine = ClusterEngine::open(*store, clock);
      Commit commit;
      for (const char* name : {"k1", "m1", "m2", "p1", "p2"}) commit.writes.put(name, "old");
      EXPECT_OK(trellis::commit(**engine, commit));
      return store;
    }();
    return *made;
  }

  static std::unique_ptr<FakeObjectStore> copy_of_start() {
    auto copy = std::make_unique<FakeObjectStore>();
    copy->copy_from(start());
    return copy;
  }

  void expect(ByteView key) {
    Value value;
    EXPECT_OK(committer_.engine->get(key, value));
    commit_.expectations.push_back({Bytes(key), std::nullopt, committer_.engine->evidence(value)});
  }
  void plan_commit() {
    if (scenario_.reach == Reach::one_range) {
      expect("k1");
      commit_.writes.put("k1", "new");
      commit_.writes.put("k2", "new");
      return;
    }
    for (const char* name : {"k1", "k2", "p1", "p9"}) expect(name);
    const auto page = committer_.engine->scan({.begin = "m", .end = "n", .want_evidence = true},
                                              [](ByteView, ByteView) { return Visit::go_on; });
    EXPECT_OK(page);
    commit_.expectations.push_back({"m", "n", page->evidence});
    for (const char* name : {"k1", "k2", "m1", "p2"}) commit_.writes.put(name, "new");
    commit_.writes.remove("m2");
  }

  size_t intents() {
    size_t count = 0;
    std::vector<Bytes> names;
    objects_.list("r.", [&](ByteView object) { names.emplace_back(object); });
    for (const Bytes& object : names) {
      ReadAnswer answer;
      ReadOperation operation;
      operation.omap_pages.push_back({.start_after = {}, .prefix = "i"});
      objects_.read("test", object, operation, answer);
      count += answer.pages.empty() ? 0 : answer.pages[0].entries.size();
    }
    return count;
  }

  const Scenario scenario_;
  const std::unique_ptr<FakeObjectStore> copy_ = copy_of_start();
  FakeObjectStore& objects_ = *copy_;
  FakeClock clock_{0};
  Client committer_{objects_, clock_};
  Client helper_{objects_, clock_};
  Client witness_{objects_, clock_};
  Commit commit_;
};

State committed_state(Reach reach) {
  if (reach == Reach::three_ranges) return after_commit;
  return {"new", "new", "old", "old", "old", "old"};
}

// One operation that does it all, or the decision.
bool may_be_unknown(const Fault& fault) {
  return fault.point.starts_with("commit") || fault.point.starts_with("decide");
}

class CommitCrash : public testing::Test {
 protected:
  // The points that the committer passes in its commit, and the helper in its read after it.
  static std::vector<PassedPoint> points_of_commit(const Scenario& scenario) {
    CommitRun run(scenario);
    const size_t before = run.committer().passed().size();
    EXPECT_OK(run.commit());
    std::vector<PassedPoint> points = run.committer().passed();
    points.erase(points.begin(), points.begin() + static_cast<ptrdiff_t>(before));
    return points;
  }

  // Checks what the answer promises, and says which state it is.
  static void expect_as_answered(const Scenario& scenario, const Fault& fault,
                                 const Status& outcome, const State& state) {
    const State committed = committed_state(scenario.reach);
    if (outcome.has_value()) {
      EXPECT_EQ(state, committed);
    } else if (outcome.error().code == Code::maybe) {
      EXPECT_TRUE(may_be_unknown(fault)) << outcome.error().message;
      EXPECT_TRUE(state == before_commit || state == committed) << testing::PrintToString(state);
    } else {
      EXPECT_EQ(outcome.error().code, Code::unavailable) << outcome.error().message;
      EXPECT_EQ(state, before_commit);
    }
  }

  // What is late arrives before anybody looks, after somebody has, or after somebody has written.
  enum class Late : uint8_t { before_looks, after_looks, after_writes };

  void single(const Scenario& scenario, const Fault& fault, Late late) {
    SCOPED_TRACE(testing::Message() << fault.point << " " << fault.nth << " "
                                    << to_string(fault.mode) << " late " << static_cast<int>(late));
    CommitRun run(scenario);
    run.committer().plan(fault);
    const Status outcome = run.commit();
    if (late == Late::before_looks) run.release();
    const State seen = run.witness();
    expect_as_answered(scenario, fault, outcome, seen);
    if (late == Late::after_looks) {
      run.release();
      const State again = run.witness();
      // Across ranges, what was seen is decided. An operation on one range may still be on its way.
      if (scenario.reach == Reach::three_ranges || outcome.has_value()) {
        EXPECT_EQ(again, seen);
      } else {
        expect_as_answered(scenario, fault, outcome, again);
      }
    }
    EXPECT_OK(run.write_as_witness());
    if (late == Late::after_writes) run.release();
    EXPECT_EQ(run.witness(), after_writer);
    cases_++;
  }

  void pair(const Scenario& scenario, const Fault& first, const Fault& second) {
    SCOPED_TRACE(testing::Message()
                 << first.point << " " << first.nth << " " << to_string(first.mode) << ", then "
                 << second.point << " " << second.nth << " " << to_string(second.mode));
    CommitRun run(scenario);
    run.committer().plan(first);
    const Status outcome = run.commit();
    run.helper().plan(second);
    Status helped;
    const State by_helper = run.help(helped);
    if (helped.has_value()) expect_as_answered(scenario, first, outcome, by_helper);
    const State seen = run.witness();
    expect_as_answered(scenario, first, outcome, seen);
    if (helped.has_value()) {
      EXPECT_EQ(seen, by_helper);
    }
    run.release();
    EXPECT_EQ(run.witness(), seen);
    EXPECT_OK(run.write_as_witness());
    EXPECT_EQ(run.witness(), after_writer);
    cases_++;
  }

  size_t cases_ = 0;
};

TEST_F(CommitCrash, EverySingleFault) {
  for (const Reach reach : {Reach::one_range, Reach::three_ranges}) {
    for (const Change change : {Change::none, Change::split}) {
      const Scenario scenario{reach, change};
      const std::vector<PassedPoint> points = points_of_commit(scenario);
      for (const PassedPoint& point : points)
        for (const FaultMode mode : fault_modes)
          for (const Late late : {Late::before_looks, Late::after_looks, Late::after_writes}) {
            single(scenario, {point.point, point.nth, mode}, late);
            if (HasFailure()) return;
          }
      std::cout << points.size() << " points\n";
    }
  }
  std::cout << cases_ << " cases\n";
  EXPECT_GT(cases_, 500u);
}

TEST_F(CommitCrash, EveryPairOfACommitterAndAHelper) {
  for (const Change change : {Change::none, Change::split}) {
    const Scenario scenario{Reach::three_ranges, change};
    for (const PassedPoint& point : points_of_commit(scenario)) {
      if (!point.is_write) continue;  // a read that fails is as the crash before the next write
      for (const FaultMode mode : fault_modes) {
        const Fault first{point.point, point.nth, mode};
        std::vector<PassedPoint> met;
        {
          CommitRun run(scenario);
          run.committer().plan(first);
          discard(run.commit());
          const size_t before = run.helper().passed().size();
          Status status;
          run.help(status);
          met = run.helper().passed();
          met.erase(met.begin(), met.begin() + static_cast<ptrdiff_t>(before));
        }
        std::map<std::string, int> looks;
        for (const PassedPoint& next : met) {
          // Looking at an intent again and again differs in nothing.
          if (!next.is_write && ++looks[next.point] > looks_max) continue;
          for (const FaultMode second : fault_modes) {
            pair(scenario, first, {next.point, next.nth, second});
            if (HasFailure()) return;
          }
        }
      }
    }
  }
  std::cout << cases_ << " cases\n";
  EXPECT_GT(cases_, 1'000u);
}

}  // namespace
}  // namespace trellis
