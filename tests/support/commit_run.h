// For tests: one commit on three ranges, k.. | m.. | p.., from the same start each time, with
// clients whose caches are old, and what must be there before and after it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "cluster_engine/cluster_engine.h"
#include "cluster_engine/range_audit.h"
#include "cluster_engine/range_change.h"
#include "cluster_engine/range_lookup.h"
#include "object_store/fake_object_store.h"
#include "object_store/faulty_object_store.h"
#include "support/expect_ok.h"

namespace trellis {

using State = std::vector<std::optional<Bytes>>;
inline constexpr const char* key_names[] = {"k1", "k2", "m1", "m2", "p1", "p2"};
inline const State before_commit = {"old", std::nullopt, "old", "old", "old", "old"};
inline const State after_commit = {"new", "new", "new", std::nullopt, "old", "new"};
inline const State after_writer = {"writer", "writer", "writer", "writer", "old", "writer"};
inline constexpr const char* range_starts[] = {"l", "n"};  // k.. | m.. | p..

enum class Meanwhile : uint8_t { nothing, splits };
enum class Reach : uint8_t { one_range, three_ranges };

struct Scenario {
  Reach reach;
  Meanwhile meanwhile;  // after all caches were filled
};

struct CommitClient {
  CommitClient(FakeObjectStore& objects, Clock& clock)
      : store(objects),
        engine(std::move(
            *ClusterEngine::open(store, clock, {.patience_us = 500, .beat_interval_us = 0}))) {}
  FaultyObjectStore store;
  std::unique_ptr<ClusterEngine> engine;
};

inline State read_state(Engine& engine, Status& status) {
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
    for (CommitClient* client : {&committer_, &helper_, &witness_}) {
      Status status;
      EXPECT_EQ(read_state(*client->engine, status), before_commit);
      EXPECT_OK(status);
    }
    plan_commit();
    if (scenario.meanwhile == Meanwhile::splits) {
      for (const ByteView at : {ByteView("k2"), ByteView("m2")}) {
        const Result<RangeHeader> range = find_range(objects_, at);
        EXPECT_OK(split_range(objects_, *range, at, RangeId{100 + static_cast<uint64_t>(at[0])}));
      }
    }
  }
  ~CommitRun() {
    // A committer that died is swept; nothing of it is left.
    committer_.store.kill();
    sweep_committer();
    EXPECT_EQ(intents(), 0u);
    const auto audit = audit_ranges(objects_);
    EXPECT_OK(audit);
    EXPECT_TRUE(audit->problems.empty()) << audit->problems.front();
  }

  void sweep_committer() {
    EXPECT_OK(witness_.engine->sweep(
        [&](uint64_t incarnation) { return incarnation == committer_.engine->incarnation(); }));
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

  FakeObjectStore& objects() { return objects_; }
  FaultyObjectStore& committer() { return committer_.store; }
  ClusterEngine& committer_engine() { return *committer_.engine; }
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
      auto engine = ClusterEngine::open(*store, clock, {.beat_interval_us = 0});
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
  CommitClient committer_{objects_, clock_};
  CommitClient helper_{objects_, clock_};
  CommitClient witness_{objects_, clock_};
  Commit commit_;
};

inline State committed_state(Reach reach) {
  if (reach == Reach::three_ranges) return after_commit;
  return {"new", "new", "old", "old", "old", "old"};
}

}  // namespace trellis
