// Finding the object that holds an address, and keeping the directory that makes it fast.
//
// The records of the directory are entries of the map (range/directory.h) in the ranges that they
// fall into. They are hints: they are written after the fact, by anyone, any number of times, each
// only if it is newer than what stands there; what they say is checked against the object itself.
#pragma once

#include "cluster_engine/range_object.h"
#include "range/directory.h"

namespace trellis {

// Reads records of the directory out of range objects.
class ObjectMetaReader final : public MetaReader {
 public:
  explicit ObjectMetaReader(ObjectStore& store) : store_(store) {}
  Result<MetaRead> read(const RangeDescriptor& from, std::span<const MetaScan> scans) override;

 private:
  ObjectStore& store_;
};

// The header of the range that holds the address: by the directory, then along tombstones and
// right links; without a directory all the way from the first range. The range may be in any state
// but gone and building.
Result<RangeHeader> find_range(ObjectStore& store, ByteView address);
// The same from an object that is believed to hold it, without asking the directory first. `passed`
// is told of the ranges on the left that were on the way, however many there are.
Result<RangeHeader> find_range_from(
    ObjectStore& store, RangeId hint, ByteView address, Side side = Side::at,
    FunctionRef<void(const RangeHeader&)> passed = [](const RangeHeader&) {});

// Every range, from the first one to the right.
Status for_each_range(ObjectStore& store, FunctionRef<Visit(const RangeHeader&)> visit);

// Puts the range's records into the directory, unless there are newer ones.
// Code::conflict: somebody was in the way; nothing is broken, try again later.
Status record_range(ObjectStore& store, FaultPoint point, const RangeHeader& range);
// Removes the records of a range that was `before` and has grown to `after`, where they are others.
Status forget_range(ObjectStore& store, FaultPoint point, const RangeDescriptor& before,
                    const RangeDescriptor& after);

}  // namespace trellis
