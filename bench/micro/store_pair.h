// The same data twice: in our engine, and in RocksDB with the same options.
#pragma once

#include <rocksdb/db.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "rocksdb_engine/rocksdb_engine.h"

namespace trellis {

// A fresh folder that is gone with all that is in it when this is.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Raw keys of one tenant, in order; each absent key lies behind the present one of its index.
class Dataset {
 public:
  Dataset(size_t entries, size_t value_bytes);

  size_t entries() const { return keys_.size(); }
  ByteView key(size_t index) const { return keys_[index]; }
  ByteView absent_key(size_t index) const { return absent_keys_[index]; }
  // Does not compress.
  ByteView value(size_t index) const {
    return ByteView(noise_).substr(index * 61 % (noise_.size() - value_bytes_), value_bytes_);
  }
  // A random index: the same sequence for everybody who asks with the same numbers.
  size_t pick(size_t turn) const { return picks_[turn % picks_.size()]; }

 private:
  std::vector<Bytes> keys_;
  std::vector<Bytes> absent_keys_;
  std::vector<size_t> picks_;
  Bytes noise_;
  size_t value_bytes_;
};

inline constexpr KeyspaceId bench_keyspace{7};

class StorePair {
 public:
  // Loaded with the data in random order, which stays in the memtables. What lies where in memory
  // makes a difference of up to a tenth, and freed memory is used again: so every build scatters
  // what it allocates, and ours is made first in every other one.
  StorePair(const Dataset& data, size_t build);
  ~StorePair();
  StorePair(const StorePair&) = delete;
  StorePair& operator=(const StorePair&) = delete;

  // Moves the data into tables of the last level and these into the block caches.
  void settle(const Dataset& data);

  RocksdbEngine& ours() { return *ours_; }
  rocksdb::DB& raw() { return *raw_; }
  rocksdb::ColumnFamilyHandle* raw_family() { return families_[0]; }
  SystemClock& clock() { return clock_; }

 private:
  void make_ours(const Dataset& data);
  void make_raw(const Dataset& data);

  std::vector<Bytes> scatter_;
  TemporaryFolder folder_;
  SystemClock clock_;
  std::unique_ptr<RocksdbEngine> ours_;
  std::unique_ptr<rocksdb::DB> raw_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

inline rocksdb::Slice slice(ByteView bytes) { return {bytes.data(), bytes.size()}; }
void must(const rocksdb::Status& status);

}  // namespace trellis
