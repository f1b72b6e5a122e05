// Which object holds an address, as far as this client knows (range/range_cache.h). What it does
// not know the directory hints at and the objects' own headers tell; what is wrong is found out by
// the guards of operations, and told by forget(). Those who miss the same share one lookup.
//
// Threads: any. Blocking: every call may read headers, and wait for splits and merges of others.
#pragma once

#include <memory>

#include "cluster_engine/range_lookup.h"
#include "cluster_engine/range_patience.h"
#include "range/range_cache.h"

namespace trellis {

using RangePointer = std::shared_ptr<const RangeHeader>;

class RangeRouter {
 public:
  // What others began and does not move for patience_us is settled.
  RangeRouter(ObjectStore& store, Clock& clock, uint64_t patience_us, size_t cache_bytes_max)
      : store_(store),
        clock_(clock),
        patience_us_(patience_us),
        finder_(store, cache_),
        cache_(finder_, cache_bytes_max) {}

  // The range that holds the address (or what lies just before it), which may be read. Of its
  // header, `right` is not known.
  Result<RangePointer> find(ByteView address, Side side = Side::at);
  // It is not as it was known: the next find looks.
  void forget(const RangeHeader& range);
  // Of a range in a state that does not allow something: wait_or_settle. The range is forgotten.
  Status wait(const RangeHeader& range, Patience& patience);

  Clock& clock() { return clock_; }
  uint64_t patience_us() const { return patience_us_; }
  RangeCacheFigures figures() const { return cache_.figures(); }

 private:
  // What the directory hints at, as the objects themselves say it is.
  class Finder final : public RangeFinder {
   public:
    Finder(ObjectStore& store, RangeCache& cache)
        : store_(store), cache_(cache), meta_reader_(store), directory_(meta_reader_) {}
    // Code::conflict: the range is being changed, and cannot be known by its descriptor.
    Result<DirectoryAnswer> find(ByteView address, Side side,
                                 const RangeDescriptor* meta2_range) override;
    // What the directory says, which may be wrong or nothing: then, the first range.
    DirectoryAnswer hint(ByteView address, Side side, const RangeDescriptor* meta2_range = nullptr);
    // In whatever state it is, beginning at a hint.
    Result<RangeHeader> find_header(ByteView address, Side side, RangeId hint);

   private:
    ObjectStore& store_;
    RangeCache& cache_;
    ObjectMetaReader meta_reader_;
    Directory directory_;
  };
  // Of one that is being changed: waits until it may be read.
  Result<RangePointer> find_changing(ByteView address, Side side);

  ObjectStore& store_;
  Clock& clock_;
  const uint64_t patience_us_;
  Finder finder_;
  RangeCache cache_;
};

}  // namespace trellis
