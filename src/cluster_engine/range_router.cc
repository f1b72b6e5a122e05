#include "cluster_engine/range_router.h"

#include <fmt/format.h>

#include "cluster_engine/range_change.h"

namespace trellis {
namespace {

constexpr uint64_t pause_us = 50;
constexpr unsigned waits_without_pause = 20;  // most are over by the next look
constexpr unsigned lookups_max = 10'000;

}  // namespace

bool Patience::wait(const Bytes& what) {
  const uint64_t now_us = clock_.monotonic_us();
  const uint64_t since_us = since_us_.try_emplace(what, now_us).first->second;
  if (now_us - since_us >= patience_us_) return false;
  if (++waits_ > waits_without_pause) clock_.pause_us(pause_us);
  return true;
}

Result<RangePointer> RangeRouter::find(ByteView address, Side side) {
  const RangeRef known = cache_.get(address, side);
  if (!known) return look_up(address, side);
  auto range = std::make_shared<RangeHeader>();
  range->id = known.id();
  range->generation = known.generation();
  range->start = known.start();
  range->end = known.end();
  return range;
}

Result<RangePointer> RangeRouter::look_up(ByteView address, Side side) {
  // Whatever is wrong with the directory, the ranges know better.
  const Result<DirectoryAnswer> hint = directory_.find(address, side);
  RangeId id = hint.has_value() ? hint->range.id : first_range_id;
  Patience patience(clock_, patience_us_);
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
    const RangeDescriptor range = to_descriptor(*header);
    // A descriptor says nothing of what may be written: while it is split it is not remembered.
    if (header->state != RangeState::split) cache_.insert(range);
    if (holds(range, address, side)) return std::make_shared<const RangeHeader>(std::move(*header));
    const bool is_before = side == Side::at ? address < range.start : address <= range.start;
    id = is_before || header->right == RangeId{} ? first_range_id : header->right;
  }
  return Error{Code::unavailable,
               fmt::format("the ranges around {} change all the time: try again", quote(address))};
}

void RangeRouter::forget(const RangeHeader& range) {
  const RangeRef known = cache_.get(range.start);
  if (known && known.id() == range.id && known.generation() <= range.generation)
    discard(cache_.evict(known));  // fails for replacements only
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
