// How many of a server's loops have connections, where these can move.
//
// A loop that serves many costs less for each of them than two that serve half of them: turns are
// larger, and cores are left to the clients of this machine. So there is one, until it is busy all
// the time while a core is idle. What has little to do is brought together again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/clock.h"

namespace trellis {

class LoopBalance {
 public:
  // `idle_cores`: how many nobody used since it was last asked.
  LoopBalance(size_t loops, std::function<double()> idle_cores, const Clock& clock);

  // The first so many loops. Any thread.
  size_t used() const;
  // A loop was busy for such a share of the time since it said so last. Gives used().
  size_t take(size_t loop, double busy);

 private:
  struct Load {
    double busy = 0;
    uint64_t at_us = 0;
  };
  double idle_cores(uint64_t now_us);
  double busy_in_all(uint64_t now_us) const;

  const std::function<double()> ask_idle_cores_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<Load> loads_;
  size_t used_ = 1;
  double idle_cores_ = 0;
  uint64_t idle_at_us_ = 0;
};

// As Linux counts them.
std::function<double()> make_idle_cores();

}  // namespace trellis
