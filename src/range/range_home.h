// The ranges themselves, wherever they are: the authority that the directory is an index of.
//
// On the embedded engine ranges are records and share one store; on a cluster they are objects and
// a split or merge copies. Whoever decides on splits and merges knows only this.
//
// Threads: any. Blocking: every call. A call that ends in the middle (a crash, an error) leaves
// what the next caller finishes or undoes.
#pragma once

#include <utility>

#include "base/function_ref.h"
#include "base/result.h"
#include "engine/engine.h"
#include "range/descriptor.h"

namespace trellis {

struct SplitRequest {
  RangeDescriptor range;  // as the caller knows it
  ByteView at;            // an address inside of it: the start of the new range
  uint64_t sticky_until_ms = 0;
  std::string_view reason = {};  // for people: the log of ranges says it
};

class RangeHome {
 public:
  virtual ~RangeHome() = default;

  // The range that holds the address.
  virtual Result<RangeDescriptor> find(ByteView address) = 0;
  // All of them, by start. Holes and overlaps are shown as they are; one that makes no sense is
  // passed over where that can be done, and its error is the answer.
  virtual Status for_each(FunctionRef<Visit(const RangeDescriptor&)> visit) = 0;

  // Code::conflict if the range is not what the caller knows any more: find it again.
  // Code::invalid at a place where no range may begin.
  virtual Result<std::pair<RangeDescriptor, RangeDescriptor>> split(
      const SplitRequest& request) = 0;
  // REQUIRES: left.end == right.start. Code::conflict as above.
  virtual Result<RangeDescriptor> merge(const RangeDescriptor& left, const RangeDescriptor& right,
                                        std::string_view reason) = 0;

  // Every stored entry of the range, by its plain key, once each, in no promised order. An entry
  // that is written meanwhile may be seen or not. `between` is called now and then, outside of
  // every read: it may take its time, and ends the walk with a stop.
  virtual Status walk(const RangeDescriptor& range, ScanVisitor visit,
                      FunctionRef<Visit()> between) = 0;

  // True if the generation of a range may grow while its record in the directory stays as it is.
  virtual bool records_may_lag() const { return false; }
};

}  // namespace trellis
