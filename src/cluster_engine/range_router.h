// Which object holds an address, as far as this client knows; what is wrong is found out by the
// guards of operations, and told by forget().
//
// Threads: any. Blocking: every call may read headers, and wait for splits and merges of others.
#pragma once

#include <map>
#include <memory>
#include <shared_mutex>

#include "base/clock.h"
#include "cluster_engine/range_object.h"

namespace trellis {

using RangePointer = std::shared_ptr<const RangeHeader>;

// Waits for something that somebody else is to finish, for a while.
class Patience {
 public:
  Patience(Clock& clock, uint64_t patience_us) : clock_(clock), patience_us_(patience_us) {}
  // True: not yet, look again. False: it took too long, help. `what` says whether it is the same
  // thing as last time.
  bool wait(ByteView what);

 private:
  Clock& clock_;
  const uint64_t patience_us_;
  Bytes what_;
  uint64_t since_us_ = 0;
  unsigned waits_ = 0;
};

class RangeRouter {
 public:
  // After patience_us it settles what others began.
  RangeRouter(ObjectStore& store, Clock& clock, uint64_t patience_us)
      : store_(store), clock_(clock), patience_us_(patience_us) {}

  // The range that holds the address; it may be read.
  Result<RangePointer> find(ByteView address);
  // The range that holds what lies just before; an empty address: the last one.
  Result<RangePointer> find_before(ByteView address);
  // It is not as it was known: the next find looks.
  void forget(const RangeHeader& range);
  // Of a range in a state that does not allow something: waits for it to pass, then settles it.
  // The range is forgotten.
  Status wait(const RangeHeader& range, Patience& patience);

  Clock& clock() { return clock_; }
  uint64_t patience_us() const { return patience_us_; }

 private:
  enum class Side : bool { at, before };
  Result<RangePointer> locate(ByteView address, Side side);
  RangePointer nearest(ByteView address, Side side) const;
  void remember(RangePointer range);

  ObjectStore& store_;
  Clock& clock_;
  const uint64_t patience_us_;
  mutable std::shared_mutex mutex_;
  std::map<Bytes, RangePointer, std::less<>> known_;  // by start
};

}  // namespace trellis
