// Decides whether a history of list-append transactions is strictly serializable.
//
// Every append adds a value that no other append adds, so a list that was read tells which
// transactions it follows and in which order they wrote. From that come the edges
//
//   ww  the writer of a value -> the writer of the next one
//   wr  the writer of the last value that was read -> the reader
//   rw  a reader -> the writer of the first value that it did not see
//   rt  a transaction -> every one that began after it had been answered
//
// and the history is strictly serializable only if they form no cycle.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace trellis {

struct ListAccess {
  uint64_t key = 0;
  // Set: the transaction appended it. Absent: it read the list below.
  std::optional<uint64_t> appended;
  std::vector<uint64_t> list;
};

struct ListTransaction {
  enum class Outcome : uint8_t { done, failed, maybe };
  uint64_t begin = 0;  // by one clock for the whole history
  uint64_t end = std::numeric_limits<uint64_t>::max();
  Outcome outcome = Outcome::done;
  std::vector<ListAccess> accesses;  // in order; reads see the transaction's own appends
};

// What is wrong with the history, in words; absent if nothing is.
std::optional<std::string> find_anomaly(const std::vector<ListTransaction>& history);

}  // namespace trellis
