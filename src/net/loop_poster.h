// The way to an event loop from any other thread.
#pragma once

#include <functional>

namespace trellis {

// Any thread. May outlive what it leads to: what comes too late is destroyed instead of run.
class LoopPoster {
 public:
  virtual ~LoopPoster() = default;
  // Runs it on the loop's thread, soon and in the order given.
  virtual void post(std::function<void()> function) = 0;
};

}  // namespace trellis
