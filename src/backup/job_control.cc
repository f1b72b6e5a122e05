#include "backup/job_control.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace trellis {

Status JobControl::pass(uint64_t bytes) {
  using namespace std::chrono;
  std::unique_lock lock(mutex_);
  bytes_done_ += bytes;
  if (bytes_per_second_ > 0) {
    const auto cost = duration_cast<steady_clock::duration>(
        duration<double>(static_cast<double>(bytes) / static_cast<double>(bytes_per_second_)));
    free_at_ = std::max(free_at_, steady_clock::now()) + cost;
  }
  while (ended_.empty()) {
    if (paused_) {
      changed_.wait(lock);
    } else if (bytes_per_second_ > 0 && free_at_ > steady_clock::now()) {
      changed_.wait_until(lock, free_at_);
    } else {
      return {};
    }
  }
  return Error{Code::unavailable,
               ended_ == job_canceled ? "it was canceled" : "the server stops: it goes on later",
               ended_};
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
    free_at_ = {};
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
          .bytes_total = bytes_total_,
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
