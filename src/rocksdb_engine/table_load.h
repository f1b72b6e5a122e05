// Many new entries as tables of their own, beside the log and the memtable (engine.h, Load):
// docs/decisions/0011-loads.md.
//
// A thread writes load-NUMBER-I.part, in the store's folder, while its user makes more. What is
// being committed has a note in the map, durable, StoreLoadKey: the commit that makes it count
// takes it back; a store that opens with one removes what it names.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/shared_mutex.h"
#include "engine/engine.h"
#include "rocksdb_engine/dead_intervals.h"
#include "rocksdb_engine/read_epochs.h"

namespace trellis {

// Where it goes. All of it outlives a load.
struct LoadPlace {
  Engine& store;
  rocksdb::DB& db;
  rocksdb::ColumnFamilyHandle& family;
  ReadEpochs& epochs;
  DeadIntervals& dead;
  // Held shared from taking over tables to the commit that makes them count. Who copies the store
  // holds it alone: the copy has both or neither.
  SharedMutex& taking_over;
};

class TableLoad final : public Load {
 public:
  // REQUIRES: no other load of this store has this number.
  TableLoad(const LoadPlace& place, uint64_t number);
  ~TableLoad() override;
  TableLoad(const TableLoad&) = delete;
  TableLoad& operator=(const TableLoad&) = delete;

  void put(WriteSet puts) override;
  Status commit(Commit with) override;

 private:
  void run();
  Status write(const WriteSet& puts);
  Status begin_table();
  Status finish_table();
  // When nothing more is to come.
  Status finish();
  Status commit_noted(Commit with);
  Status take_over();
  rocksdb::Status ingest();
  Status commit_through_log();
  // What was begun is taken back, as the next start would.
  void undo();

  const LoadPlace place_;
  const uint64_t number_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WriteSet> waiting_;
  bool is_all_ = false;
  Status written_;  // what became of the tables

  // Of the thread; after it, of finish().
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::SstFileWriter> table_;
  std::vector<std::string> paths_;
  uint64_t table_bytes_ = 0;  // keys and values
  uint64_t all_bytes_ = 0;
  Bytes first_, last_;

  std::thread thread_;
};

// What a crash left of loads, when a store opens.
Status undo_loads(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family);

}  // namespace trellis
