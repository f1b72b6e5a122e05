// Whether the directory says what the ranges are, and making it so.
//
// The ranges themselves (range_home.h) are the authority; the directory is an index of them. Where
// the ranges do not tile the map nothing can be concluded from them: that is told, and not
// repaired here. A home that can (EmbeddedHome::repair) does it before.
//
// Memory: one descriptor per range. Threads: any. Blocking: reads all of the directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "engine/engine.h"
#include "range/range_home.h"

namespace trellis {

struct RangeFinding {
  enum class Kind : unsigned char {
    // Of the ranges themselves.
    hole,
    overlap,
    bad_border,  // where no range may begin or end
    bad_range,   // it cannot be read
    same_id,     // as another one
    // Of the directory.
    lost_record,
    wrong_generation,
    wrong_bounds,
    wrong_range,  // another id, home or stickiness
    stray_record,
    bad_record,
  };
  Kind kind;
  std::string text;  // what is wrong, in words

  bool operator==(const RangeFinding&) const = default;
};

std::string_view to_string(RangeFinding::Kind kind);

struct VerifyReport {
  uint64_t ranges = 0;
  uint64_t records = 0;
  std::vector<RangeFinding> of_ranges;
  std::vector<RangeFinding> of_directory;

  bool clean() const { return of_ranges.empty() && of_directory.empty(); }
};

// What a split or merge that runs meanwhile seems to break is looked at again and not told.
Result<VerifyReport> verify_directory(RangeHome& home, Engine& engine);

struct RebuildReport {
  uint64_t written = 0;
  uint64_t removed = 0;
};

// Writes what is missing or wrong, removes what is stray, and leaves the rest alone. Code::corrupt
// if the ranges do not tile the map: verify says where.
Result<RebuildReport> rebuild_directory(RangeHome& home, Engine& engine);

}  // namespace trellis
