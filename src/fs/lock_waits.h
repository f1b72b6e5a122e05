// Who waits for a lock in this process, and for whom.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/strong_id.h"

namespace trellis {

// Any thread.
class LockWaits {
 public:
  using Owner = std::pair<SessionId, uint64_t>;

  // Counts up whenever locks are given back.
  uint64_t releases() const {
    const std::lock_guard lock(mutex_);
    return releases_;
  }
  void released() {
    {
      const std::lock_guard lock(mutex_);
      releases_++;
    }
    changed_.notify_all();
  }

  // Waits until locks were given back after releases() was `seen`, or the time is over.
  void wait(uint64_t seen, uint64_t wait_ms) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(wait_ms), [&] { return releases_ != seen; });
  }
  // The same for a holder who is known. False, and it waits not at all: the holder waits for this
  // owner already, perhaps by way of others.
  bool wait_for_holder(Owner waiter, Owner holder, uint64_t seen, uint64_t wait_ms) {
    std::unique_lock lock(mutex_);
    if (leads_to(holder, waiter)) return false;
    const auto waiting = waiting_.emplace(waiter, holder);
    changed_.wait_for(lock, std::chrono::milliseconds(wait_ms), [&] { return releases_ != seen; });
    waiting_.erase(waiting);
    return true;
  }

 private:
  bool leads_to(Owner from, Owner to) const {
    std::set<Owner> seen;
    std::vector<Owner> next{from};
    while (!next.empty()) {
      const Owner at = next.back();
      next.pop_back();
      if (at == to) return true;
      if (!seen.insert(at).second) continue;
      const auto [begin, end] = waiting_.equal_range(at);
      for (auto wait = begin; wait != end; ++wait) next.push_back(wait->second);
    }
    return false;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t releases_ = 0;
  std::multimap<Owner, Owner> waiting_;
};

}  // namespace trellis
