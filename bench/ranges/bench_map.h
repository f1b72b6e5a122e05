// A map of many ranges: its directory in a memory engine, and places in it to look for.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "engine/memory_engine.h"
#include "range/directory.h"

namespace trellis {

class BenchMap {
 public:
  // `meta2_records`: how many records a range of meta2 holds.
  BenchMap(size_t ranges, size_t meta2_records);

  Engine& engine() { return *engine_; }
  size_t ranges() const { return ranges_; }
  // By start; those of meta2 come first.
  const std::vector<RangeDescriptor>& all() const { return all_; }
  double record_bytes() const { return record_bytes_; }

  // In the range of that number, below ranges().
  Bytes address_in(size_t range, uint64_t within) const;

 private:
  Bytes border(size_t range) const;

  const size_t ranges_;
  std::unique_ptr<MemoryEngine> engine_;
  std::vector<RangeDescriptor> all_;
  double record_bytes_ = 0;
};

// Addresses side by side and small, so that fetching them is as little as may be of what is
// measured.
class AddressRing {
 public:
  // REQUIRES: at most 31 bytes
  void push(ByteView address) {
    Place& place = places_.emplace_back();
    place.size = static_cast<uint8_t>(address.size());
    std::memcpy(place.bytes, address.data(), address.size());
  }
  size_t size() const { return places_.size(); }
  ByteView operator[](size_t i) const { return {places_[i].bytes, places_[i].size}; }

 private:
  struct Place {
    uint8_t size;
    char bytes[31];
  };
  std::vector<Place> places_;
};

}  // namespace trellis
