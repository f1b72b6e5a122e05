#include "cluster_engine/range_router.h"

#include <fmt/format.h>

#include <mutex>

#include "cluster_engine/range_change.h"
#include "codec/meta_keys.h"

namespace trellis {
namespace {

constexpr uint64_t pause_us = 50;
constexpr unsigned waits_without_pause = 20;  // most are over by the next look
constexpr unsigned lookups_max = 10'000;

}  // namespace

bool Patience::wait(ByteView what) {
  const uint64_t now_us = clock_.monotonic_us();
  if (what != what_ || what_.empty()) {
    what_ = what;
    since_us_ = now_us;
    waits_ = 0;
  }
  if (now_us - since_us_ >= patience_us_) {
    what_.clear();
    return false;
  }
  if (++waits_ > waits_without_pause) clock_.pause_us(pause_us);
  return true;
}

Result<RangePointer> RangeRouter::find(ByteView address) { return locate(address, Side::at); }

Result<RangePointer> RangeRouter::find_before(ByteView address) {
  return locate(address.empty() ? map_key_max : address, Side::before);
}

RangePointer RangeRouter::nearest(ByteView address, Side side) const {
  std::shared_lock lock(mutex_);
  auto at = side == Side::at ? known_.upper_bound(address) : known_.lower_bound(address);
  return at == known_.begin() ? nullptr : std::prev(at)->second;
}

Result<RangePointer> RangeRouter::locate(ByteView address, Side side) {
  const auto holds = [&](const RangeHeader& range) {
    return side == Side::at ? range.holds(address) : range.start < address && address <= range.end;
  };
  RangePointer known = nearest(address, side);
  if (known != nullptr && holds(*known)) return known;
  Patience patience(clock_, patience_us_);
  RangeId id = known == nullptr ? first_range_id : known->id;
  for (unsigned lookup = 0; lookup < lookups_max; lookup++) {
    Result<RangeHeader> header = read_header(store_, "range.header", id);
    if (!header.has_value()) {
      if (header.error().code != Code::not_found || id == first_range_id) return header.error();
      id = first_range_id;
      continue;
    }
    if (header->state == RangeState::gone) {
      id = header->other;
      continue;
    }
    if (!header->may_read()) {
      TRY(wait(*header, patience));
      continue;
    }
    auto found = std::make_shared<const RangeHeader>(std::move(*header));
    remember(found);
    if (holds(*found)) return found;
    const bool behind = side == Side::at ? address < found->start : address <= found->start;
    id = behind || found->right == RangeId{} ? first_range_id : found->right;
  }
  return Error{Code::unavailable,
               fmt::format("the ranges around {} change all the time: try again", quote(address))};
}

void RangeRouter::remember(RangePointer range) {
  std::unique_lock lock(mutex_);
  auto at = known_.upper_bound(range->start);
  if (at != known_.begin() && std::prev(at)->second->end > range->start) --at;
  auto last = at;
  for (; last != known_.end() && last->first < range->end; ++last)
    if (last->second->generation > range->generation) return;
  known_.erase(at, last);
  const Bytes& start = range->start;
  known_.insert_or_assign(start, std::move(range));
}

void RangeRouter::forget(const RangeHeader& range) {
  std::unique_lock lock(mutex_);
  const auto known = known_.find(range.start);
  if (known != known_.end() && known->second->id == range.id &&
      known->second->generation <= range.generation)
    known_.erase(known);
}

Status RangeRouter::wait(const RangeHeader& range, Patience& patience) {
  forget(range);
  if (patience.wait(fmt::format("{} {}", range.id.value, range.generation))) return {};
  const Status settled = settle_range(store_, range.id);
  // Whoever else was at it has changed something: that is what was waited for.
  const bool is_changed = settled.has_value() || settled.error().code == Code::conflict ||
                          settled.error().code == Code::not_found;
  return is_changed ? Status() : settled;
}

}  // namespace trellis
