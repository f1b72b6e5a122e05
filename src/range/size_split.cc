#include "range/size_split.h"

#include <algorithm>

#include "codec/address.h"
#include "range/split_place.h"

namespace trellis {

void SizeSplit::add(ByteView key, ByteView value) {
  bytes_ += key.size() + value.size();
  keys_++;
  if (bytes_ < next_) return;
  next_ = bytes_ + step_bytes_;
  Bytes address;
  if (!append_address(address, key)) return;
  samples_.push_back(std::move(address));
  if (samples_.size() < samples_max) return;
  for (size_t i = 0; i < samples_max / 2; i++) samples_[i] = std::move(samples_[2 * i]);
  samples_.resize(samples_max / 2);
  step_bytes_ *= 2;
}

std::vector<Bytes> SizeSplit::cuts(const RangeDescriptor& range, uint64_t part_bytes) {
  const uint64_t parts = (bytes_ + part_bytes / 2) / part_bytes;
  std::sort(samples_.begin(), samples_.end());
  std::vector<Bytes> cuts;
  ByteView last = range.start;
  for (uint64_t part = 1; part < parts; part++) {
    const Bytes& sample = samples_[samples_.size() * part / parts];
    Bytes cut = granule_start(sample);
    if (cut <= last) cut = sample;  // one granule is more than a part
    if (cut <= last || cut >= range.end || !check_range_start(cut)) continue;
    cuts.push_back(std::move(cut));
    last = cuts.back();
  }
  return cuts;
}

}  // namespace trellis
