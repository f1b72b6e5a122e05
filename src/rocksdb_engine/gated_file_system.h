// The file system as RocksDB sees it, with two ways to stop it.
//
// The fence: once shut, nothing can be created, renamed or deleted.
//
// The gate keeps a log that failed to be written from being synced.
// RocksDB takes a sync of such a log for a mistake of its caller: the library as Debian builds it,
// with assertions, ends the process. But the write fails in one thread while another waits for the
// disk, and only the file knows in time. So every log file is opened through this file system: a
// write that fails waits for the running sync and closes the gate, and RocksDB hears of it after
// that. The gate opens again when RocksDB is through with the file, as it is once a full disk has
// room again.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <shared_mutex>

namespace trellis {

class WriteFence {
 public:
  void shut() { shut_ = true; }
  bool is_shut() const { return shut_; }

 private:
  std::atomic<bool> shut_{false};
};

class WalGate {
 public:
  // Held while the log is synced. REQUIRES of the caller: no sync unless open().
  class Passage {
   public:
    explicit Passage(WalGate& gate) : lock_(gate.mutex_), open_(gate.broken_ == 0) {}
    bool open() const { return open_; }

   private:
    std::shared_lock<std::shared_mutex> lock_;
    bool open_;
  };

  void close_for_one();
  void open_for_one();

 private:
  std::shared_mutex mutex_;
  int broken_ = 0;  // log files that failed and are still open
};

// REQUIRES: both outlive the file system and all its files.
std::shared_ptr<rocksdb::FileSystem> make_gated_file_system(
    std::shared_ptr<rocksdb::FileSystem> files, WalGate& gate, const WriteFence& fence);

}  // namespace trellis
