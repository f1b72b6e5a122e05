#include "base/job_control.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace trellis {
namespace {

constexpr uint64_t wait_slice_us = 50'000;  // how soon one who waits sees what changed

Clock& real_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace

JobControl::JobControl() : clock_(real_clock()) {}

void JobControl::pay(uint64_t bytes) {
  if (bytes_per_second_ == 0) return;
  constexpr double us_per_second = 1e6;
  const double cost_us =
      static_cast<double>(bytes) * us_per_second / static_cast<double>(bytes_per_second_);
  constexpr double cost_us_max = 1e15;  // years; what is more would not fit
  free_us_ = std::max(free_us_, clock_.monotonic_us()) +
             static_cast<uint64_t>(std::min(cost_us, cost_us_max));
}

uint64_t JobControl::wait_us() const {
  const uint64_t now_us = clock_.monotonic_us();
  return bytes_per_second_ > 0 && free_us_ > now_us ? free_us_ - now_us : 0;
}

Status JobControl::wait(std::unique_lock<std::mutex>& lock) {
  while (ended_.empty()) {
    if (paused_) {
      changed_.wait(lock);
    } else if (const uint64_t left_us = wait_us(); left_us > 0) {
      lock.unlock();
      clock_.pause_us(std::min(left_us, wait_slice_us));
      lock.lock();
    } else {
      return {};
    }
  }
  return Error{Code::unavailable,
               ended_ == job_canceled ? "it was canceled" : "the server stops: it goes on later",
               ended_};
}

Status JobControl::pass(uint64_t bytes) {
  std::unique_lock lock(mutex_);
  bytes_done_ += bytes;
  pay(bytes);
  return wait(lock);
}

Status JobControl::pass_again(uint64_t bytes) {
  std::unique_lock lock(mutex_);
  pay(bytes);
  return wait(lock);
}

uint64_t JobControl::charge(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_done_ += bytes;
  pay(bytes);
  return wait_us();
}

void JobControl::skip(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_done_ += bytes;
}

void JobControl::pause(bool paused) {
  {
    const std::lock_guard lock(mutex_);
    paused_ = paused;
  }
  changed_.notify_all();
}

void JobControl::set_bytes_per_second(uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    bytes_per_second_ = bytes;
    free_us_ = 0;  // what was paid by the old limit is forgotten
  }
  changed_.notify_all();
}

void JobControl::end(std::string_view reason) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_.empty()) ended_ = reason;
  }
  changed_.notify_all();
}

void JobControl::begin_phase(std::string_view name, uint64_t bytes_total) {
  const std::lock_guard lock(mutex_);
  phase_ = name;
  bytes_total_ = bytes_total;
  bytes_done_ = 0;
}

JobControl::Progress JobControl::progress() const {
  const std::lock_guard lock(mutex_);
  return {.phase = phase_,
          // What was thought at the beginning may be less than what is there.
          .bytes_total = bytes_total_ == 0 ? 0 : std::max(bytes_total_, bytes_done_),
          .bytes_done = bytes_done_,
          .paused = paused_,
          .bytes_per_second = bytes_per_second_};
}

Status run_in_parallel(unsigned threads, size_t count, FunctionRef<Status(size_t)> work) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Status first;
  std::atomic<bool> failed{false};
  const auto run = [&] {
    for (size_t i = next++; i < count && !failed; i = next++) {
      Status status = work(i);
      if (status) continue;
      const std::lock_guard lock(mutex);
      if (!failed.exchange(true)) first = std::move(status);
    }
  };
  std::vector<std::jthread> helpers;
  for (size_t i = 1; i < std::min<size_t>(threads, count); i++) helpers.emplace_back(run);
  run();
  helpers.clear();
  return first;
}

}  // namespace trellis
