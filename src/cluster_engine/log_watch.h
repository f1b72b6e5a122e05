// Which clients are dead, as far as one can tell: those whose heartbeat stands still.
//
// Each client counts in an attribute of its log (transaction_log.h). Whoever looks at it compares
// it with what it was at the look before; clocks of others play no part. One that is only slow and
// taken for dead loses nothing that it was told is done: it is fenced off before its log is swept,
// finds out when it wants to decide or counts, and starts again under another name.
//
// One thread at a time. Blocking: every call.
#pragma once

#include <map>
#include <vector>

#include "cluster_engine/transaction_log.h"

namespace trellis {

class LogWatch {
 public:
  // `looks_max`: at so many looks, after the first one, the heartbeat must have been the same. The
  // time between two of them is the caller's, and no shorter than that between two beats.
  LogWatch(ObjectStore& store, unsigned looks_max) : store_(store), looks_max_(looks_max) {}
  // Adds the dead ones to `dead`. The first error, after it has looked at all of them.
  Status look(std::vector<uint64_t>& dead);

 private:
  struct Seen {
    Bytes beat;
    unsigned unchanged = 0;
  };
  ObjectStore& store_;
  const unsigned looks_max_;
  std::map<uint64_t, Seen> seen_;
};

}  // namespace trellis
