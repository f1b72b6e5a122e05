// Reads the log before RocksDB does, because RocksDB's point-in-time recovery has two gaps.
//
// A power cut may lose any page of the log that was not synced. RocksDB stops at a wrong checksum,
// but passes over a page of zeros and goes on behind it: the store would hold later commits without
// earlier ones. So the check finds where the unbroken part of the log ends, and the filter keeps
// RocksDB from replaying more.
//
// And RocksDB cannot tell a log that was never synced from one that rotted afterwards: it would
// drop acknowledged commits without a word. So the engine notes in the log how far it is synced
// (a record that only the log has), and the check refuses a log that is broken before such a place.
#pragma once

#include <rocksdb/wal_filter.h>

#include <cstdint>
#include <map>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "rocksdb_engine/store_file_system.h"

namespace rocksdb {
class Env;
}

namespace trellis {

// For WriteBatch::PutLogData: everything up to this sequence number is durable.
Bytes encode_sync_note(uint64_t durable);

// Of each log file that is not unbroken from its start to its end: what it has from this sequence
// number on must not be replayed.
using WalLimits = std::map<uint64_t, uint64_t>;

// Of the log files from number `first` on, which are those that RocksDB would replay. Code::corrupt
// with the file's name and place if synced commits are lost.
Result<WalLimits> check_wals(rocksdb::Env& env, const std::string& path, uint64_t first);

// RocksDB tells a filter where it would begin just before it does, and nobody earlier. If the check
// fails, the fence keeps RocksDB from changing a file, so that opening fails and leaves all as it
// was.
class WalPrefixFilter final : public rocksdb::WalFilter {
 public:
  WalPrefixFilter(rocksdb::Env& env, std::string path, WriteFence& fence)
      : env_(env), path_(std::move(path)), fence_(fence) {}
  void ColumnFamilyLogNumberMap(const std::map<uint32_t, uint64_t>& first_logs,
                                const std::map<std::string, uint32_t>& ids) override;
  WalProcessingOption LogRecordFound(unsigned long long log_number, const std::string& file_name,
                                     const rocksdb::WriteBatch& batch,
                                     rocksdb::WriteBatch* new_batch, bool* changed) override;
  const char* Name() const override { return "trellis.wal_prefix"; }

  // What the check said.
  const Status& verdict() const { return verdict_; }

 private:
  rocksdb::Env& env_;
  const std::string path_;
  WriteFence& fence_;
  Status verdict_;
  WalLimits limits_;
};

}  // namespace trellis
