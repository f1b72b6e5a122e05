// Puts in order what nobody else meets: splits and merges whose server died, copies that nobody
// waits for, tombstones that nobody needs.
//
// Whether a server is dead or slow nobody can tell, and safety does not depend on it: what has not
// moved between two sweeps is settled, so the time between them is what one step may take.
#pragma once

#include <map>

#include "cluster_engine/range_object.h"

namespace trellis {

class RangeSweeper {
 public:
  explicit RangeSweeper(ObjectStore& store) : store_(store) {}
  // One thread at a time. Returns how many ranges it settled or removed; the first error, after it
  // has looked at all of them.
  Result<size_t> sweep();

 private:
  ObjectStore& store_;
  std::map<RangeId, Bytes> met_;  // in the sweep before, neither live nor new: their progress
};

}  // namespace trellis
