// A limit of bytes per second, shared by all threads that keep to it.
#pragma once

#include <algorithm>
#include <atomic>

#include "base/clock.h"

namespace trellis {

class Pace {
 public:
  // 0: no limit.
  Pace(Clock& clock, uint64_t bytes_per_s) : clock_(clock), bytes_per_s_(bytes_per_s) {}

  void set_limit(uint64_t bytes_per_s) { bytes_per_s_ = bytes_per_s; }
  uint64_t limit() const { return bytes_per_s_; }

  // After so many bytes: lets as much time pass as they may take. Returns early if `stopped` says
  // so or the limit was changed.
  template <class Stopped>
  void passed(uint64_t bytes, Stopped stopped) {
    const uint64_t limit = bytes_per_s_;
    if (limit == 0 || bytes == 0) return;
    const uint64_t now_us = clock_.monotonic_us();
    const auto cost_us =
        static_cast<uint64_t>(static_cast<double>(bytes) * 1e6 / static_cast<double>(limit));
    uint64_t free_us = free_us_.load();
    uint64_t due_us = 0;
    do {
      due_us = std::max(free_us, now_us) + cost_us;
    } while (!free_us_.compare_exchange_weak(free_us, due_us));
    constexpr uint64_t slice_us = 50'000;
    while (!stopped() && limit == bytes_per_s_) {
      const uint64_t at_us = clock_.monotonic_us();
      if (at_us >= due_us) return;
      clock_.pause_us(std::min(slice_us, due_us - at_us));
    }
    free_us_ = clock_.monotonic_us();
  }

 private:
  Clock& clock_;
  std::atomic<uint64_t> bytes_per_s_;
  std::atomic<uint64_t> free_us_{0};
};

}  // namespace trellis
