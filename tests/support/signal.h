// For tests with several threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace trellis {

inline constexpr auto patience = std::chrono::seconds(60);

// An event that one thread tells and others wait for.
class Signal {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [this] { return is_set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

}  // namespace trellis
