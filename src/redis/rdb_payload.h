// The payload of DUMP and RESTORE, as Redis has it: one value as in an RDB file.
//
//   | type u8 | value | RDB version u16le | CRC-64 of all before it u64le |
//
// Written are the plain encodings, which every Redis since 3.2 reads, with version 10; of streams
// what 7.0 reads (stream_payload.h). Read is
// also what Redis 7 packs: listpacks, quicklists of them, intsets, LZF; and what it packed
// since 2.6: ziplists. The bytes are a client's: anything gives a value or an error, in time and
// memory that are bounded.
#pragma once

#include <vector>

#include "redis/stream_payload.h"

namespace trellis {

struct RdbValue {
  struct Scored {
    Bytes member;
    double score;
  };
  RedisType type = RedisType::string;  // or list, set, hash, zset, stream
  // The text of a string; elements; members; fields and their values in turn.
  std::vector<Bytes> items = {};
  std::vector<Scored> scored = {};  // of a sorted set
  RdbStream stream = {};
};

// Adds the version and the checksum.
Bytes seal_rdb_payload(Bytes body);
Bytes write_rdb_payload(const RdbValue& value);
// The members and fields are different from each other, and a collection that is no stream has at
// least one.
Result<RdbValue> read_rdb_payload(ByteView payload);

}  // namespace trellis
