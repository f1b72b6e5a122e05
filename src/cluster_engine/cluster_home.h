// The ranges of a cluster: objects that splits and merges copy.
#pragma once

#include <functional>

#include "base/clock.h"
#include "cluster_engine/range_change.h"
#include "range/range_home.h"
#include "range/range_log.h"

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
  // Store and clock must outlive it. `changed` is told of each split and merge of this client,
  // after the fact: for the log of ranges, which is a part of the map that stands on this.
  ClusterHome(ObjectStore& store, Clock& clock, std::function<Result<RangeId>()> new_id,
              RangeChangeOptions options = {}, std::function<void(const RangeEvent&)> changed = {})
      : store_(store),
        clock_(clock),
        new_id_(std::move(new_id)),
        options_(options),
        changed_(std::move(changed)) {}

  Result<RangeDescriptor> find(ByteView address) override;
  Status for_each(FunctionRef<Visit(const RangeDescriptor&)> visit) override;
  Result<std::pair<RangeDescriptor, RangeDescriptor>> split(const SplitRequest& request) override;
  Result<RangeDescriptor> merge(const RangeDescriptor& left, const RangeDescriptor& right,
                                std::string_view reason) override;
  // What commits have applied: a write that is decided and not yet resolved is not among it.
  Status walk(const RangeDescriptor& range, ScanVisitor visit,
              FunctionRef<Visit()> between) override;
  // A split or merge that was given up has raised generations, and nothing else.
  bool records_may_lag() const override { return true; }

 private:
  // The range, live, after what is under way there has ended, or was ended as it did not move.
  // Code::conflict if its interval is not what the caller knows.
  Result<RangeHeader> settled(const RangeDescriptor& known);

  ObjectStore& store_;
  Clock& clock_;
  std::function<Result<RangeId>()> new_id_;
  RangeChangeOptions options_;
  std::function<void(const RangeEvent&)> changed_;
};

}  // namespace trellis
