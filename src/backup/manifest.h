// What a backup is: when and of what it was made, and its chunks.
//
//   'TRLBKUP' format | SHA-256 of the message | message (backup.proto)
//
// Format 2 has chunks of blocks, of which readers of format 1 do not know. Without such a chunk it
// is written as format 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backup/chunk.h"
#include "base/result.h"
#include "codec/keyspace_keys.h"
#include "tenant/keyspace.h"

namespace trellis {

struct Manifest {
  std::string id = {};
  uint64_t created_ms = 0;
  Bytes store = {};    // uuid of the store, 16 bytes
  bool whole = false;  // all of the store; else one keyspace
  std::vector<Keyspace> keyspaces = {};
  // Those of the map, then those of blocks, each in the order of their first keys (units.h).
  std::vector<ChunkFacts> chunks = {};
  uint64_t redis_versions_end = 0;
  uint64_t added_bytes = 0;
  std::vector<Bytes> unit_bounds = {};   // addresses, ascending (units.h)
  std::vector<Bytes> block_bounds = {};  // keys of blocks, ascending (block_walk.h)

  uint64_t entries() const;
  uint64_t bytes() const;
  // Absent: it has no such keyspace.
  const Keyspace* find(std::string_view name) const;
  bool operator==(const Manifest&) const = default;
};

// The order of chunks.
inline auto place_of(const ChunkFacts& chunk) {
  return std::pair<bool, ByteView>(chunk.of_blocks, chunk.first_key);
}

// From 1 to 64 of A-Z a-z 0-9 and -: a name of a file, and nothing else.
bool is_backup_id(std::string_view text);

Bytes encode_manifest(const Manifest& manifest);
// Code::corrupt: it is damaged, or no backup; unsupported: it is of a newer format.
Result<Manifest> decode_manifest(ByteView file);

// All keys of a keyspace that a backup has, in order.
std::vector<std::pair<Bytes, Bytes>> keyspace_intervals(KeyspaceId keyspace);
// Of the chunks, those with keys in one of the intervals.
std::vector<ChunkFacts> chunks_in(const std::vector<ChunkFacts>& chunks,
                                  const std::vector<std::pair<Bytes, Bytes>>& intervals);

}  // namespace trellis
