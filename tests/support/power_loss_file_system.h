// A file system in memory that loses power.
//
//   PowerLossFileSystem files;              // as a rocksdb::FileSystem
//   files.cut_power(random);                // every operation fails from now on
//   files.restore_power();                  // what a disk may hold then; old handles stay dead
//
// What survives a cut: data that was synced, and names whose folder was synced. Of the rest, any
// pages of 4 KiB, each on its own, so that later ones may be there without earlier ones, which then
// read as zeros; the last one torn at any byte. Of creations, renames and deletions that were not
// synced a prefix in their order, as journaling file systems keep them.
//
// Any thread may make any call.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"

namespace trellis {

class PowerLossFileSystem final : public rocksdb::FileSystem {
 public:
  using IOStatus = rocksdb::IOStatus;
  using IOOptions = rocksdb::IOOptions;
  using FileOptions = rocksdb::FileOptions;
  using IODebugContext = rocksdb::IODebugContext;

  void cut_power(Random& random);
  void restore_power();

  // Bytes in all files; a write that does not fit writes what does and fails with NoSpace.
  void set_capacity(std::optional<uint64_t> bytes);
  // Run before each write and each sync of a file, outside of any lock; may change what is written,
  // wait, or fail the call. Set them while no other thread uses the file system.
  using WriteHook = std::function<IOStatus(const std::string& path, std::string& data)>;
  using SyncHook = std::function<IOStatus(const std::string& path)>;
  void set_write_hook(WriteHook hook) { write_hook_ = std::move(hook); }
  void set_sync_hook(SyncHook hook) { sync_hook_ = std::move(hook); }
  // The same before each read of a table.
  using ReadHook = std::function<void()>;
  void set_read_hook(ReadHook hook) { read_hook_ = std::move(hook); }

  // For tests that damage files; paths of files below a folder, sorted. Content is synced content.
  std::vector<std::string> files(const std::string& folder) const;
  std::string read_file(const std::string& path) const;
  void replace_file(const std::string& path, std::string content);
  void remove_file(const std::string& path);
  uint64_t file_syncs() const;

  // rocksdb::FileSystem
  const char* Name() const override { return "trellis.power_loss"; }
  IOStatus NewSequentialFile(const std::string&, const FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>*, IODebugContext*) override;
  IOStatus NewRandomAccessFile(const std::string&, const FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>*,
                               IODebugContext*) override;
  IOStatus NewWritableFile(const std::string&, const FileOptions&,
                           std::unique_ptr<rocksdb::FSWritableFile>*, IODebugContext*) override;
  IOStatus NewDirectory(const std::string&, const IOOptions&,
                        std::unique_ptr<rocksdb::FSDirectory>*, IODebugContext*) override;
  IOStatus FileExists(const std::string&, const IOOptions&, IODebugContext*) override;
  IOStatus GetChildren(const std::string&, const IOOptions&, std::vector<std::string>*,
                       IODebugContext*) override;
  IOStatus DeleteFile(const std::string&, const IOOptions&, IODebugContext*) override;
  IOStatus CreateDir(const std::string&, const IOOptions&, IODebugContext*) override;
  IOStatus CreateDirIfMissing(const std::string&, const IOOptions&, IODebugContext*) override;
  IOStatus DeleteDir(const std::string&, const IOOptions&, IODebugContext*) override;
  IOStatus GetFileSize(const std::string&, const IOOptions&, uint64_t*, IODebugContext*) override;
  IOStatus GetFileModificationTime(const std::string&, const IOOptions&, uint64_t*,
                                   IODebugContext*) override;
  IOStatus RenameFile(const std::string&, const std::string&, const IOOptions&,
                      IODebugContext*) override;
  IOStatus LockFile(const std::string&, const IOOptions&, rocksdb::FileLock**,
                    IODebugContext*) override;
  IOStatus UnlockFile(rocksdb::FileLock*, const IOOptions&, IODebugContext*) override;
  IOStatus GetTestDirectory(const IOOptions&, std::string*, IODebugContext*) override;
  IOStatus GetAbsolutePath(const std::string&, const IOOptions&, std::string*,
                           IODebugContext*) override;
  IOStatus GetFreeSpace(const std::string&, const IOOptions&, uint64_t*, IODebugContext*) override;
  IOStatus IsDirectory(const std::string&, const IOOptions&, bool*, IODebugContext*) override;

 private:
  friend class PowerLossSequentialFile;
  friend class PowerLossRandomAccessFile;
  friend class PowerLossWritableFile;
  friend class PowerLossDirectory;

  // Files only grow, so what is synced is a prefix.
  struct Node {
    bool folder = false;
    std::string data;
    size_t synced_bytes = 0;
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;
  struct Change {
    enum class Kind { make, remove, rename };
    Kind kind;
    std::string path;
    std::string target;          // rename only
    std::shared_ptr<Node> node;  // make only
    bool in(const std::string& folder) const;
  };
  struct Lock;

  // All below REQUIRE mutex_.
  IOStatus check_power() const;
  IOStatus check_handle(uint64_t generation) const;
  IOStatus make(const std::string& path, bool folder);
  IOStatus remove(const std::string& path, bool folder);
  std::shared_ptr<Node> find_file(const std::string& path) const;
  void change(Change change);
  static void apply(const Change& change, Names& names);
  static std::shared_ptr<Node> survivor(const Node& node, Random& random);
  uint64_t used_bytes() const;

  // Of open files.
  IOStatus append(const std::string& path, Node& node, uint64_t generation, std::string data);
  IOStatus sync(const std::string& path, Node& node, uint64_t generation);
  IOStatus read(const Node& node, uint64_t generation, uint64_t offset, size_t size,
                rocksdb::Slice* result, char* scratch) const;
  IOStatus sync_folder(const std::string& path, uint64_t generation);

  WriteHook write_hook_;
  SyncHook sync_hook_;
  ReadHook read_hook_;

  mutable std::mutex mutex_;
  bool powered_ = true;
  uint64_t generation_ = 0;  // restored powers so far; handles of an earlier one are dead
  Names live_;
  Names durable_;
  std::vector<Change> unsynced_;  // what durable_ lacks, in order
  std::set<std::string> locked_;
  std::optional<uint64_t> capacity_;
  uint64_t file_syncs_ = 0;
};

}  // namespace trellis
