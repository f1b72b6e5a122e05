// RocksDB's options; docs/decisions/0003-rocksdb-options.md says why and what was measured.
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/options.h>

#include <memory>

#include "rocksdb_engine/dead_intervals.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "rocksdb_engine/tree_memtable.h"

namespace trellis {

constexpr const char* main_family_name = "default";  // RocksDB insists on having one of this name
constexpr const char* blocks_family_name = "blocks";

struct StoreOptions {
  rocksdb::DBOptions db;
  rocksdb::ColumnFamilyOptions main;
  rocksdb::ColumnFamilyOptions blocks;
  std::shared_ptr<rocksdb::Cache> cache;
  std::shared_ptr<ReadEpochs> main_epochs;
  std::shared_ptr<const TreeMemTableFactory> main_memtables;
  std::shared_ptr<DeadIntervals> main_dead;
};

StoreOptions make_store_options(const RocksdbOptions& options, rocksdb::Env& env);

}  // namespace trellis
