// The value of a Redis metadata key: what the key is, when it dies, which life it is in.
//
//   | flags u8 | expire E |                                      every type; E = 8 (v0: 4)
//     string    | payload to the end |
//     others    | version u64 | size S |                         S = 8 (v0: 4)
//               | record bytes u64 |                             ours, with bit 4 of the flags
//       list      | head u64 | tail u64 |
//       hash      | next u64 |                                 ours, with bit 6 of the flags
//       stream    | last generated | recorded first | max deleted | first | last: ms u64, seq u64
//                 | entries added u64 | groups u64 |             groups may be missing when read
//
// flags: bit 7 = encoding version 1 (64-bit fields), bits that are ours: bit 6 = fields of
// a hash expire (redis/field_expiry.h), bit 5 = it has fences (redis/fences.h), bit 4 = the bytes
// of its records are known; low nibble = type. expire is absolute, 0 is never: milliseconds, in
// version 0 seconds. Version 1 is written, both are read.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

enum class RedisType : uint8_t {  // on disk: never renumber
  string = 1,
  hash = 2,
  list = 3,
  set = 4,
  zset = 5,
  bitmap = 6,
  sortedint = 7,
  stream = 8,
};

std::string_view to_string(RedisType type);
// Those whose members have an order of their own, in which they are counted.
bool may_have_fences(RedisType type);
// Those whose records are all written and removed by who has the key's record open, too.
bool may_know_bytes(RedisType type);

struct StreamId {
  uint64_t ms = 0;
  uint64_t seq = 0;
  auto operator<=>(const StreamId&) const = default;
};

struct RedisMetadata {
  RedisType type = RedisType::string;
  uint8_t encoding = 1;  // 0 or 1
  uint64_t expire_ms = 0;
  ByteView payload;  // string only

  uint64_t version = 0;  // all but string
  uint64_t size = 0;
  // Of all records of this life, keys and values; absent: it began before they were added up.
  std::optional<uint64_t> record_bytes;
  bool has_fences = false;
  uint64_t next_field_ms = 0;  // hash only: no field expires before; 0: none does

  uint64_t head = 0;  // list only
  uint64_t tail = 0;

  struct Stream {  // stream only
    StreamId last_generated;
    StreamId recorded_first;
    StreamId max_deleted;
    StreamId first;
    StreamId last;
    uint64_t entries_added = 0;
    uint64_t groups = 0;
    auto operator<=>(const Stream&) const = default;
  } stream;

  bool operator==(const RedisMetadata&) const = default;
};

// REQUIRES: encoding 0 or 1; with 0, size and the expiry's seconds fit 32 bits (ASSERTed).
void append_redis_metadata(Bytes& out, const RedisMetadata& metadata);
// The payload points into `in`.
Result<RedisMetadata> decode_redis_metadata(ByteView in);

}  // namespace trellis
