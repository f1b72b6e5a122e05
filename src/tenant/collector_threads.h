// What the files of the collector share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace trellis {

constexpr uint64_t held_retry_ms = 30'000;         // a barrier that is lifted is announced anyway
constexpr size_t keyspaces_under_way_max = 1'000;  // with what takes more than a slice

// The same for all entries of a keyspace that are looked at within the time: they become one.
inline uint64_t next_look_ms(uint64_t now_ms) {
  return (now_ms / held_retry_ms + 1) * held_retry_ms;
}

// Runs jobs 0 to count - 1, so many at a time.
inline void run_all(size_t threads, size_t count, FunctionRef<void(size_t)> run) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) run(i);
  };
  std::vector<std::jthread> helpers;
  for (size_t i = 1; i < std::min(threads, count); i++) helpers.emplace_back(work);
  work();
}

}  // namespace trellis
