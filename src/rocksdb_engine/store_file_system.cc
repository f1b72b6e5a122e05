#include "rocksdb_engine/store_file_system.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/assert.h"

namespace trellis {

namespace {

using rocksdb::IOStatus;

class LogFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  LogFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<LogFiles::File> state,
          LogFiles& logs)
      : FSWritableFileOwnerWrapper(std::move(file)), state_(std::move(state)), logs_(logs) {}
  ~LogFile() override { logs_.closed(state_); }

  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  rocksdb::IODebugContext* debug) override {
    IOStatus status = target()->Append(data, options, debug);
    logs_.wrote(*state_, status);
    return status;
  }
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  const rocksdb::DataVerificationInfo& verification,
                  rocksdb::IODebugContext* debug) override {
    IOStatus status = target()->Append(data, options, verification, debug);
    logs_.wrote(*state_, status);
    return status;
  }
  IOStatus Close(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    logs_.closed(state_);
    return target()->Close(options, debug);
  }

 private:
  const std::shared_ptr<LogFiles::File> state_;
  LogFiles& logs_;
};

class StoreFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  StoreFileSystem(const std::shared_ptr<rocksdb::FileSystem>& files, LogFiles& logs,
                  const WriteFence& fence)
      : FileSystemWrapper(files), logs_(logs), fence_(fence) {}
  const char* Name() const override { return "trellis.store"; }

  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           rocksdb::IODebugContext* debug) override {
    if (fence_.is_shut()) return refused(name);
    IOStatus status = target()->NewWritableFile(name, options, file, debug);
    if (status.ok() && logs_.is_log(name)) {
      auto state = logs_.opened(*target(), **file);
      *file = std::make_unique<LogFile>(std::move(*file), std::move(state), logs_);
    }
    return status;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    if (fence_.is_shut()) return refused(from);
    return target()->RenameFile(from, to, options, debug);
  }
  IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                      rocksdb::IODebugContext* debug) override {
    if (fence_.is_shut()) return refused(name);
    return target()->DeleteFile(name, options, debug);
  }

 private:
  static IOStatus refused(const std::string& name) {
    return IOStatus::IOError(name, "the store is not to be changed");
  }

  LogFiles& logs_;
  const WriteFence& fence_;
};

}  // namespace

size_t LogFiles::count() {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

bool LogFiles::is_log(const std::string& path) const {
  return path.ends_with(".log") && std::filesystem::path(path).parent_path() == folder_;
}

std::shared_ptr<LogFiles::File> LogFiles::opened(rocksdb::FileSystem& files,
                                                 rocksdb::FSWritableFile& target) {
  ASSERT(target.IsSyncThreadSafe());  // it is synced while RocksDB writes
  auto file = std::make_shared<File>();
  file->target = &target;
  const std::lock_guard lock(mutex_);
  unsynced_ = &files;
  open_.push_back(file);
  trouble_ = Trouble::none;
  return file;
}

void LogFiles::wrote(File& file, const IOStatus& status) {
  file.dirty = true;
  if (status.ok()) return;
  const std::lock_guard lock(mutex_);
  if (!open_.empty() && open_.back().get() == &file)
    trouble_ = status.IsNoSpace() ? Trouble::disk_full : Trouble::disk_failed;
}

void LogFiles::closed(const std::shared_ptr<File>& file) {
  {
    const std::lock_guard lock(file->mutex);
    file->target = nullptr;
  }
  const std::lock_guard lock(mutex_);
  std::erase(open_, file);
}

IOStatus LogFiles::sync() {
  std::vector<std::shared_ptr<File>> open;
  {
    const std::lock_guard lock(mutex_);
    open = open_;
  }
  for (const std::shared_ptr<File>& file : open) {
    const std::lock_guard lock(file->mutex);
    if (file->target == nullptr || !file->dirty.exchange(false)) continue;
    IOStatus status = file->target->Sync(rocksdb::IOOptions(), nullptr);
    if (!status.ok()) return status;
  }
  return sync_folder();
}

IOStatus LogFiles::sync_folder() {
  rocksdb::FileSystem* files = nullptr;
  {
    const std::lock_guard lock(mutex_);
    files = std::exchange(unsynced_, nullptr);
  }
  if (files == nullptr) return IOStatus::OK();
  std::unique_ptr<rocksdb::FSDirectory> folder;
  IOStatus status = files->NewDirectory(folder_, rocksdb::IOOptions(), &folder, nullptr);
  if (status.ok()) status = folder->Fsync(rocksdb::IOOptions(), nullptr);
  return status;
}

std::shared_ptr<rocksdb::FileSystem> make_store_file_system(
    const std::shared_ptr<rocksdb::FileSystem>& files, LogFiles& logs, const WriteFence& fence) {
  return std::make_shared<StoreFileSystem>(files, logs, fence);
}

}  // namespace trellis
