// Where a large range is cut: one walk, in any order, gives all places at once.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "range/descriptor.h"

namespace trellis {

// Takes the address of one entry in every `step_bytes` of what it is shown; when these become too
// many, of twice as many. One thread at a time.
class SizeSplit {
 public:
  explicit SizeSplit(uint64_t step_bytes) : step_bytes_(step_bytes) {}

  void add(ByteView key, ByteView value);
  uint64_t bytes() const { return bytes_; }
  uint64_t keys() const { return keys_; }

  // Starts of new ranges, in order, that cut what was seen into parts of about so many bytes, at
  // the start of a granule where that leaves something on both sides.
  std::vector<Bytes> cuts(const RangeDescriptor& range, uint64_t part_bytes);

 private:
  static constexpr size_t samples_max = 16'384;
  uint64_t step_bytes_;
  uint64_t bytes_ = 0;
  uint64_t keys_ = 0;
  uint64_t next_ = 0;
  std::vector<Bytes> samples_;
};

}  // namespace trellis
