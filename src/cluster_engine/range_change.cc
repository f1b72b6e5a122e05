#include "cluster_engine/range_change.h"

#include <algorithm>
#include <initializer_list>

#include "cluster_engine/range_steps.h"

namespace trellis {
namespace {

bool is_one_of(RangeState state, std::initializer_list<RangeState> states) {
  return std::find(states.begin(), states.end(), state) != states.end();
}

// A range that says that the other one is copying it, or made it: if that one does not say so, it
// has given up, for it says so first and stops saying so last.
Status settle_frozen(ObjectStore& store, const RangeHeader& range) {
  const Result<RangeHeader> left = read_header(store, "settle.read", range.other);
  if (!left.has_value() && left.error().code != Code::not_found) return Error(left.error());
  if (left.has_value() && left->other == range.id &&
      is_one_of(left->state, {RangeState::merge, RangeState::unmerge, RangeState::merged})) {
    // Unless another merge has frozen it anew by now.
    TRY_ASSIGN(const RangeHeader now, read_header(store, "settle.read", range.id));
    if (now != range) return Error{Code::conflict, to_string(now) + " goes on without us"};
    return settle_seen(store, *left);
  }
  RangeHeader thawed = range;
  ++thawed.generation;
  thawed.state = RangeState::live;
  thawed.other = {};
  return change_header(store, "unmerge.thaw", range, thawed);
}

Status settle_building(ObjectStore& store, const RangeHeader& range) {
  const Result<RangeHeader> origin = read_header(store, "settle.read", range.other);
  if (!origin.has_value() && origin.error().code != Code::not_found) return Error(origin.error());
  if (origin.has_value() && origin->other == range.id &&
      is_one_of(origin->state, {RangeState::split, RangeState::unsplit}))
    return settle_seen(store, *origin);
  return change_header(store, "unsplit.remove", range, range, {RemoveObject{}});
}

}  // namespace

Status settle_seen(ObjectStore& store, const RangeHeader& range) {
  switch (range.state) {
    case RangeState::live:
    case RangeState::gone: return {};
    case RangeState::split:
    case RangeState::unsplit: return undo_split(store, range);
    case RangeState::halved: return finish_split(store, range);
    case RangeState::building: return settle_building(store, range);
    case RangeState::merge:
    case RangeState::unmerge: return undo_merge(store, range);
    case RangeState::merged: return finish_merge(store, range);
    case RangeState::frozen: return settle_frozen(store, range);
  }
  return {};
}

Status settle_range(ObjectStore& store, RangeId id) {
  const Result<RangeHeader> range = read_header(store, "settle.read", id);
  if (!range.has_value())
    return range.error().code == Code::not_found ? Status() : Status(Error(range.error()));
  return settle_seen(store, *range);
}

}  // namespace trellis
