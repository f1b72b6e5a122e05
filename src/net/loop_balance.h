// How many of a server's loops have connections, where these can move.
//
// A loop that serves many costs less for each of them than two that serve half of them: turns are
// larger, and cores are left to the clients of this machine. So there is one, until it is busy all
// the time while a core is idle. More are then on trial: where they serve hardly more, because all
// want the same key or because clients need the cores, they are given up, and tried again after a
// while. What has little to do is brought together again, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "net/event_loop.h"

namespace trellis {

class LoopBalance {
 public:
  // `idle_cores`: how many nobody used since it was last asked.
  LoopBalance(size_t loops, std::function<double()> idle_cores, const Clock& clock);

  // The first so many loops. Any thread.
  size_t used() const;
  // What a loop did since it said so last. Gives used().
  size_t take(size_t loop, const LoopLoad& load);

 private:
  struct Load {
    double busy = 0;
    uint64_t at_us = 0;
  };
  // What all loops served in a time.
  struct Served {
    uint64_t since_us = 0;
    uint64_t count = 0;
    double rate(uint64_t now_us) const {
      return static_cast<double>(count) / static_cast<double>(now_us - since_us);
    }
  };
  struct Trial {
    size_t used_before;
    double rate_before;
    bool is_settled = false;
  };
  void begin_trial(uint64_t now_us);
  void judge_trial(uint64_t now_us);
  double idle_cores(uint64_t now_us);
  double busy_in_all(uint64_t now_us) const;

  const std::function<double()> ask_idle_cores_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<Load> loads_;
  size_t used_ = 1;
  Served served_;
  std::optional<Trial> trial_;
  uint64_t pause_us_;  // after a trial that gave nothing
  uint64_t next_trial_us_ = 0;
  double idle_cores_ = 0;
  uint64_t idle_at_us_ = 0;
};

// As Linux counts them.
std::function<double()> make_idle_cores();

}  // namespace trellis
