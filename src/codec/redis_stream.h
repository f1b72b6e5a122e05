// The values of stream records (kvrocks.md section 2).
#pragma once

#include <span>

#include "base/function_ref.h"
#include "codec/field_codecs.h"

namespace trellis {

// An entry: field and value in turn, each | length: LEB128, 1 to 5 bytes | bytes |.
void append_stream_entry(Bytes& out, std::span<const ByteView> strings);
// Visits every string in order. Total: any bytes give strings or an error. An odd number of strings
// is an error: fields come in pairs.
Status visit_stream_entry(ByteView in, FunctionRef<void(ByteView)> visit);

// Two's complement, most significant byte first; not ordered, for values only.
struct SignedBigEndian : NumberText {
  static constexpr std::string_view form = "i64";
  static void append(Bytes& out, int64_t value) { append_be64(out, static_cast<uint64_t>(value)); }
  static bool read(Reader& reader, int64_t& value) {
    uint64_t raw = 0;
    if (!BigEndian<8>::read(reader, raw)) return false;
    value = static_cast<int64_t>(raw);
    return true;
  }
  static std::string text(int64_t value) { return std::to_string(value); }
  static Status parse(std::string_view text, TextArena& arena, int64_t& value) {
    return OrderedVarint::parse(text, arena, value);
  }
  static const char* invalid(int64_t) { return nullptr; }
};

// | consumers u64 | pending u64 | last ms u64 | last seq u64 | entries read i64 | lag u64 |
struct StreamGroupValue {
  uint64_t consumers;
  uint64_t pending;
  uint64_t last_ms;
  uint64_t last_seq;
  int64_t entries_read;  // -1: unknown
  uint64_t lag;
  static constexpr std::string_view kind = "redis.stream_group_value";
  static constexpr auto layout() {
    using Self = StreamGroupValue;
    return record(field<BigEndian<8>>("consumers", &Self::consumers),
                  field<BigEndian<8>>("pending", &Self::pending),
                  field<BigEndian<8>>("last_ms", &Self::last_ms),
                  field<BigEndian<8>>("last_seq", &Self::last_seq),
                  field<SignedBigEndian>("entries_read", &Self::entries_read),
                  field<BigEndian<8>>("lag", &Self::lag));
  }
};

// | group, 48 bytes | furthest ms u64 | furthest seq u64 |: ours, of a group that was set back, or
// that has claimed ahead, or was restored so: what is behind its last id may be pending, up to
// that one.
struct StreamGroupAheadValue {
  StreamGroupValue group;
  uint64_t furthest_ms;
  uint64_t furthest_seq;
  static constexpr std::string_view kind = "redis.stream_group_ahead_value";
  static constexpr auto layout() {
    using Self = StreamGroupAheadValue;
    return record(nested(&Self::group), field<BigEndian<8>>("furthest_ms", &Self::furthest_ms),
                  field<BigEndian<8>>("furthest_seq", &Self::furthest_seq));
  }
};

// | pending u64 | last attempt ms u64 | last success ms u64 |
struct StreamConsumerValue {
  uint64_t pending;
  uint64_t last_attempt_ms;
  uint64_t last_success_ms;
  static constexpr std::string_view kind = "redis.stream_consumer_value";
  static constexpr auto layout() {
    using Self = StreamConsumerValue;
    return record(field<BigEndian<8>>("pending", &Self::pending),
                  field<BigEndian<8>>("last_attempt", &Self::last_attempt_ms),
                  field<BigEndian<8>>("last_success", &Self::last_success_ms));
  }
};

// | delivered ms u64 | deliveries u64 | consumer length u64 | consumer |
struct StreamPendingValue {
  uint64_t delivered_ms;
  uint64_t deliveries;
  ByteView consumer;
  static constexpr std::string_view kind = "redis.stream_pending_value";
  static constexpr auto layout() {
    using Self = StreamPendingValue;
    return record(field<BigEndian<8>>("delivered", &Self::delivered_ms),
                  field<BigEndian<8>>("deliveries", &Self::deliveries),
                  field<LengthPrefixed<8>>("consumer", &Self::consumer));
  }
};

}  // namespace trellis
