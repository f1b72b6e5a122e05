// Where a large range is cut: one walk, in any order, gives all places at once.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "range/descriptor.h"

namespace trellis {

struct SizeLimits {
  uint64_t bytes;
  uint64_t keys;
  bool are_exceeded(uint64_t bytes_there, uint64_t keys_there) const {
    return bytes_there > bytes || keys_there > keys;
  }
};

// Cuts what it is shown into steps of a small part of the limits, whichever is reached first, and
// keeps where each begins; when these become too many, of two steps one. One thread at a time.
class SizeSplit {
 public:
  explicit SizeSplit(SizeLimits limits) : limits_(limits) {}

  void add(ByteView key, ByteView value);
  uint64_t bytes() const { return bytes_; }
  uint64_t keys() const { return keys_; }

  struct Part {
    Bytes start;
    uint64_t bytes = 0;  // about
    uint64_t keys = 0;
  };
  // The range in parts of about half of a limit each, by start; they begin at a granule where that
  // leaves something on both sides. One part: there is no place to cut it.
  std::vector<Part> parts(const RangeDescriptor& range);

 private:
  static constexpr size_t steps_max = 16'384;
  double cost(const Part& step) const;  // in limits

  const SizeLimits limits_;
  double step_cost_ = 1.0 / 256;
  uint64_t bytes_ = 0;
  uint64_t keys_ = 0;
  std::vector<Part> steps_;
};

}  // namespace trellis
