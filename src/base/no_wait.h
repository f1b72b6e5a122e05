// A thread that serves many must not wait for one of them: an event loop that runs a handler.
//
//   const NoWait no_wait;
//   status = transact(...);   // reason would_wait: somebody has a lock, and nothing was done
//
// Locks that may be held for long (map/latches.h) are only tried meanwhile, for a moment. Whoever
// made it runs the same again on a thread that may wait.
#pragma once

#include <string_view>

namespace trellis {

inline constexpr std::string_view would_wait_reason = "would_wait";  // with Code::busy

class NoWait {
 public:
  NoWait() : before_(is_on_) { is_on_ = true; }
  ~NoWait() { is_on_ = before_; }
  NoWait(const NoWait&) = delete;
  NoWait& operator=(const NoWait&) = delete;

  static bool is_on() { return is_on_; }

 private:
  static inline thread_local bool is_on_ = false;
  const bool before_;
};

}  // namespace trellis
