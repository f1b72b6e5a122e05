#include "cluster_engine/range_router.h"

#include <fmt/format.h>

namespace trellis {
namespace {

constexpr unsigned waits_max = 10'000;

// A descriptor says nothing of what may be written, so while it is split it is not remembered.
bool is_known_by_descriptor(const RangeHeader& range) {
  return range.may_read() && range.state != RangeState::split;
}

}  // namespace

Result<RangeHeader> RangeRouter::Finder::find_header(ByteView address, Side side, RangeId hint) {
  // What is passed on the way is worth knowing: without a directory the way is long.
  return find_range_from(store_, hint, address, side, [this](const RangeHeader& passed) {
    if (is_known_by_descriptor(passed)) cache_.insert(to_descriptor(passed));
  });
}

DirectoryAnswer RangeRouter::Finder::hint(ByteView address, Side side,
                                          const RangeDescriptor* meta2_range) {
  // Whatever is wrong with the directory, the ranges know better.
  Result<DirectoryAnswer> answer = directory_.find(address, side, meta2_range);
  if (answer.has_value()) return std::move(*answer);
  DirectoryAnswer first;
  first.range.id = first_range_id;
  return first;
}

Result<DirectoryAnswer> RangeRouter::Finder::find(ByteView address, Side side,
                                                  const RangeDescriptor* meta2_range) {
  DirectoryAnswer answer = hint(address, side, meta2_range);
  TRY_ASSIGN(const RangeHeader header, find_header(address, side, answer.range.id));
  if (!is_known_by_descriptor(header))
    return Error{Code::conflict, to_string(header) + " is being changed"};
  answer.range = to_descriptor(header);
  return answer;
}

Result<RangePointer> RangeRouter::find(ByteView address, Side side) {
  const Result<RangeRef> known = cache_.find(address, side);
  // An error may be that of a lookup that somebody made for another address close by.
  if (!known.has_value()) return find_changing(address, side);
  auto range = std::make_shared<RangeHeader>();
  range->id = known->id();
  range->generation = known->generation();
  range->start = known->start();
  range->end = known->end();
  return range;
}

Result<RangePointer> RangeRouter::find_changing(ByteView address, Side side) {
  Patience patience(clock_, patience_us_);
  RangeId id = finder_.hint(address, side).range.id;
  for (unsigned waits = 0; waits < waits_max; waits++) {
    TRY_ASSIGN(RangeHeader header, finder_.find_header(address, side, id));
    id = header.id;
    if (is_known_by_descriptor(header)) cache_.insert(to_descriptor(header));
    if (header.may_read()) return std::make_shared<const RangeHeader>(std::move(header));
    TRY(wait(header, patience));
  }
  return Error{Code::unavailable,
               fmt::format("the range of {} is split and merged all the time: try again later, or "
                           "see 'trellis range history' for who does that",
                           quote(address))};
}

void RangeRouter::forget(const RangeHeader& range) {
  const RangeRef known = cache_.get(range.start);
  if (known && known.id() == range.id && known.generation() <= range.generation)
    discard(cache_.evict(known));  // fails for replacements only
}

Status RangeRouter::wait(const RangeHeader& range, Patience& patience) {
  forget(range);
  return wait_or_settle(store_, range, patience);
}

}  // namespace trellis
