// RocksDB with the options of our engine, which does what a trace says and knows nothing of files.
#pragma once

#include <rocksdb/db.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "traced_engine.h"

namespace trellis {

class RawPeer {
 public:
  RawPeer(const std::filesystem::path& path, const Clock& clock, size_t cache_bytes);
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void run(const Trace& trace);
  void compact();

 private:
  void run(const EngineCall& call);
  void get(const EngineCall& call);
  void read_block(const EngineCall& call);
  void scan(const EngineCall& call);
  void write(const EngineCall& call, rocksdb::ColumnFamilyHandle* family);

  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;  // the map, blocks
  std::vector<char> buffer_;                            // of who reads blocks
  size_t buffer_at_ = 0;
};

}  // namespace trellis
