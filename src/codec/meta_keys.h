// The range directory (seed 002, CockroachDB): where a key lives.
//
//   | 02 | end |   meta1: descriptor of the meta2 range that ends at 03<end>
//   | 03 | end |   meta2: descriptor of the range that ends at <end>
//
// A record sits at the END key of its range, so the range of a key is found by one seek: the first
// record strictly after the key's own meta key. The last range ends at ff ff.
#pragma once

#include <utility>

#include "codec/field_codecs.h"

namespace trellis {

// The end key of a range; pretty as the key it is.
struct EndKey : Remaining {
  static void append_pretty(std::string& out, ByteView key);
};

// | 02 | end bytes |
struct Meta1Key {
  ByteView end;
  static constexpr std::string_view kind = "meta1";
  static constexpr auto layout() {
    return record(literal("area", "\x02", "meta1: where meta2 records live", "/Meta1"),
                  field<EndKey>("end", &Meta1Key::end, "end key of the range"));
  }
};

// | 03 | end bytes |
struct Meta2Key {
  ByteView end;
  static constexpr std::string_view kind = "meta2";
  static constexpr auto layout() {
    return record(literal("area", "\x03", "meta2: where keys live", "/Meta2"),
                  field<EndKey>("end", &Meta2Key::end, "end key of the range"));
  }
};

inline constexpr ByteView map_key_max{"\xff\xff", 2};
inline constexpr ByteView meta1_key_max{"\x02\xff\xff", 3};
inline constexpr ByteView meta2_key_max{"\x03\xff\xff", 3};

// Where in the directory a key is looked up. A plain key has its record in meta2 (03 key), a meta2
// key in meta1 (02 rest), a meta1 key and the empty key at the very start (empty). Local keys are
// looked up at their own address (address_of_local).
Result<Bytes> range_meta_key(ByteView key);

// The interval in which the first record is the one wanted, for a meta key that range_meta_key
// gave, scanning forward or (for the range that ends at or holds what is before the key) backward.
Result<std::pair<Bytes, Bytes>> meta_scan_bounds(ByteView meta_key);
Result<std::pair<Bytes, Bytes>> meta_reverse_scan_bounds(ByteView meta_key);

// The global key under which a local key is found: the inner key of 01 'k', unwrapped as often as
// it is wrapped; any other key itself. Store and range-id keys are not addressable.
Result<Bytes> address_of_local(ByteView key);
// The end of an interval that must include everything addressed like `key`.
Result<Bytes> address_upper_bound(ByteView key);

}  // namespace trellis
