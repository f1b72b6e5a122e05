// Time comes in by the constructor, so that tests own it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace trellis {

inline constexpr uint64_t us_per_ms = 1'000;

class Clock {
 public:
  virtual ~Clock() = default;
  // Milliseconds since 1970. May jump in either direction, as real clocks do.
  virtual uint64_t unix_ms() const = 0;
  // The same as finely as it is known.
  virtual int64_t unix_ns() const { return static_cast<int64_t>(unix_ms()) * 1'000'000; }
  // For measuring and for time-outs: never goes back, starts anywhere.
  virtual uint64_t monotonic_us() const = 0;
  // Lets time pass, for backing off before a retry; never for waiting on something that can tell.
  virtual void pause_us(uint64_t us) = 0;
};

class SystemClock final : public Clock {
 public:
  uint64_t unix_ms() const override {
    using namespace std::chrono;
    return static_cast<uint64_t>(
        duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
  }
  int64_t unix_ns() const override {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  }
  uint64_t monotonic_us() const override {
    using namespace std::chrono;
    return static_cast<uint64_t>(
        duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count());
  }
  void pause_us(uint64_t us) override {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }
};

// Stands still until told. Any thread may read and advance it.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(uint64_t unix_ms) : unix_ms_(unix_ms) {}
  uint64_t unix_ms() const override { return unix_ms_.load(std::memory_order_relaxed); }
  uint64_t monotonic_us() const override { return monotonic_us_.load(std::memory_order_relaxed); }
  void pause_us(uint64_t us) override { monotonic_us_ += us; }
  void advance_ms(uint64_t ms) {
    unix_ms_ += ms;
    monotonic_us_ += ms * 1000;
  }
  void jump_to_ms(uint64_t unix_ms) { unix_ms_ = unix_ms; }  // a wall clock that was set

 private:
  std::atomic<uint64_t> unix_ms_;
  std::atomic<uint64_t> monotonic_us_{0};
};

}  // namespace trellis
