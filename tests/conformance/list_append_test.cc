// Concurrent transactions on a few lists, and proof from their history that they were strictly
// serializable.
#include <atomic>
#include <iostream>
#include <thread>

#include "conformance/engine_fixture.h"
#include "conformance/serializability.h"
#include "engine/memory_engine.h"

namespace trellis {
namespace {

constexpr uint64_t keys_count = 3;
constexpr size_t threads_count = 4;

Bytes list_key(uint64_t key) { return raw("list " + std::to_string(key)); }

std::vector<uint64_t> decode_list(const Value& value) {
  std::vector<uint64_t> list;
  if (!value.found()) return list;
  const ByteView bytes = value.bytes();
  for (size_t at = 0; at + 8 <= bytes.size(); at += 8) list.push_back(load_be(&bytes[at], 8));
  return list;
}

class Workload {
 public:
  // Runs `transactions` in each thread, thread t on transactors[t % size].
  std::vector<ListTransaction> run(const std::vector<Transactor*>& transactors, size_t transactions,
                                   uint64_t seed) {
    std::vector<std::vector<ListTransaction>> histories(threads_count);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < threads_count; t++) {
      threads.emplace_back([&, t] {
        Random random(seed * threads_count + t);
        Transactor& transactor = *transactors[t % transactors.size()];
        for (size_t i = 0; i < transactions; i++) {
          histories[t].push_back(one(transactor, random_plan(random)));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<ListTransaction> history;
    for (auto& part : histories) history.insert(history.end(), part.begin(), part.end());
    history.push_back(read_all(*transactors[0]));
    return history;
  }

 private:
  std::vector<ListAccess> random_plan(Random& random) {
    std::vector<ListAccess> plan(1 + random.below(4));
    for (ListAccess& access : plan) {
      access.key = random.below(keys_count);
      if (random.one_in(2)) access.appended = next_value_++;
    }
    return plan;
  }

  ListTransaction read_all(Transactor& transactor) {
    std::vector<ListAccess> plan(keys_count);
    for (uint64_t key = 0; key < keys_count; key++) plan[key].key = key;
    ListTransaction last = one(transactor, plan);
    while (last.outcome != ListTransaction::Outcome::done) last = one(transactor, plan);
    return last;
  }

  static Status carry_out(View& view, std::vector<ListAccess>& accesses) {
    for (ListAccess& access : accesses) {
      const Bytes key = list_key(access.key);
      Value value;
      TRY(view.get(key, value));
      std::this_thread::yield();  // so that others come in between, if they can
      if (!access.appended) {
        access.list = decode_list(value);
        continue;
      }
      Bytes longer(value.found() ? value.bytes() : ByteView());
      append_be64(longer, *access.appended);
      view.put(key, longer);
    }
    return {};
  }

  ListTransaction one(Transactor& transactor, std::vector<ListAccess> plan) {
    Scope scope = Scope::in(keyspace);
    for (const ListAccess& access : plan) {
      if (access.appended) {
        scope.exclusive(list_key(access.key));
      } else {
        scope.shared(list_key(access.key));
      }
    }
    ListTransaction done;
    done.accesses = std::move(plan);
    done.begin = clock_++;
    const Status status =
        transactor.transact(scope, [&](View& view) { return carry_out(view, done.accesses); });
    done.end = clock_++;
    if (!status.has_value()) {
      const bool maybe = status.error().code == Code::maybe;
      done.outcome = maybe ? ListTransaction::Outcome::maybe : ListTransaction::Outcome::failed;
    }
    return done;
  }

  std::atomic<uint64_t> clock_ = 1;
  std::atomic<uint64_t> next_value_ = 1;
};

size_t count(const std::vector<ListTransaction>& history, ListTransaction::Outcome outcome) {
  size_t found = 0;
  for (const ListTransaction& transaction : history) found += transaction.outcome == outcome;
  return found;
}

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
  const auto history = Workload().run(all_transactors(), test_rounds(1000), seed);
  const auto anomaly = find_anomaly(history);
  EXPECT_FALSE(anomaly.has_value()) << *anomaly;
  EXPECT_GT(count(history, ListTransaction::Outcome::done), history.size() * 9 / 10);
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
  const auto history = Workload().run({&transactor}, test_rounds(1000), seed);
  const auto anomaly = find_anomaly(history);
  EXPECT_FALSE(anomaly.has_value()) << *anomaly;
  EXPECT_GT(count(history, ListTransaction::Outcome::maybe), 0u);
  EXPECT_GT(count(history, ListTransaction::Outcome::failed), 0u);
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
    for (size_t t = 0; t < threads_count; t++) {
      strangers.push_back(std::make_unique<Transactor>(
          engine, clock, TransactOptions{.way = Way::latched, .check_scope = true}));
      transactors.push_back(strangers.back().get());
    }
    if (find_anomaly(Workload().run(transactors, 200, seed)).has_value()) return;
  }
  FAIL() << "no anomaly in " << rounds_max << " rounds";
}

ON_ALL_WAYS(ListAppendConformance);

}  // namespace
}  // namespace trellis
