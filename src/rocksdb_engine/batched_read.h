// One RocksDB MultiGet, or walk where keys are numbered, into the pins of many Values. Either reads
// everything at one sequence number, so all keys are seen at one instant without a snapshot.
#pragma once

#include <rocksdb/db.h>

#include <span>
#include <vector>

#include "base/result.h"
#include "engine/value.h"

namespace trellis {

// A thread that once read more keys than this gives the memory back.
constexpr size_t batched_keys_kept = 1024;

// What MultiGet needs side by side, while Values keep their pins apart. Kept per thread, so that a
// read of many keys allocates only while it grows.
class BatchedRead {
 public:
  static BatchedRead& of_this_thread();

  // The caller fills keys() and then reads. Each value is found with what is stored, or absent.
  std::vector<rocksdb::Slice>& keys() { return keys_; }
  // At the snapshot, or now if there is none. REQUIRES: keys().size() == values.size()
  Status read(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family, std::span<Value> values,
              const rocksdb::Snapshot* snapshot = nullptr);
  // The same, now and without walking: for large values, which a walk copies, and of which it also
  // reads those that are hidden by newer ones.
  Status search(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family, std::span<Value> values);

 private:
  Status search_all(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family, std::span<Value> values);
  void give_memory_back();
  bool walk(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family, std::span<Value> values);

  rocksdb::ReadOptions options_;

  std::vector<rocksdb::Slice> keys_;
  std::vector<rocksdb::PinnableSlice> slices_;
  std::vector<rocksdb::Status> statuses_;
};

}  // namespace trellis
