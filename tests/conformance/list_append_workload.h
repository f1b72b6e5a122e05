// Random transactions on a few lists, from several threads, and the history that they make.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "base/random.h"
#include "conformance/engine_fixture.h"
#include "conformance/serializability.h"
#include "map/transact.h"

namespace trellis {

constexpr uint64_t list_keys_count = 3;
constexpr size_t list_threads_count = 4;

inline Bytes list_key(uint64_t key) { return raw("list " + std::to_string(key)); }

inline std::vector<uint64_t> decode_list(const Value& value) {
  std::vector<uint64_t> list;
  if (!value.found()) return list;
  const ByteView bytes = value.bytes();
  for (size_t at = 0; at + 8 <= bytes.size(); at += 8) list.push_back(load_be(&bytes[at], 8));
  return list;
}

class ListWorkload {
 public:
  // Runs `transactions` in each thread, thread t on transactors[t % size].
  std::vector<ListTransaction> run(const std::vector<Transactor*>& transactors, size_t transactions,
                                   uint64_t seed) {
    std::vector<std::vector<ListTransaction>> histories(list_threads_count);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < list_threads_count; t++) {
      threads.emplace_back([&, t] {
        Random random(seed * list_threads_count + t);
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
      access.key = random.below(list_keys_count);
      if (random.one_in(2)) access.appended = next_value_++;
    }
    return plan;
  }

  ListTransaction read_all(Transactor& transactor) {
    std::vector<ListAccess> plan(list_keys_count);
    for (uint64_t key = 0; key < list_keys_count; key++) plan[key].key = key;
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

inline size_t count_outcomes(const std::vector<ListTransaction>& history,
                             ListTransaction::Outcome outcome) {
  size_t found = 0;
  for (const ListTransaction& transaction : history) found += transaction.outcome == outcome;
  return found;
}

}  // namespace trellis
