// The ranges of a cluster: objects that splits and merges copy.
#pragma once

#include <functional>

#include "cluster_engine/range_change.h"
#include "range/range_home.h"

namespace trellis {

// Ids that no range has or had, from a counter that all clients share (an object of its own).
class RangeIdCounter {
 public:
  explicit RangeIdCounter(ObjectStore& store) : store_(store) {}
  Result<RangeId> next();

 private:
  ObjectStore& store_;
};

class ClusterHome final : public RangeHome {
 public:
  // Both must outlive it.
  ClusterHome(ObjectStore& store, std::function<Result<RangeId>()> new_id,
              RangeChangeOptions options = {})
      : store_(store), new_id_(std::move(new_id)), options_(options) {}

  Result<RangeDescriptor> find(ByteView address) override;
  Status for_each(FunctionRef<Visit(const RangeDescriptor&)> visit) override;
  Result<std::pair<RangeDescriptor, RangeDescriptor>> split(const SplitRequest& request) override;
  Result<RangeDescriptor> merge(const RangeDescriptor& left, const RangeDescriptor& right) override;
  // What commits have applied: a write that is decided and not yet resolved is not among it.
  Status walk(const RangeDescriptor& range, ScanVisitor visit) override;

 private:
  // The range, settled; Code::conflict if its interval is not what the caller knows.
  Result<RangeHeader> settled(const RangeDescriptor& known);

  ObjectStore& store_;
  std::function<Result<RangeId>()> new_id_;
  RangeChangeOptions options_;
};

}  // namespace trellis
