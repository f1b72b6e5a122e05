// Lists on an object store whose ranges are split and merged all the time and whose clients fail,
// die and come back: their histories must be strictly serializable.
//
// TRELLIS_TEST_SCALE=long runs a million transactions, in many histories.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "base/log.h"
#include "conformance/list_append_workload.h"
#include "support/cluster_world.h"

namespace trellis {
namespace {

constexpr size_t transactions_of_history = 250;  // of each thread
constexpr std::string_view failing_points[] = {
    "prepare", "validate", "decide",      "decide.look",  "resolve",      "forget",
    "commit",  "get",      "get.again",   "help.decide",  "help.resolve", "range.header",
    "scan",    "capture",  "commit.look", "sweep.resolve"};

// The engine of one thread: when its client has died, the next call is made by a new one, which
// sweeps it.
class RebornEngine final : public Engine {
 public:
  RebornEngine(ClusterWorld& world, uint64_t seed) : world_(world), random_(seed) { open(); }

  Status get(ByteView key, Value& value) override { return engine().get(key, value); }
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override {
    return engine().multi_get(keys, values);
  }
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override {
    return engine().scan(request, visit);
  }
  std::optional<Bytes> evidence(const Value& value) const override {
    return client_.engine->evidence(value);
  }
  CommitTicket commit_many(std::span<const Commit* const> commits,
                           std::span<Status> outcomes) override {
    if (random_.one_in(10)) plan_fault();
    if (random_.one_in(20)) release();
    if (random_.one_in(20)) beat();
    return engine().commit_many(commits, outcomes);
  }
  Status wait_durable(CommitTicket ticket) override { return engine().wait_durable(ticket); }
  CommitTicket last_ticket() const override { return client_.engine->last_ticket(); }
  bool shared() const override { return true; }
  BlockStore& blocks() override { return engine().blocks(); }
  Status checkpoint(const std::filesystem::path& folder) override {
    return engine().checkpoint(folder);
  }

  size_t deaths() const { return dead_.size(); }
  size_t faults() const { return faults_; }
  size_t restarts() const { return restarts_; }

 private:
  void open() {
    client_ =
        world_.open_client({.patience_us = 500, .beat_interval_us = 0, .unchanged_beats_max = 4});
    passes_.clear();
    client_.store->before_each([this](const PassedPoint& passed) {
      passes_[passed.point] = passed.nth;  // this thread's own
    });
  }
  ClusterEngine& engine() {
    if (!client_.store->dead()) return *client_.engine;
    const uint64_t died = client_.engine->incarnation();
    client_.engine.reset();
    dead_.push_back(std::move(client_.store));
    open();
    // What it cannot finish now is helped by whoever meets it.
    discard(client_.engine->sweep([&](uint64_t incarnation) { return incarnation == died; }));
    return *client_.engine;
  }
  // By chance some do so too seldom, and are taken for dead while they live.
  void beat() {
    const uint64_t before = engine().incarnation();
    discard(client_.engine->beat());
    discard(client_.engine->watch());
    if (client_.engine->incarnation() != before) restarts_++;
  }
  void plan_fault() {
    const std::string point(failing_points[random_.below(std::size(failing_points))]);
    const FaultMode mode = fault_modes[random_.below(std::size(fault_modes))];
    client_.store->plan({point, passes_[point] + 1 + random_.below(3), mode});
    faults_++;
  }
  // What was late arrives, also what the dead had sent.
  void release() {
    client_.store->release();
    for (const auto& store : dead_) store->release();
  }

  ClusterWorld& world_;
  Random random_;
  std::map<std::string, uint64_t> passes_;  // outlives the client, which counts in it
  ClusterWorld::Client client_;
  std::vector<std::unique_ptr<FaultyObjectStore>> dead_;
  size_t faults_ = 0;
  size_t restarts_ = 0;
};

TEST(ClusterListAppend, IsStrictlySerializable) {
  const uint64_t first_seed = test_seed(77);
  const uint64_t histories = test_rounds(10);
  size_t transactions = 0, done = 0, maybes = 0, deaths = 0, faults = 0, changes = 0, restarts = 0;
  setup_log(LogLevel::error, LogFormat::text);  // a restart is worth a warning, where it is rare
  for (uint64_t seed = first_seed; seed < first_seed + histories; seed++) {
    ClusterWorld world;
    for (const uint64_t key : {1, 2}) world.split_at(list_key(key));
    world.start_changes(seed);
    SystemClock clock;
    std::vector<std::unique_ptr<RebornEngine>> engines;
    std::vector<std::unique_ptr<Transactor>> transactors;
    std::vector<Transactor*> pointers;
    for (size_t t = 0; t < list_threads_count; t++) {
      engines.push_back(std::make_unique<RebornEngine>(world, seed * list_threads_count + t));
      transactors.push_back(std::make_unique<Transactor>(
          *engines.back(), clock,
          TransactOptions{.way = Way::expecting, .check_scope = true, .seed = seed}));
      pointers.push_back(transactors.back().get());
    }
    const auto history = ListWorkload().run(pointers, transactions_of_history, seed);
    world.stop_changes();
    const auto anomaly = find_anomaly(history);
    ASSERT_FALSE(anomaly.has_value()) << "TRELLIS_TEST_SEED=" << seed << ": " << *anomaly;
    transactions += history.size();
    done += count_outcomes(history, ListTransaction::Outcome::done);
    maybes += count_outcomes(history, ListTransaction::Outcome::maybe);
    changes += world.changes();
    for (const auto& engine : engines) {
      deaths += engine->deaths();
      faults += engine->faults();
      restarts += engine->restarts();
    }
  }
  std::cout << transactions << " transactions, " << done << " done, " << maybes << " maybe, "
            << faults << " faults planned, " << deaths << " clients died, " << restarts
            << " were taken for dead, " << changes << " splits and merges\n";
  EXPECT_GT(done, transactions * 8 / 10);
  EXPECT_GT(deaths, 0u);
  EXPECT_GT(restarts, 0u);
  EXPECT_GT(changes, histories);
}

}  // namespace
}  // namespace trellis
