#include "range/size_split.h"

#include <algorithm>
#include <cmath>

#include "codec/address.h"
#include "range/split_place.h"

namespace trellis {

double SizeSplit::cost(const Part& step) const {
  return std::max(static_cast<double>(step.bytes) / static_cast<double>(limits_.bytes),
                  static_cast<double>(step.keys) / static_cast<double>(limits_.keys));
}

void SizeSplit::add(ByteView key, ByteView value) {
  const uint64_t bytes = key.size() + value.size();
  bytes_ += bytes;
  keys_++;
  if (steps_.empty() || cost(steps_.back()) >= step_cost_) {
    Bytes address;
    // What has no address counts for those beside it.
    if (append_address(address, key)) steps_.push_back({std::move(address)});
  }
  if (steps_.empty()) return;
  steps_.back().bytes += bytes;
  steps_.back().keys++;
  if (steps_.size() < steps_max) return;
  for (size_t i = 0; i < steps_max / 2; i++) {
    const Part second = std::move(steps_[2 * i + 1]);
    steps_[i] = std::move(steps_[2 * i]);
    steps_[i].bytes += second.bytes;
    steps_[i].keys += second.keys;
  }
  steps_.resize(steps_max / 2);
  step_cost_ *= 2;
}

// The sum of the steps' costs is what counts: where each part has half of that, no part is over
// either limit, also if one end of the range has the bytes and the other the keys.
std::vector<SizeSplit::Part> SizeSplit::parts(const RangeDescriptor& range) {
  std::sort(steps_.begin(), steps_.end(),
            [](const Part& a, const Part& b) { return a.start < b.start; });
  double all = 0;
  for (const Part& step : steps_) all += cost(step);
  const auto wanted = static_cast<size_t>(std::max(1.0, std::round(2 * all)));
  const double part_cost = all / static_cast<double>(wanted);
  std::vector<Part> parts = {{range.start}};
  double passed = 0;
  size_t index = 0;  // of the part that the last cut began
  for (const Part& step : steps_) {
    // Half a step sooner: sums of fractions are never exact.
    const auto due = static_cast<size_t>((passed + step_cost_ / 2) / part_cost);
    if (due > index && due < wanted) {
      const ByteView last = parts.back().start;
      Bytes cut = granule_start(step.start);
      if (cut <= last) cut = step.start;  // one granule is more than a part
      if (cut > last && cut < range.end && check_range_start(cut)) {
        parts.push_back({std::move(cut)});
        index = due;
      }
    }
    parts.back().bytes += step.bytes;
    parts.back().keys += step.keys;
    passed += cost(step);
  }
  return parts;
}

}  // namespace trellis
