// The order of keys, walked on a store that is ordered by address (codec/address.h).
//
// Keys and addresses agree on their first five bytes, and everywhere but behind 'x' ks 'd' and
// 'x' ks 'f' on all of them. Behind those a group of pieces, in the order of keys, gives:
//
//   'x' ks 'd'   'm'  'n'  's'  't'  'z'                    one piece for each table
//   'x' ks 'f'   [,01)  1  2  3  [04,05)  5  [06,07)  7  [08,)   scopes of inodes, and what is
//   plain
//
// Within 'm', 'n' and each scope the order is that of addresses, with others in between that are
// skipped. So it is within 's', 't' and 'z' of one user key; of many user keys it is not (they are
// stored behind their length): then all of them are read and the first ones kept.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/function_ref.h"
#include "base/result.h"
#include "engine/engine.h"

namespace trellis {

struct StoredEntry {
  Bytes address;
  Bytes value;
  Bytes version;
};

// What one look at the store gives of an interval of addresses, in the order of the walk.
struct AddressChunk {
  std::vector<StoredEntry> entries;
  // Where it ended: [begin, covered) was read, reverse: [covered, end). Absent: all of it.
  std::optional<Bytes> covered;
};

// An empty end: to the end of the map. A chunk that is not complete covers something.
using ChunkReader =
    FunctionRef<Status(ByteView begin, ByteView end, bool reverse, AddressChunk& chunk)>;
using StoredVisitor = FunctionRef<Visit(ByteView key, StoredEntry& entry)>;

struct StoredWalk {
  ByteView begin;
  ByteView end;  // exclusive; empty: to the end of the map
  bool reverse = false;
  size_t kept_max;  // entries that are kept of what must be read whole
};

// Visits the keys of [begin, end) in their order. Returns where the walk ended early because more
// than kept_max had to be kept: the keys behind that one (reverse: before) were not visited.
Result<std::optional<Bytes>> walk_stored_order(const StoredWalk& walk, ChunkReader read,
                                               StoredVisitor visit);

}  // namespace trellis
