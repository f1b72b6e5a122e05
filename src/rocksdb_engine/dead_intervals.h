// Intervals in which nobody sees anything, although tables may have entries there: compactions pass
// over those without reading them.
//
//   watch()   before it is known what is there; from then on all writes are told to revive()
//   revive()  what is there after all, and what is being written: cut out
//   bury()    when a durable range delete, newer than all that is there, hides what is left: from
//             then on compactions that begin pass over it. They have begun with all their tables,
//             so what they pass over was written before and is hidden, whatever is revived since.
//
// An entry that is passed over is gone from the level that had it, and the range delete hides older
// ones below. But of tables that a compaction jumps over RocksDB does not even see what their range
// deletes are, and leaves these out: so it jumps only where it takes the range delete along as a
// whole, from level 0, or where nothing is below, into the last level. Those between are read.
#pragma once

#include <rocksdb/compaction_filter.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "base/bytes.h"
#include "engine/write_set.h"

namespace trellis {

class DeadIntervals final : public rocksdb::CompactionFilterFactory {
 public:
  // By where they begin, with the end, exclusive.
  using Intervals = std::map<Bytes, Bytes, std::less<>>;

  explicit DeadIntervals(int levels) : levels_(levels) {}

  // REQUIRES: no write is under way; begin < end; no two overlap.
  void watch(ByteView begin, ByteView end);
  // Any thread; next to nothing while nothing is watched.
  void revive(const WriteSet& writes) {
    if (watching_.load(std::memory_order_relaxed)) revive_keys(writes);
  }
  void revive(ByteView begin, ByteView end);
  Intervals watched() const;
  void bury();

  // When it goes, nothing is watched any more.
  class Watch {
   public:
    explicit Watch(DeadIntervals& dead) : dead_(dead) {}
    ~Watch() { dead_.forget(); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    DeadIntervals& dead_;
  };

  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context& context) noexcept override;
  const char* Name() const override { return "trellis.dead_intervals"; }

 private:
  void forget();
  void revive_keys(const WriteSet& writes);
  void cut_out(ByteView begin, ByteView end);

  const int levels_;
  std::atomic<bool> watching_{false};
  mutable std::mutex mutex_;
  Intervals intervals_;
  bool buried_ = false;
};

}  // namespace trellis
