// The file system as RocksDB sees it, with two things of our own.
//
// The fence: once shut, no file can be created, renamed or deleted.
//
// The log files: RocksDB writes them, but we sync them. DB::SyncWAL would do, were it not that
// RocksDB takes a sync of a log that failed a moment ago for a mistake of its caller: the library
// as Debian builds it, with assertions, then ends the process, and no caller can know in time. To
// sync what RocksDB has written needs nothing from RocksDB: it has no part of a published commit
// in its own buffers, and closes a log only when the tables have all that was in it.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace trellis {

class WriteFence {
 public:
  void shut() { shut_ = true; }
  bool is_shut() const { return shut_; }

 private:
  std::atomic<bool> shut_{false};
};

// Any thread may make any call.
class LogFiles {
 public:
  explicit LogFiles(std::string folder) : folder_(std::move(folder)) {}

  // Makes durable what was written to the logs before the call, and that the files are there.
  rocksdb::IOStatus sync();
  size_t count();  // of those that are open
  // Why a write to the newest log failed, if one did. RocksDB must not be made to write to it
  // again, which ends the process as a sync would. When it resumes it goes on with a new log,
  // unless the memtables were empty.
  enum class Trouble : uint8_t { none, disk_full, disk_failed };
  Trouble trouble() const { return trouble_; }

  // For the file system.
  struct File {
    std::mutex mutex;                           // between syncing and closing
    rocksdb::FSWritableFile* target = nullptr;  // null: closed
    std::atomic<bool> dirty{false};
  };
  bool is_log(const std::string& path) const;  // and not one that a checkpoint copies
  std::shared_ptr<File> opened(rocksdb::FileSystem& files, rocksdb::FSWritableFile& target);
  void closed(const std::shared_ptr<File>& file);
  void wrote(File& file, const rocksdb::IOStatus& status);

 private:
  rocksdb::IOStatus sync_folder();

  const std::string folder_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<File>> open_;
  std::atomic<Trouble> trouble_{Trouble::none};
  rocksdb::FileSystem* unsynced_ = nullptr;  // set if a log was created since the last sync
};

// REQUIRES: both outlive the file system and all its files.
std::shared_ptr<rocksdb::FileSystem> make_store_file_system(
    const std::shared_ptr<rocksdb::FileSystem>& files, LogFiles& logs, const WriteFence& fence);

}  // namespace trellis
