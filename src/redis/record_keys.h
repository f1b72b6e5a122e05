// How the records of Redis's keys begin, and what the collector's notes about them say.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/strong_id.h"
#include "codec/redis_metadata.h"

namespace trellis {

inline constexpr size_t redis_table_offset = 5;  // behind 'x', the keyspace and 'd'

Bytes redis_metadata_key(KeyspaceId keyspace, uint16_t slot, ByteView name);

// The same for many, one after the other: what those of a slot begin with is made once.
class MetadataKeys {
 public:
  explicit MetadataKeys(KeyspaceId keyspace) : keyspace_(keyspace) {}
  // Valid until the next.
  ByteView of(uint16_t slot, ByteView name);

 private:
  const KeyspaceId keyspace_;
  uint16_t slot_ = 0;
  size_t head_bytes_ = 0;  // 0: none is made yet
  Bytes key_;
};

// What all records of a slot in one of the tables of codec/redis_keys.h start with.
Bytes redis_slot_prefix(KeyspaceId keyspace, char table, uint16_t slot);
// What all records of a life in a table start with.
Bytes redis_life_prefix(KeyspaceId keyspace, char table, uint16_t slot, ByteView name,
                        uint64_t version);

// Both zeros are equal to Redis: as scores they are stored as one.
constexpr double without_sign_of_zero(double score) { return score == 0 ? 0.0 : score; }

// Where a member is in the order of a sorted set.
Bytes scored_place(double score, ByteView member);

// What a note of the collector is about. A slot is its length u8 and itself in decimal.
//   | 'c' | slot | key length u32 | key | version |  fences that are to be cut
//   | 'e' | slot | key |                             a key that expires
//   | 'f' | slot |                                   all that is in the slot of a flushed database
//   | 'h' | slot | key length u32 | key | version |  fields that expire
//   | 'l' | slot | key length u32 | key | version |  the records of a life that never began
//   | 'm' | slot | key length u32 | key | version |  as 's', and the bytes of the note are exact
//   | 's' | slot | key length u32 | key | version |  the records of a life that has ended
//   | 't' | as 's' | ms u64 | seq u64 |              entries of a stream up to that id
// In the order of letters those that are collected at once come first, as the collector needs it.
Bytes fences_target(uint16_t slot, ByteView name, uint64_t version);
Bytes fields_target(uint16_t slot, ByteView name, uint64_t version);
Bytes expiry_target(uint16_t slot, ByteView name);
Bytes flush_target(uint16_t slot);
Bytes staged_target(uint16_t slot, ByteView name, uint64_t version);
Bytes measured_target(uint16_t slot, ByteView name, uint64_t version);
Bytes life_target(uint16_t slot, ByteView name, uint64_t version);
Bytes trimmed_target(uint16_t slot, ByteView name, uint64_t version, StreamId last);
// A note's kind, in the order of their letters; from `measured` on they wait for the safe point.
struct RedisGarbage {
  enum class Kind : uint8_t { fences, expiry, flush, fields, staged, measured, life, trimmed } kind;
  uint16_t slot;
  ByteView name = {};
  uint64_t version = 0;
  StreamId last = {};  // of what was trimmed
};
std::optional<RedisGarbage> decode_redis_garbage(ByteView target);

}  // namespace trellis
