#include "rocksdb_engine/store_options.h"

#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "rocksdb_engine/collection_prefix.h"
#include "rocksdb_engine/fragment_blocks.h"
#include "rocksdb_engine/merge_operators.h"
#include "rocksdb_engine/polite_compactions.h"
#include "rocksdb_engine/rocksdb_log.h"

namespace trellis {

namespace {

constexpr size_t mib = size_t{1} << 20;

int background_jobs(unsigned asked) {
  if (asked != 0) return static_cast<int>(asked);
  const unsigned cores = std::thread::hardware_concurrency();
  return cores <= 2 ? 1 : static_cast<int>(std::min(cores / 2, 8u));
}

// All tables stay open if the process may open that many files; RocksDB has no way to ask.
int open_files_max() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 512;
  if (limit.rlim_cur >= 65536) return -1;
  return static_cast<int>(std::max<rlim_t>(limit.rlim_cur / 2, 64));
}

rocksdb::ColumnFamilyOptions family_options(const std::shared_ptr<rocksdb::Cache>& cache,
                                            size_t write_buffer_bytes, size_t page_bytes) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.block_size = page_bytes;
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(10, /*bloom_before_level=*/1));
  // A table of small records has filters and indexes of several MiB. In one piece they do not even
  // fit into a shard of the cache, and every read would load them from the disk.
  table.partition_filters = true;
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.pin_top_level_index_and_filter = true;
  table.metadata_block_size = 16384;
  table.format_version = 5;
  table.flush_block_policy_factory = make_fragment_blocks();

  rocksdb::ColumnFamilyOptions family;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  family.compression = rocksdb::kLZ4Compression;
  family.level_compaction_dynamic_level_bytes = true;
  family.write_buffer_size = write_buffer_bytes;
  family.max_write_buffer_number = 3;
  // A compaction of level 0 rewrites much of what is below it, whatever it adds.
  family.level0_file_num_compaction_trigger = 8;
  family.max_bytes_for_level_base =
      static_cast<uint64_t>(family.level0_file_num_compaction_trigger) * write_buffer_bytes;
  family.memtable_whole_key_filtering = true;
  family.memtable_prefix_bloom_size_ratio = 0.02;
  return family;
}

}  // namespace

StoreOptions make_store_options(const RocksdbOptions& options, rocksdb::Env& env) {
  StoreOptions store;
  // The budget is for everything: memtables are charged to the cache as blocks, indexes and filters
  // are, and a sixth is left for what nobody charges, of which malloc's gaps are the most.
  store.cache = rocksdb::NewLRUCache(options.cache_bytes - options.cache_bytes / 6);
  store.db.write_buffer_manager = std::make_shared<rocksdb::WriteBufferManager>(0, store.cache);
  // What is written again while it is in a memtable never reaches the disk, and every table that a
  // flush makes is merged with all below it: large ones halve the work.
  const size_t write_buffer_bytes = std::clamp(options.cache_bytes / 5, mib, 256 * mib);

  store.main = family_options(store.cache, write_buffer_bytes, 4096);
  store.main_epochs = std::make_shared<ReadEpochs>();
  const auto main_memtables =
      std::make_shared<TreeMemTableFactory>(store.main_epochs, write_buffer_bytes / 64);
  store.main_memtables = main_memtables;
  store.main.memtable_factory = main_memtables;
  // Collections are RocksDB's to know, whole keys the memtable's own (key_filter.h).
  store.main.memtable_whole_key_filtering = false;
  store.main.memtable_prefix_bloom_size_ratio = 0.01;
  store.main.prefix_extractor = make_collection_prefix();
  store.main_dead = std::make_shared<DeadIntervals>(store.main.num_levels);
  store.main.compaction_filter_factory = store.main_dead;
  store.main.periodic_compaction_seconds = 0;  // with a filter it would be a month
  store.main.merge_operator = make_counter_operator();
  // So that reading a busy counter folds no more than that. Each add looks how many there are,
  // which with eight costs a quarter of what it does with 64.
  store.main.max_successive_merges = 8;

  store.blocks = family_options(store.cache, write_buffer_bytes, 16384);
  store.blocks.memtable_factory = std::make_shared<TreeMemTableFactory>();
  store.blocks.merge_operator = make_block_operator();
  store.blocks.max_successive_merges = 16;

  store.main.disable_auto_compactions = store.blocks.disable_auto_compactions = !options.compacts;

  store.db.env = &env;
  store.db.listeners.push_back(make_polite_compactions());
  store.db.allow_concurrent_memtable_write = false;  // tree_memtable.h
  store.db.flush_verify_memtable_count = false;      // the same
  store.db.create_if_missing = true;  // data_directory has made sure that nothing can be lost
  store.db.create_missing_column_families = true;
  store.db.max_background_jobs = background_jobs(options.background_threads);
  store.db.max_open_files = open_files_max();
  // A family that is rarely written would otherwise keep gigabytes of log to replay at a start.
  store.db.max_total_wal_size = std::min(4 * write_buffer_bytes, 512 * mib);
  store.db.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  store.db.bytes_per_sync = mib;
  store.db.info_log = make_rocksdb_logger();
  return store;
}

}  // namespace trellis
