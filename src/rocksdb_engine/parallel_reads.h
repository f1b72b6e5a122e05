// Reads of many keys at once that wait for the disk: several wait at a time.
//
// RocksDB's MultiGet reads one block after the other. While blocks come from memory that is best; a
// caller whose keys come from the disk would use a fraction of what it can do. So reads are timed,
// and where they have been slow lately, the keys are dealt to threads. All of them read the map at
// one instant.
#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "engine/value.h"

namespace trellis {

class ParallelReads {
 public:
  // From memory a key takes a few thousand ns; to hand some over costs about as much.
  static constexpr uint64_t slow_ns_per_key = 20'000;

  ParallelReads(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                uint64_t slow_ns = slow_ns_per_key)
      : db_(db), family_(family), slow_ns_(slow_ns) {}
  ~ParallelReads();
  ParallelReads(const ParallelReads&) = delete;
  ParallelReads& operator=(const ParallelReads&) = delete;

  // As Engine::multi_get.
  Status read(std::span<const ByteView> keys, std::span<Value> values);

 private:
  Status read_part(std::span<const ByteView> keys, std::span<Value> values,
                   const rocksdb::Snapshot* snapshot);
  Status read_in_parts(std::span<const ByteView> keys, std::span<Value> values, size_t parts);
  size_t hand_over(size_t count, const std::function<void(size_t)>& run);
  void work();

  rocksdb::DB& db_;
  rocksdb::ColumnFamilyHandle& family_;
  const uint64_t slow_ns_;
  std::atomic<uint64_t> ns_per_key_{0};  // of the last reads, on average

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ends_ = false;
  std::vector<std::thread> threads_;  // none before they are needed
};

}  // namespace trellis
