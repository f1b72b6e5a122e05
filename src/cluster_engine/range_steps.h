// Steps that range_split.cc, range_merge.cc and range_change.cc share.
#pragma once

#include <utility>

#include "cluster_engine/range_change.h"

namespace trellis {

// One guarded write of a range; `to` is its header afterwards.
// The guard is the generation and, as some states pass without a new one, the state.
Status change_header(ObjectStore& store, FaultPoint point, const RangeHeader& from,
                     const RangeHeader& to, std::vector<Change> more = {});

// Removes every entry of an address at or above `from`.
std::vector<Change> remove_entries_from(ByteView from);

// Copies the entries of [begin, end) page by page. Each read is guarded by the source's header,
// each write by the target's.
struct EntryCopy {
  const RangeHeader& source;
  const RangeHeader& target;
  ByteView begin;
  ByteView end;
  FaultPoint read_point;
  FaultPoint write_point;
  uint64_t step = 0;  // of the target, so far
};
Status copy_entries(ObjectStore& store, const EntryCopy& copy, const RangeChangeOptions& options);

// From the states split, unsplit; halved; merge, unmerge; merged.
Status undo_split(ObjectStore& store, RangeHeader range);
Status finish_split(ObjectStore& store, const RangeHeader& range);
Status undo_merge(ObjectStore& store, RangeHeader range);
Status finish_merge(ObjectStore& store, const RangeHeader& range);

// What a split or merge answers that stopped at `failed`: it tidies up, and looks whether it is
// done all the same.
template <class IsDone>
Status end_change(ObjectStore& store, RangeId id, const Status& failed, IsDone is_done) {
  for (int attempt = 0; attempt < 2; ++attempt)
    if (settle_range(store, id).has_value()) break;
  const Result<RangeHeader> header = read_header(store, "change.look", id);
  if (header.has_value() && is_done(*header)) return {};
  return failed;
}

}  // namespace trellis
