#include "rocksdb_engine/read_sampler.h"

namespace trellis {

constinit thread_local uint32_t ReadSampler::countdown = 1;

void ReadSampler::begin() {
  countdown = SampledReads::sampled_one_in;
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
  rocksdb::get_perf_context()->Reset();
}

void ReadSampler::end() {
  const rocksdb::PerfContext& seen = *rocksdb::get_perf_context();
  const auto add = [](std::atomic<uint64_t>& sum, uint64_t amount) {
    sum.fetch_add(amount, std::memory_order_relaxed);
  };
  add(reads_, 1);
  add(block_cache_hits_, seen.block_cache_hit_count);
  add(blocks_read_, seen.block_read_count);
  add(block_bytes_read_, seen.block_read_byte);
  add(filters_said_absent_, seen.bloom_sst_miss_count + seen.bloom_memtable_miss_count);
  add(tombstones_skipped_, seen.internal_delete_skipped_count);
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
}

SampledReads ReadSampler::figures() const {
  const auto get = [](const std::atomic<uint64_t>& sum) {
    return sum.load(std::memory_order_relaxed);
  };
  return {get(reads_),
          get(block_cache_hits_),
          get(blocks_read_),
          get(block_bytes_read_),
          get(filters_said_absent_),
          get(tombstones_skipped_)};
}

}  // namespace trellis
