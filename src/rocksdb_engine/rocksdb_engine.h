// The embedded engine: one directory, one process, RocksDB.
//
// Two column families: the map is in RocksDB's "default", file data in "blocks". Both share one
// write-ahead log, so a commit never outlives a crash without the blocks that were written before
// it. The bytes of values and the directory's files are in docs/decisions/0003-rocksdb-options.md.
//
// A Value that was read must be dropped before the engine is: it pins the engine's cache.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "codec/store_values.h"
#include "engine/engine.h"

namespace rocksdb {
class Env;
}

namespace trellis {

struct RocksdbOptions {
  std::filesystem::path path;
  const Clock& clock;
  // Blocks, indexes, filters and memtables of both column families, and what goes with them.
  size_t cache_bytes = size_t{256} << 20;
  unsigned background_threads = 0;  // compactions at a time; 0: by the number of cores
  bool create_if_missing = true;
  bool compacts = true;  // by itself; not worth it for a copy that is read once
  // From an everysec commit to the start of its sync, if none runs then. Leaves a part of the
  // second for that one and its own.
  std::chrono::microseconds everysec_period = std::chrono::milliseconds(800);
  // What is kept free of the disk (room_watch.h); 0: nothing. And how often that is looked at.
  uint64_t disk_reserve_bytes = 0;
  std::chrono::milliseconds room_period = std::chrono::seconds(1);
  rocksdb::Env* env = nullptr;  // null: the real file system. Must outlive the engine
};

// Counted on one read in `sampled_one_in` of each thread, because counting every read shows in it.
struct SampledReads {
  static constexpr uint32_t sampled_one_in = 256;
  uint64_t reads = 0;
  uint64_t block_cache_hits = 0;
  uint64_t blocks_read = 0;
  uint64_t block_bytes_read = 0;
  uint64_t filters_said_absent = 0;
  uint64_t tombstones_skipped = 0;
};

struct EngineFigures {
  SampledReads sampled;
  uint64_t keys_estimate = 0;
  uint64_t live_bytes = 0;
  uint64_t memtable_bytes = 0;
  uint64_t cache_used_bytes = 0;
  uint64_t compaction_pending_bytes = 0;
  bool writes_stopped = false;  // until a flush or a compaction is done
  uint64_t background_errors = 0;
  uint64_t wal_syncs = 0;
  uint64_t disk_free_bytes = 0;
  uint64_t disk_reserve_bytes = 0;
  bool adds_refused = false;  // less than the reserve is free
};

class RocksdbEngine : public Engine {
 public:
  virtual EngineFigures figures() const = 0;
  virtual const StoreIdentity& identity() const = 0;
  // Merges both column families down as far as they go; for tests and before a long quiet.
  virtual Status compact() = 0;
};

// Opens the store in options.path or makes one there. What it refuses it leaves as it was:
//   invalid      the path is a file or below one, or a folder with other things in it
//   denied       the folder cannot be written or made
//   not_found    nothing there, and create_if_missing is off
//   busy         in use, by another process or by this one
//   unsupported  written by a newer format or for another engine
//   no_space     the disk is too full to open
//   corrupt      files are damaged or missing
Result<std::unique_ptr<RocksdbEngine>> open_rocksdb_engine(const RocksdbOptions& options);

}  // namespace trellis
