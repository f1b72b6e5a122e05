// Makes the log durable: one fsync for all who wait, and one a second for those who do not.
//
// A ticket is a RocksDB sequence number. RocksDB publishes a sequence only after its record is in
// the log file, so a sync covers everything that was published when it started, and a reader that
// asks for the latest ticket is never told less than it has read.
//
// Threads: every call from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/result.h"
#include "rocksdb_engine/store_file_system.h"

namespace rocksdb {
class DB;
}

namespace trellis {

class WalSync {
 public:
  WalSync(rocksdb::DB& db, LogFiles& logs, std::chrono::microseconds everysec_period);
  ~WalSync();
  WalSync(const WalSync&) = delete;
  WalSync& operator=(const WalSync&) = delete;

  uint64_t last_ticket() const;
  // Code::maybe if the log cannot be synced; then it never will be by this handle, because the
  // kernel may have dropped the pages that it failed to write.
  Status wait_durable(uint64_t ticket);
  // Syncs even if nothing that has a ticket needs it.
  Status sync();
  // Something has been written that is to be durable soon: its sync starts when the period is over,
  // or when the sync is done that runs then. So it takes at most the period and two syncs.
  void sync_soon();

  uint64_t durable() const { return durable_.load(std::memory_order_acquire); }
  uint64_t syncs() const { return syncs_.load(std::memory_order_relaxed); }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Before each write: whether the log takes one.
  Status check() const;
  // REQUIRES: failed()
  Error failure(Code code) const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr Time nobody = Time::min();

  void run();

  rocksdb::DB& db_;
  LogFiles& logs_;
  const std::chrono::microseconds period_;
  std::atomic<uint64_t> durable_{0};
  std::atomic<uint64_t> syncs_{0};
  std::atomic<bool> failed_{false};
  // When the first of those came that wait for the next period to end.
  std::atomic<Time> soon_since_{nobody};

  mutable std::mutex mutex_;
  std::condition_variable synced_;  // a sync ended
  std::condition_variable wake_;    // for the thread: sync_soon, or stop
  bool syncing_ = false;
  bool stop_ = false;
  std::string reason_;
  bool disk_full_ = false;
  std::thread thread_;
};

}  // namespace trellis
