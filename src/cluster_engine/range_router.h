// Which object holds an address, as far as this client knows (range/range_cache.h). What it does
// not know the directory hints at and the objects' own headers tell; what is wrong is found out by
// the guards of operations, and told by forget().
//
// Threads: any. Blocking: every call may read headers, and wait for splits and merges of others.
#pragma once

#include <map>
#include <memory>

#include "base/clock.h"
#include "cluster_engine/range_lookup.h"
#include "range/range_cache.h"

namespace trellis {

using RangePointer = std::shared_ptr<const RangeHeader>;

// How long one call has waited for what others are to finish.
class Patience {
 public:
  Patience(Clock& clock, uint64_t patience_us) : clock_(clock), patience_us_(patience_us) {}
  // True: look again. False: `what` was waited for long enough, help.
  bool wait(const Bytes& what);

 private:
  Clock& clock_;
  const uint64_t patience_us_;
  std::map<Bytes, uint64_t> since_us_;
  unsigned waits_ = 0;
};

class RangeRouter {
 public:
  // After patience_us it settles what others began.
  RangeRouter(ObjectStore& store, Clock& clock, uint64_t patience_us, size_t cache_bytes_max)
      : store_(store),
        clock_(clock),
        patience_us_(patience_us),
        meta_reader_(store),
        directory_(meta_reader_),
        cache_(directory_, cache_bytes_max) {}

  // The range that holds the address (or what lies just before it), which may be read. Of its
  // header, `right` is not known.
  Result<RangePointer> find(ByteView address, Side side = Side::at);
  // It is not as it was known: the next find looks.
  void forget(const RangeHeader& range);
  // Of a range in a state that does not allow something: waits for it to pass, then settles it.
  // The range is forgotten.
  Status wait(const RangeHeader& range, Patience& patience);

  Clock& clock() { return clock_; }
  uint64_t patience_us() const { return patience_us_; }
  RangeCacheFigures figures() const { return cache_.figures(); }

 private:
  Result<RangePointer> look_up(ByteView address, Side side);

  ObjectStore& store_;
  Clock& clock_;
  const uint64_t patience_us_;
  ObjectMetaReader meta_reader_;
  Directory directory_;
  RangeCache cache_;
};

}  // namespace trellis
