#include "rocksdb_engine/gated_file_system.h"

#include <mutex>
#include <utility>

namespace trellis {

namespace {

using rocksdb::IOStatus;

class GatedLog final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  GatedLog(std::unique_ptr<rocksdb::FSWritableFile> file, WalGate& gate)
      : FSWritableFileOwnerWrapper(std::move(file)), gate_(gate) {}
  ~GatedLog() override {
    if (broken_) gate_.open_for_one();
  }

  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  rocksdb::IODebugContext* debug) override {
    return noted(target()->Append(data, options, debug));
  }
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  const rocksdb::DataVerificationInfo& verification,
                  rocksdb::IODebugContext* debug) override {
    return noted(target()->Append(data, options, verification, debug));
  }
  IOStatus Flush(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    return noted(target()->Flush(options, debug));
  }

 private:
  IOStatus noted(IOStatus status) {
    if (!status.ok() && !std::exchange(broken_, true)) gate_.close_for_one();
    return status;
  }

  WalGate& gate_;
  bool broken_ = false;  // one thread writes a log
};

class GatedFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  GatedFileSystem(std::shared_ptr<rocksdb::FileSystem> files, WalGate& gate,
                  const WriteFence& fence)
      : FileSystemWrapper(std::move(files)), gate_(gate), fence_(fence) {}
  const char* Name() const override { return "trellis.gated"; }

  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           rocksdb::IODebugContext* debug) override {
    if (fence_.is_shut()) return refused(name);
    IOStatus status = target()->NewWritableFile(name, options, file, debug);
    if (status.ok() && name.ends_with(".log")) {
      *file = std::make_unique<GatedLog>(std::move(*file), gate_);
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

  WalGate& gate_;
  const WriteFence& fence_;
};

}  // namespace

void WalGate::close_for_one() {
  const std::lock_guard lock(mutex_);
  broken_++;
}

void WalGate::open_for_one() {
  const std::lock_guard lock(mutex_);
  broken_--;
}

std::shared_ptr<rocksdb::FileSystem> make_gated_file_system(
    std::shared_ptr<rocksdb::FileSystem> files, WalGate& gate, const WriteFence& fence) {
  return std::make_shared<GatedFileSystem>(std::move(files), gate, fence);
}

}  // namespace trellis
