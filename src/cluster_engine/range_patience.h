// Waiting for splits, merges and commits of others: for as long as they move, and no longer.
//
// Whether another client is slow or dead nobody can tell, and nobody trusts another one's clock.
// What can be told is whether something has changed between two looks, and how much time has passed
// between them here.
#pragma once

#include <map>

#include "base/clock.h"
#include "cluster_engine/range_object.h"

namespace trellis {

// How long one call has waited for what others are to finish.
class Patience {
 public:
  Patience(Clock& clock, uint64_t patience_us) : clock_(clock), patience_us_(patience_us) {}
  // True: look again. False: `what` has not moved for long enough, help. It moves when `progress`
  // is another one than at the last look.
  bool wait(const Bytes& what, const Bytes& progress = {});

 private:
  struct Watch {
    Bytes progress;
    uint64_t looked_us;
    uint64_t unmoved_us = 0;
  };
  Clock& clock_;
  const uint64_t patience_us_;
  std::map<Bytes, Watch> watches_;
  unsigned waits_ = 0;
};

// Differs between two looks if the split or merge that the range takes part in has moved between
// them: a state, a generation or a page (the steps of range_object.h).
Bytes progress_of(ObjectStore& store, const RangeHeader& range);

// Of a range in a state that does not allow something: waits a little for it to pass, and settles
// it (cluster_engine/range_change.h) if it has not moved for the patience. Look again after it.
Status wait_or_settle(ObjectStore& store, const RangeHeader& range, Patience& patience);

}  // namespace trellis
