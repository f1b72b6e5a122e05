// Concurrent transactions on a few lists, and proof from their history that they were strictly
// serializable.
#include "conformance/engine_fixture.h"
#include "conformance/list_append_workload.h"
#include "engine/memory_engine.h"

namespace trellis {
namespace {

class ListAppendConformance : public TransactConformance {
 protected:
  std::vector<Transactor*> all_transactors() {
    std::vector<Transactor*> all;
    for (const auto& transactor : transactors_) all.push_back(transactor.get());
    return all;
  }
};

TEST_P(ListAppendConformance, IsStrictlySerializable) {
  const uint64_t seed = test_seed(11);
  const auto history = ListWorkload().run(all_transactors(), test_rounds(1000), seed);
  const auto anomaly = find_anomaly(history);
  EXPECT_FALSE(anomaly.has_value()) << *anomaly;
  EXPECT_GT(count_outcomes(history, ListTransaction::Outcome::done), history.size() * 9 / 10);
}

TEST_P(ListAppendConformance, IsStrictlySerializableUnderFaults) {
  const uint64_t seed = test_seed(12);
  FaultyEngine faulty(engine(), {.seed = seed,
                                 .fail_read_one_in = 50,
                                 .fail_commit_one_in = 20,
                                 .conflict_one_in = 5,
                                 .maybe_one_in = 10,
                                 .delay_one_in = 5});
  Transactor transactor(faulty, clock_, {.way = GetParam().way, .check_scope = true});
  const auto history = ListWorkload().run({&transactor}, test_rounds(1000), seed);
  const auto anomaly = find_anomaly(history);
  EXPECT_FALSE(anomaly.has_value()) << *anomaly;
  EXPECT_GT(count_outcomes(history, ListTransaction::Outcome::maybe), 0u);
  EXPECT_GT(count_outcomes(history, ListTransaction::Outcome::failed), 0u);
  const FaultCounts counts = faulty.counts();
  EXPECT_GT(counts.maybes_applied, 0u);
  EXPECT_GT(counts.maybes_dropped, 0u);
  EXPECT_EQ(counts.conflicts > 0, !latched());
}

// The same without anything that keeps transactions apart: the history must show it.
TEST(ListAppend, AnomaliesAreFoundWithoutProtection) {
  constexpr uint64_t rounds_max = 1000;
  SystemClock clock;
  for (uint64_t seed = 1; seed <= rounds_max; seed++) {
    MemoryEngine memory;
    FaultyEngine engine(memory, {.seed = seed, .delay_one_in = 2});  // lets other threads in
    std::vector<std::unique_ptr<Transactor>> strangers;
    std::vector<Transactor*> transactors;
    for (size_t t = 0; t < list_threads_count; t++) {
      strangers.push_back(std::make_unique<Transactor>(
          engine, clock, TransactOptions{.way = Way::latched, .check_scope = true}));
      transactors.push_back(strangers.back().get());
    }
    if (find_anomaly(ListWorkload().run(transactors, 200, seed)).has_value()) return;
  }
  FAIL() << "no anomaly in " << rounds_max << " rounds";
}

ON_ALL_WAYS(ListAppendConformance);

}  // namespace
}  // namespace trellis
