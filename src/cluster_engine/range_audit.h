// Whether the range objects and their directory are as they must be.
#pragma once

#include "cluster_engine/range_object.h"

namespace trellis {

struct RangeAudit {
  size_t ranges = 0;
  // What must never be: a hole or an overlap, an object that lives and is not reached from the
  // first range, a record that is newer than its object, an entry outside of its range.
  std::vector<std::string> problems;
  // What is allowed and tidied up by and by: states that are not settled, tombstones, copies that
  // nobody waits for, directory records that are out of date or missing.
  std::vector<std::string> leftovers;
};

// Exact while nothing changes; otherwise what it finds may be what was passing by.
Result<RangeAudit> audit_ranges(ObjectStore& store);

}  // namespace trellis
