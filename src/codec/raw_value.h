// What a raw key (RawKey, keyspace_keys.h) holds. Never empty, whatever the user's value is: not
// every engine can store an empty value.
//
//   | 01 | value bytes |
//   | 02 | expires u64, unix ms, not 0 | value bytes |
#pragma once

#include <cstdint>

#include "codec/field_codecs.h"

namespace trellis {

// A time that cannot be 0: "never" has a form of its own, and each value has one form.
struct ExpiryTime : BigEndian<8> {
  static bool read(Reader& reader, uint64_t& time) {
    const size_t start = reader.offset();
    if (!BigEndian<8>::read(reader, time)) return false;
    return time != 0 || reader.fail("a value that never expires has format 01", start);
  }
  static const char* invalid(uint64_t time) {
    return time != 0 ? nullptr : "a value that never expires has format 01";
  }
};

// | 01 | value bytes |
struct RawValue {
  ByteView value;
  static constexpr std::string_view kind = "raw.value";
  static constexpr auto layout() {
    return record(literal("format", "\x01", "never expires"),
                  field<Remaining>("value", &RawValue::value, "the user's value"));
  }
};

// | 02 | expires u64, unix ms | value bytes |
struct RawExpiringValue {
  uint64_t expires_at_ms;
  ByteView value;
  static constexpr std::string_view kind = "raw.expiring_value";
  static constexpr auto layout() {
    return record(literal("format", "\x02", "expires"),
                  field<ExpiryTime>("expires", &RawExpiringValue::expires_at_ms,
                                    "unix time in ms, from which on it is not there"),
                  field<Remaining>("value", &RawExpiringValue::value, "the user's value"));
  }
};

// In front of the user's value: at most so much.
constexpr size_t raw_value_head_bytes_max = 9;

// Either form.
struct StoredRawValue {
  uint64_t expires_at_ms;  // 0: never
  ByteView value;

  bool expired(uint64_t now_ms) const { return expires_at_ms != 0 && expires_at_ms <= now_ms; }
};

inline Bytes encode_raw_value(const StoredRawValue& stored) {
  Bytes out;
  out.reserve(raw_value_head_bytes_max + stored.value.size());
  if (stored.expires_at_ms == 0)
    append(out, RawValue{stored.value});
  else
    append(out, RawExpiringValue{stored.expires_at_ms, stored.value});
  return out;
}

// The view points into `bytes`.
inline Result<StoredRawValue> decode_raw_value(ByteView bytes) {
  if (bytes.starts_with('\x02')) {
    TRY_ASSIGN(const RawExpiringValue expiring, decode<RawExpiringValue>(bytes));
    return StoredRawValue{expiring.expires_at_ms, expiring.value};
  }
  TRY_ASSIGN(const RawValue plain, decode<RawValue>(bytes));
  return StoredRawValue{0, plain.value};
}

}  // namespace trellis
