// What some transactions read and wrote, for whoever keeps count of where the load is.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "engine/write_set.h"

namespace trellis {

class TrafficObserver {
 public:
  virtual ~TrafficObserver() = default;

  // `reads` are keys, of a scan its begin. `writes` is what was committed: that of a tenant holds
  // its own difference of bytes and keys, as adds to counters (codec/tenant_keys.h). From the
  // thread of the transaction, outside of its latches: must be quick.
  virtual void sampled(const std::vector<Bytes>& reads, const WriteSet& writes) = 0;
};

}  // namespace trellis
