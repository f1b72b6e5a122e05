// Chunks: runs of entries in the order of keys, named by what is in them.
//
//   plain   | key bytes u32 | value bytes u32 | key | value |  repeated
//   file    'TRLCHNK' 01 | 00 plain or 01 zstd | plain bytes u32 | payload
//
// A chunk ends where a hash of its last key says so. So the same entries make the same chunks
// whatever changed before them, and a chunk that is there already need not be written again.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/function_ref.h"
#include "base/limits.h"
#include "base/result.h"

namespace trellis {

constexpr size_t chunk_bytes_min = 256 * 1024;
constexpr size_t chunk_bytes_target = 1024 * 1024;
constexpr size_t chunk_bytes_max = 4 * 1024 * 1024;  // more only if its last entry is large
constexpr size_t chunk_entry_header_bytes = 8;
constexpr size_t chunk_plain_bytes_max =
    chunk_bytes_max + chunk_entry_header_bytes + key_bytes_max + value_bytes_max;
constexpr size_t chunk_digest_bytes = 32;

// What a backup says of a chunk.
struct ChunkFacts {
  Bytes digest = {};
  Bytes first_key = {};
  uint64_t entries = 0;
  uint64_t bytes = 0;
  bool of_blocks = false;  // of file data (block_walk.h); else of the map
  bool operator==(const ChunkFacts&) const = default;
};

struct EntryChunk {
  ChunkFacts facts;
  Bytes plain;
};

// Gathers entries, which come in the order of keys.
class ChunkCutter {
 public:
  // True: the chunk ends behind this entry, and is to be taken.
  bool add(ByteView key, ByteView value);
  bool empty() const { return plain_.empty(); }
  EntryChunk take();

 private:
  Bytes plain_;
  Bytes first_key_;
  uint64_t entries_ = 0;
};

Bytes encode_chunk_file(ByteView plain);
// The plain bytes, which have that digest. Code::corrupt says what is wrong; unsupported: it is of
// a newer format.
Result<Bytes> decode_chunk_file(ByteView file, ByteView digest);
// Likewise, whatever its digest.
Result<Bytes> unpack_chunk_file(ByteView file);

// Visits the entries. Code::corrupt if they are cut short, over a limit or not in order.
Status for_each_entry(ByteView plain, FunctionRef<Status(ByteView key, ByteView value)> visit);

}  // namespace trellis
