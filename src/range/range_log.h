// What became of the ranges, and why: one entry for each split and merge. Where ranges are records
// it is a part of their commit; where they are objects it follows the change, and is missing if who
// made it dies in between.
//
//   04 'range-log/' sequence  ->  | 01 | protobuf RangeEvent |
//
// An entry beyond entries_max takes the oldest away.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "range/descriptor.h"

namespace trellis {

struct RangeEvent {
  uint64_t sequence = 0;
  uint64_t time_ms = 0;
  std::string action;  // "bootstrap", "split", "merge"
  std::string reason;
  RangeDescriptor left;  // of a split both sides as they are since; else the range that is there
  std::optional<RangeDescriptor> right;
};

// Any thread.
class RangeLog {
 public:
  explicit RangeLog(Engine& engine, uint64_t entries_max = 100'000)
      : engine_(engine), entries_max_(entries_max) {}

  // Makes the entry a part of the commit, which conflicts if somebody else appended meanwhile.
  Status append(Commit& commit, const RangeEvent& event);
  // An entry by itself, behind those of others.
  Status record(const RangeEvent& event);
  // The newest before the sequence (0: of all), newest first.
  Result<std::vector<RangeEvent>> read(uint64_t before, size_t limit) const;

 private:
  Result<uint64_t> last_sequence() const;  // 0: there is none

  Engine& engine_;
  const uint64_t entries_max_;
};

}  // namespace trellis
