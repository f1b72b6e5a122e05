#include "rocksdb_engine/dead_intervals.h"

#include <iterator>
#include <utility>

#include "base/assert.h"
#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {
namespace {

// Of one compaction, or of a part of it.
class PassOver final : public rocksdb::CompactionFilter {
 public:
  PassOver(DeadIntervals::Intervals intervals, int levels)
      : intervals_(std::move(intervals)), levels_(levels) {}

  // `level` is the one that is compacted into the next.
  Decision FilterV2(int level, const rocksdb::Slice& key, ValueType, const rocksdb::Slice&,
                    std::string*, std::string* skip_until) const noexcept override {
    if (level != 0 && level + 2 < levels_) return Decision::kKeep;
    const auto behind = intervals_.upper_bound(to_view(key));
    if (behind == intervals_.begin()) return Decision::kKeep;
    const Bytes& end = std::prev(behind)->second;
    if (to_view(key) >= end) return Decision::kKeep;
    *skip_until = end;
    return Decision::kRemoveAndSkipUntil;
  }
  const char* Name() const override { return "trellis.pass_over"; }

 private:
  const DeadIntervals::Intervals intervals_;
  const int levels_;
};

}  // namespace

void DeadIntervals::watch(ByteView begin, ByteView end) {
  const std::lock_guard lock(mutex_);
  ASSERT(begin < end);
  const auto next = intervals_.lower_bound(begin);
  ASSERT(next == intervals_.end() || end <= next->first);
  ASSERT(next == intervals_.begin() || std::prev(next)->second <= begin);
  intervals_.emplace(begin, end);
  watching_.store(true, std::memory_order_relaxed);
}

void DeadIntervals::revive_keys(const WriteSet& writes) {
  const std::lock_guard lock(mutex_);
  for (const WriteSet::Write& write : writes)
    if (write.op != WriteOp::remove_range) cut_out(write.key, successor(write.key));
}

void DeadIntervals::revive(ByteView begin, ByteView end) {
  const std::lock_guard lock(mutex_);
  cut_out(begin, end);
}

void DeadIntervals::cut_out(ByteView begin, ByteView end) {
  if (begin >= end) return;
  auto at = intervals_.upper_bound(begin);
  if (at != intervals_.begin()) --at;
  while (at != intervals_.end() && at->first < end) {
    if (at->second <= begin) {
      ++at;
      continue;
    }
    const auto [first, last] = *at;
    at = intervals_.erase(at);
    if (first < begin) intervals_.emplace(first, begin);
    if (end < last) intervals_.emplace(end, last);
  }
}

DeadIntervals::Intervals DeadIntervals::watched() const {
  const std::lock_guard lock(mutex_);
  return intervals_;
}

void DeadIntervals::bury() {
  const std::lock_guard lock(mutex_);
  buried_ = true;
}

void DeadIntervals::forget() {
  const std::lock_guard lock(mutex_);
  watching_.store(false, std::memory_order_relaxed);
  buried_ = false;
  intervals_.clear();
}

std::unique_ptr<rocksdb::CompactionFilter> DeadIntervals::CreateCompactionFilter(
    const rocksdb::CompactionFilter::Context&) noexcept {
  const std::lock_guard lock(mutex_);
  if (!buried_ || intervals_.empty()) return nullptr;
  return std::make_unique<PassOver>(intervals_, levels_);
}

}  // namespace trellis
