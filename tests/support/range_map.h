// A map of ranges as it should be, and its directory in a memory engine: what tests compare with.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "base/random.h"
#include "engine/memory_engine.h"
#include "range/directory.h"
#include "range/range_home.h"
#include "support/expect_ok.h"

namespace trellis {

// Any thread.
class RangeMap {
 public:
  RangeMap() { replace({}, {bootstrap_range()}); }

  Engine& engine() { return engine_; }

  RangeDescriptor at(ByteView address, Side side = Side::at) const {
    const std::lock_guard lock(mutex_);
    return find(address, side)->second;
  }

  std::vector<RangeDescriptor> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<RangeDescriptor> out;
    for (const auto& [end, range] : by_end_) out.push_back(range);
    return out;
  }

  // Nothing if a range begins there.
  void split(ByteView at) {
    const std::lock_guard lock(mutex_);
    const RangeDescriptor old = find(at, Side::at)->second;
    if (old.start == at) return;
    RangeDescriptor left = old;
    RangeDescriptor right = old;
    left.end = right.start = at;
    left.generation = right.generation = old.generation + 1;
    right.id = RangeId{++last_id_};
    replace({old}, {left, right});
  }

  // The range that holds the address with the one after it; nothing if it is the last.
  void merge(ByteView address) {
    const std::lock_guard lock(mutex_);
    const auto found = find(address, Side::at);
    const auto next = std::next(found);
    if (next == by_end_.end()) return;
    const RangeDescriptor left = found->second;
    const RangeDescriptor right = next->second;
    RangeDescriptor merged = left;
    merged.end = right.end;
    merged.generation = std::max(left.generation, right.generation) + 1;
    replace({left, right}, {merged});
  }

 private:
  using ByEnd = std::map<Bytes, RangeDescriptor, std::less<>>;

  ByEnd::const_iterator find(ByteView address, Side side) const {
    const auto found =
        side == Side::at ? by_end_.upper_bound(address) : by_end_.lower_bound(address);
    EXPECT_NE(found, by_end_.end());
    return found;
  }

  void replace(const std::vector<RangeDescriptor>& before,
               const std::vector<RangeDescriptor>& after) {
    for (const RangeDescriptor& range : before) by_end_.erase(range.end);
    for (const RangeDescriptor& range : after) by_end_[range.end] = range;
    Commit change;
    EXPECT_OK(append_directory_writes(change.writes, before, after));
    EXPECT_OK(commit(engine_, change));
  }

  mutable std::mutex mutex_;
  ByEnd by_end_;
  uint64_t last_id_ = first_range_id.value;
  MemoryEngine engine_;
};

// A place where a range may begin: in meta2 now and then, elsewhere otherwise.
inline Bytes random_border(Random& random) {
  Bytes border = random.one_in(6) ? Bytes("\x03") : Bytes();
  border += "xyz"[random.below(3)];
  for (uint64_t n = random.below(3); n > 0; n--) border += static_cast<char>(random.below(256));
  return border;
}

// The places around the borders of a range, where mistakes are.
inline std::vector<Bytes> places_around(const RangeDescriptor& range) {
  std::vector<Bytes> out{range.start, successor(range.start), range.end, successor(range.end)};
  if (range.end.back() != '\0') {
    Bytes before = range.end;
    before.back()--;
    out.push_back(before + '\xff');
  }
  return out;
}

}  // namespace trellis
