// Counts what one read in SampledReads::sampled_one_in costs, with RocksDB's per-thread counters.
#pragma once

#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>

#include <atomic>
#include <cstdint>

#include "rocksdb_engine/rocksdb_engine.h"

namespace trellis {

class ReadSampler {
 public:
  // Lives as long as the read.
  class Sample {
   public:
    explicit Sample(ReadSampler& sampler) : sampler_(sampler), on_(--countdown == 0) {
      if (on_) sampler_.begin();
    }
    ~Sample() {
      if (on_) sampler_.end();
    }
    Sample(const Sample&) = delete;
    Sample& operator=(const Sample&) = delete;

   private:
    ReadSampler& sampler_;
    const bool on_;
  };

  SampledReads figures() const;

 private:
  // Starts at 1: RocksDB counts in new threads until it is told not to, so the first read is
  // sampled and then counting is switched off.
  static constinit thread_local uint32_t countdown;

  void begin();
  void end();

  std::atomic<uint64_t> reads_{0};
  std::atomic<uint64_t> block_cache_hits_{0};
  std::atomic<uint64_t> blocks_read_{0};
  std::atomic<uint64_t> block_bytes_read_{0};
  std::atomic<uint64_t> filters_said_absent_{0};
  std::atomic<uint64_t> tombstones_skipped_{0};
};

}  // namespace trellis
