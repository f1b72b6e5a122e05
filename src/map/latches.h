// Latches: short locks by name, for transactions in one process.
//
// Names hash to stripes. Two names on one stripe only wait for each other; a scope that names both
// takes the stripe once. Every scope takes its keyspace first and then its stripes in rising order,
// so no two scopes can wait for each other in a circle.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/shared_mutex.h"
#include "map/scope.h"

namespace trellis {

class LatchTable {
 private:
  struct alignas(64) Stripe {
    SharedMutex mutex;
    // Tries that ran out of patience since one had luck. After some it is held for long, by a check
    // of a whole keyspace perhaps, and who waits for it waits for nothing.
    std::atomic<uint32_t> lost_tries{0};
  };

 public:
  LatchTable();

  // Holds the latches of one scope until released or destroyed.
  class Held {
   public:
    enum class Patience : uint8_t { waits, tries };  // who tries does so for some 100 us
    Held(LatchTable& table, const Scope& scope, Patience patience = Patience::waits);
    ~Held() { release(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    void release();
    // False: others have some of them, and this one has none.
    bool has_all() const { return has_all_; }

   private:
    struct Latch {
      Stripe* stripe;
      bool exclusive;
    };
    static void lock(const Latch& latch);
    static bool try_lock(const Latch& latch);
    static bool try_until(const Latch& latch, std::chrono::steady_clock::time_point end);

    std::vector<Latch> latches_;
    bool has_all_ = true;
  };

 private:
  static constexpr size_t granule_stripes = 16384;
  // Keyspaces that share one wait for each other whenever one is held alone.
  static constexpr size_t keyspace_stripes = 16384;

  std::unique_ptr<Stripe[]> keyspaces_;
  std::unique_ptr<Stripe[]> granules_;
};

}  // namespace trellis
