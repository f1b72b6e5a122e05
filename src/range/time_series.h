// Figures over time, in the map itself: samples of 10 s for a while, averages of 30 min for longer.
//
//   04 'tsd' name 1 hour source  ->  | 01 | { sample u16be | value u64be } ... |   360 in an hour
//   04 'tsd' name 2 day source   ->  the same                                     48 in a day
//
// An hour that is too old becomes two averages of its day before it goes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace trellis {

struct TimeSeriesOptions {
  uint64_t samples_kept_ms = 24ull * 3600 * 1000;
  uint64_t averages_kept_ms = 30ull * 24 * 3600 * 1000;
  Durability durability = Durability::everysec;
};

// One thread at a time writes; any reads.
class TimeSeries {
 public:
  struct Sample {
    ByteView name;
    ByteView source;
    uint64_t value;
  };
  struct Point {
    uint64_t time_ms;  // where its 10 s or 30 min begin
    uint64_t value;
    bool operator==(const Point&) const = default;
  };

  explicit TimeSeries(Engine& engine, TimeSeriesOptions options = {})
      : engine_(engine), options_(options) {}

  // Of one instant. A second one within the same 10 s replaces the first.
  Status append(uint64_t now_ms, std::span<const Sample> samples);
  // Of [from, to), oldest first: averages where samples are gone, then samples.
  Result<std::vector<Point>> read(ByteView name, ByteView source, uint64_t from_ms,
                                  uint64_t to_ms) const;
  // Rolls up and removes what is too old of one series; does at most about `slots_max` at once and
  // returns how many.
  Result<size_t> roll_up(ByteView name, uint64_t now_ms, size_t slots_max = 1'000);

 private:
  Engine& engine_;
  const TimeSeriesOptions options_;
};

}  // namespace trellis
