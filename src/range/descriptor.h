// What is known of one range: an interval of addresses (codec/address.h) and where it lives.
//
//   02<end> or 03<end>  ->  | 01 | protobuf RangeDescriptor |     (codec/meta_keys.h)
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "base/strong_id.h"

namespace trellis {

struct RangeDescriptor {
  RangeId id;
  Bytes start;
  Bytes end;                     // exclusive; the last range ends at map_key_max
  uint64_t generation = 0;       // of two that overlap, the higher one is newer
  Bytes home;                    // where it is stored; empty: in this store
  uint64_t sticky_until_ms = 0;  // not merged with a neighbour before

  bool holds(ByteView address) const { return start <= address && address < end; }
  // For what lies before an address: start < address <= end.
  bool holds_before(ByteView address) const { return start < address && address <= end; }
  bool overlaps(const RangeDescriptor& other) const {
    return start < other.end && other.start < end;
  }
  bool operator==(const RangeDescriptor&) const = default;
};

// The range that holds all of meta1, and at first everything.
constexpr RangeId first_range_id{1};
// So that there is always a higher one.
constexpr uint64_t generation_max = uint64_t{1} << 62;

Bytes encode_descriptor(const RangeDescriptor& range);
// Code::corrupt also if its interval is empty, ends beyond the map, or it has no id, or a
// generation that none reaches.
Result<RangeDescriptor> decode_descriptor(ByteView bytes);

// "range 7 [02, 0366) generation 3": for errors and logs.
std::string to_string(const RangeDescriptor& range);

}  // namespace trellis
