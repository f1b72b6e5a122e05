#include "map/latches.h"

#include <algorithm>
#include <functional>
#include <thread>

namespace trellis {
namespace {

// Most transactions are over in less; to hand what waits to another thread costs about as much.
constexpr auto patience_of_tries = std::chrono::microseconds(100);
constexpr uint32_t lost_tries_max = 8;

}  // namespace

LatchTable::LatchTable()
    : keyspaces_(std::make_unique<Stripe[]>(keyspace_stripes)),
      granules_(std::make_unique<Stripe[]>(granule_stripes)) {}

LatchTable::Held::Held(LatchTable& table, const Scope& scope, Patience patience) {
  latches_.reserve(scope.locks().size() + 1);
  if (scope.keyspace()) {
    const bool exclusive = scope.keyspace_mode() == Scope::Mode::exclusive;
    latches_.push_back({&table.keyspaces_[scope.keyspace()->value % keyspace_stripes], exclusive});
  }
  const size_t first_granule = latches_.size();
  for (const Scope::Lock& wanted : scope.locks()) {
    Stripe* const stripe = &table.granules_[wanted.hash % granule_stripes];
    __builtin_prefetch(stripe, 1);
    latches_.push_back({stripe, wanted.mode == Scope::Mode::exclusive});
  }
  // By stripe, the exclusive request first, so that it is the one kept of several on a stripe.
  const auto begin = latches_.begin() + static_cast<ptrdiff_t>(first_granule);
  std::sort(begin, latches_.end(), [](const Latch& a, const Latch& b) {
    return a.stripe != b.stripe ? std::less<>{}(a.stripe, b.stripe) : a.exclusive && !b.exclusive;
  });
  latches_.erase(std::unique(begin, latches_.end(),
                             [](const Latch& a, const Latch& b) { return a.stripe == b.stripe; }),
                 latches_.end());
  if (patience == Patience::waits) {
    for (const Latch& latch : latches_) lock(latch);
    return;
  }
  const auto end = std::chrono::steady_clock::now() + patience_of_tries;
  const auto taken = std::find_if_not(latches_.begin(), latches_.end(),
                                      [&](const Latch& latch) { return try_until(latch, end); });
  has_all_ = taken == latches_.end();
  if (has_all_) return;
  latches_.erase(taken, latches_.end());
  release();
}

bool LatchTable::Held::try_until(const Latch& latch, std::chrono::steady_clock::time_point end) {
  std::atomic<uint32_t>& lost = latch.stripe->lost_tries;
  bool is_taken = try_lock(latch);
  while (!is_taken && lost.load(std::memory_order_relaxed) < lost_tries_max) {
    if (std::chrono::steady_clock::now() >= end) {
      lost.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    std::this_thread::yield();
    is_taken = try_lock(latch);
  }
  if (is_taken && lost.load(std::memory_order_relaxed) != 0)
    lost.store(0, std::memory_order_relaxed);
  return is_taken;
}

bool LatchTable::Held::try_lock(const Latch& latch) {
  return latch.exclusive ? latch.stripe->mutex.try_lock() : latch.stripe->mutex.try_lock_shared();
}

void LatchTable::Held::lock(const Latch& latch) {
  if (latch.exclusive)
    latch.stripe->mutex.lock();
  else
    latch.stripe->mutex.lock_shared();
}

void LatchTable::Held::release() {
  for (const Latch& latch : latches_) {
    if (latch.exclusive)
      latch.stripe->mutex.unlock();
    else
      latch.stripe->mutex.unlock_shared();
  }
  latches_.clear();
}

}  // namespace trellis
