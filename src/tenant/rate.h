// How often: a limit that costs one atomic word, and a meter for people to look at.
#pragma once

#include <atomic>
#include <cstdint>

namespace trellis {

// At most `per_second` operations in the long run, one second's worth at once (GCRA: the word is
// the time at which all admitted so far would have been due at an even pace). Any thread.
class RateLimit {
 public:
  // 0: none. A new limit forgives what is owed under the old one.
  void set(uint64_t per_second);
  uint64_t get() const { return per_second_.load(std::memory_order_relaxed); }

  // 0 if admitted, otherwise how many microseconds to wait before a retry. More operations at once
  // than a second has are admitted when the limit is idle, and paid for afterwards.
  uint64_t admit(uint64_t now_us, uint32_t operations);

 private:
  std::atomic<uint64_t> per_second_{0};
  std::atomic<uint64_t> due_{0};  // in ticks, of which a microsecond has 1024
};

// Operations per second over the last ten to twenty seconds. Any thread; counts may be off by those
// that arrive while a window turns.
class LoadMeter {
 public:
  void add(uint64_t now_us, uint32_t operations);
  double per_second(uint64_t now_us) const;
  uint64_t total() const { return total_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> total_{0};
  std::atomic<uint64_t> window_{0};  // number of the window that current_ counts
  std::atomic<uint64_t> current_{0};
  std::atomic<uint64_t> previous_{0};
};

}  // namespace trellis
