// What transactions of this process read last: records of Redis keys, and that there is none.
//
// A record is put in, and read, by a transaction that holds its latch, and every commit changes it
// before the latch goes: so what is in it is what is stored. Without latches (a shared engine)
// there is none. A record that was found here is pinned, not copied.
//
// Each shard is an open table whose slots are also the ring of a clock: a record that was not read
// between two passes of the hand makes room for others.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "engine/value.h"

namespace trellis {

class RecordCache {
 public:
  explicit RecordCache(size_t bytes_max);
  ~RecordCache();
  RecordCache(const RecordCache&) = delete;
  RecordCache& operator=(const RecordCache&) = delete;

  // Which keys it holds: of records that are read one by one. What is read in order is in
  // leaves (map/scan_leaves.h).
  static bool holds(ByteView key);
  // The record of a Redis key, not of something within one. REQUIRES: holds(key)
  static bool is_of_key(ByteView key);

  // Whether the key is known; then `value` says what is stored, which may be nothing.
  bool get(ByteView key, Value& value);
  // The same for many at once, whose waits for memory overlap. `known` has a place for each.
  void get_many(std::span<const ByteView> keys, std::span<Value> values, std::span<bool> known);
  // REQUIRES of all three: holds(key), and the caller has its latch (to put what it read, shared).
  void put_read(ByteView key, const Value& value);
  // Changes what is in it; what is not is put in while there is plenty of room, for it may be read
  // soon. Absent: the record was removed.
  void put_written(ByteView key, std::optional<ByteView> value);
  void forget(ByteView key);
  // Looks at everything: for removals of whole intervals, which are rare. An empty end: all behind.
  void forget_range(ByteView begin, ByteView end);

  struct Figures {
    uint64_t hits = 0;
    uint64_t misses = 0;
    size_t records = 0;
    size_t bytes = 0;
  };
  Figures figures() const;

 private:
  struct Record;
  struct Pin;
  class Shard;

  bool get(uint64_t hash, ByteView key, Value& value);
  void store(ByteView key, std::optional<ByteView> value, bool is_new_welcome);
  Shard& shard(uint64_t hash) const;

  static constexpr size_t shards = 64;
  std::unique_ptr<Shard[]> shards_;
};

}  // namespace trellis
