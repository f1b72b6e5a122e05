// Steps that range_split.cc, range_merge.cc and range_change.cc share.
#pragma once

#include <utility>

#include "cluster_engine/range_change.h"

namespace trellis {

// One guarded write of a range; `to` is its header afterwards.
// The guard is the generation and, as some states pass without a new one, the state.
Status change_header(ObjectStore& store, FaultPoint point, const RangeHeader& from,
                     const RangeHeader& to, std::vector<ObjectChange> more = {});

// Removes every entry of an address at or above `from`.
std::vector<ObjectChange> remove_entries_from(ByteView from);

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

// settle_range of a range as it was seen: what others have begun since is not touched.
Status settle_seen(ObjectStore& store, const RangeHeader& range);

// What a split or merge answers that stopped at `failed` after it had marked its range: it tidies
// up, and looks whether it is done all the same.
Status end_change(ObjectStore& store, const RangeHeader& marked, const Status& failed,
                  FunctionRef<bool(const RangeHeader& now)> is_done);

}  // namespace trellis
