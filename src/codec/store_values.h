// What a store says of itself, under 01 's' (StoreKey, local_keys.h).
#pragma once

#include "codec/field_codecs.h"

namespace trellis {

inline constexpr Literal value_format_1 = literal("format", "\x01", "format of the value");

// 01 's' 'iden' -> | 01 | store uuid | created u64, unix ms |
struct StoreIdentity {
  Uuid uuid;
  uint64_t created_ms;
  static constexpr std::string_view kind = "store.identity_value";
  static constexpr auto layout() {
    return record(value_format_1, field<UuidBytes>("uuid", &StoreIdentity::uuid),
                  field<BigEndian<8>>("created", &StoreIdentity::created_ms));
  }
};

// 01 's' 'uptm' -> | 01 | started u64, unix ms |
struct StoreStart {
  uint64_t started_ms;
  static constexpr std::string_view kind = "store.start_value";
  static constexpr auto layout() {
    return record(value_format_1, field<BigEndian<8>>("started", &StoreStart::started_ms));
  }
};

// 01 's' 'load' number -> | 01 | first size u32 | first key | last key |
struct StoreLoad {
  ByteView first;
  ByteView last;
  static constexpr std::string_view kind = "store.load_value";
  static constexpr auto layout() {
    return record(value_format_1, field<LengthPrefixed<4>>("first", &StoreLoad::first, "key"),
                  field<Remaining>("last", &StoreLoad::last, "key"));
  }
};

}  // namespace trellis
