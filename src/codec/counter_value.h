// Counters of a tenant: the keys that an add may touch (CounterKey, tenant_keys.h) and what they
// hold.
//
//   'x' | keyspace u24be | 'k' | ...   ->   | 01 | value i64be, two's complement |
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace trellis {

constexpr char counter_value_format = 0x01;
constexpr size_t counter_value_bytes = 9;

inline bool is_counter_key(ByteView key) {
  return key.size() >= 5 && key[0] == 'x' && key[4] == 'k';
}

inline Bytes encode_counter_value(int64_t value) {
  Bytes out(1, counter_value_format);
  append_be64(out, static_cast<uint64_t>(value));
  return out;
}

// Absent if the bytes are no counter.
inline std::optional<int64_t> decode_counter_value(ByteView bytes) {
  if (bytes.size() != counter_value_bytes || bytes[0] != counter_value_format) return std::nullopt;
  return static_cast<int64_t>(load_be(bytes.data() + 1, 8));
}

// Wraps at 64 bits: only so is a sum the same in whatever groups an engine folds its parts.
inline int64_t add_wrapping(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace trellis
