#include "tenant/rate.h"

#include <algorithm>

namespace trellis {
namespace {

// Finer than a microsecond, so that limits of millions per second are kept too. A clock of 54 bits
// of microseconds runs for 500 years.
constexpr uint64_t ticks_per_us = 1024;
constexpr uint64_t ticks_per_second = 1'000'000 * ticks_per_us;

constexpr uint64_t window_us = 10'000'000;

// Rounded up: to wait or to pay less would pass the limit in the long run.
constexpr uint64_t divide_up(uint64_t number, uint64_t by) { return (number + by - 1) / by; }

}  // namespace

void RateLimit::set(uint64_t per_second) {
  // The debt of a slow limit could lock a keyspace out for days after the limit was raised.
  if (per_second_.exchange(per_second, std::memory_order_relaxed) != per_second)
    due_.store(0, std::memory_order_relaxed);
}

uint64_t RateLimit::admit(uint64_t now_us, uint32_t operations) {
  const uint64_t per_second = get();
  if (per_second == 0) return 0;
  const uint64_t now = now_us * ticks_per_us;
  const uint64_t cost = operations * ticks_per_second / per_second +
                        (operations * ticks_per_second % per_second != 0);
  uint64_t due = due_.load(std::memory_order_relaxed);
  for (;;) {
    const uint64_t owed = due > now ? due - now : 0;
    // What costs more than a second goes when nothing is owed: it would wait for ever otherwise.
    const uint64_t owed_max = cost < ticks_per_second ? ticks_per_second - cost : 0;
    if (owed > owed_max) return divide_up(owed - owed_max, ticks_per_us);
    if (due_.compare_exchange_weak(due, now + owed + cost, std::memory_order_relaxed)) return 0;
  }
}

void LoadMeter::add(uint64_t now_us, uint32_t operations) {
  total_.fetch_add(operations, std::memory_order_relaxed);
  const uint64_t window = now_us / window_us;
  uint64_t counted = window_.load(std::memory_order_relaxed);
  // One thread turns the window; one whose clock reading is older counts for the current one.
  if (window > counted &&
      window_.compare_exchange_strong(counted, window, std::memory_order_relaxed)) {
    const uint64_t finished = current_.exchange(0, std::memory_order_relaxed);
    previous_.store(window == counted + 1 ? finished : 0, std::memory_order_relaxed);
  }
  current_.fetch_add(operations, std::memory_order_relaxed);
}

double LoadMeter::per_second(uint64_t now_us) const {
  const uint64_t counted = window_.load(std::memory_order_relaxed);
  const uint64_t window = std::max(now_us / window_us, counted);
  uint64_t operations = 0;
  if (window <= counted + 1) operations = current_.load(std::memory_order_relaxed);
  if (window == counted) operations += previous_.load(std::memory_order_relaxed);
  const uint64_t begin_us = window * window_us;
  const uint64_t elapsed_us = window_us + (now_us > begin_us ? now_us - begin_us : 0);
  return static_cast<double>(operations) * 1e6 / static_cast<double>(elapsed_us);
}

}  // namespace trellis
