// Splits and merges of range objects: steps that each are one operation on one object, and what
// the next comer does if they stop in the middle.
//
//   split   O: gen g -> g+1, split N m          from now on nothing at or above m is written
//           N: made, building O                 the pages of [m, end) are copied to it
//           N: gen g+2, live
//           O: gen g+1 -> g+2, end m, halved N  the commit point
//           O: [m, ..) removed; directory: m -> O, end -> N; live
//   merge   L: gen g -> g+1, merge R            what L holds is read and written as ever
//           R: gen h -> h+1, frozen L           nothing in R is read or written
//           L: the pages of R are copied behind its end
//           L: gen max + 1, R's end, merged R   the commit point; new counters
//           R: emptied, gone L; directory: end -> L, L's old end removed; L: live
//
// Before the commit point whoever comes next first raises the generation of O (or L), so that the
// one who began cannot go on, and then undoes the rest; after it, finishes. Every state but live
// and gone is left by settle. Who comes next waits for what still moves (range_patience.h).
//
// Ranges may be of any size: memory is that of a few pages. (A read of a page is limited by a
// number of entries, so one that follows many small ones with large ones may be larger.)
//
// Threads: any; clients: any number. Blocking: every call.
#pragma once

#include "cluster_engine/range_object.h"

namespace trellis {

struct RangeChangeOptions {
  size_t page_entries = 256;  // of each kind, that one operation copies
  size_t page_bytes = 16 * 1024 * 1024;
  // How long a ClusterHome waits for a change of others that does not move.
  uint64_t patience_us = 1'000'000;
};

// `range` is what the caller read, and live. On success it is split, whatever is left to be tidied
// up. Code::conflict: it is not what the caller read any more. Code::exists: the id is in use, and
// nothing was done. Other codes: it may be split, or will be found unsplit by the next comer.
// REQUIRES: a range may begin at `at`, inside of the range; new_id was never used before
Status split_range(ObjectStore& store, const RangeHeader& range, ByteView at, RangeId new_id,
                   uint64_t sticky_until_ms = 0, RangeChangeOptions options = {});

// Both as the caller read them, and live. Answers as above.
// REQUIRES: left.end == right.start and left.right == right.id
Status merge_ranges(ObjectStore& store, const RangeHeader& left, const RangeHeader& right,
                    RangeChangeOptions options = {});

// Finishes or undoes what is under way, in one of the steps above; the object may be gone or not
// there after that. Code::conflict: somebody else was at it; look again.
Status settle_range(ObjectStore& store, RangeId id);

}  // namespace trellis
