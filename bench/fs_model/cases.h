// The cases of bench_fs-model.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "base/clock.h"
#include "fs/file_systems.h"
#include "map/map_handle.h"
#include "measure.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "store_pair.h"
#include "tenant/gc.h"
#include "tenant/keyspaces.h"
#include "traced_engine.h"

namespace trellis {

struct FsScale {
  Scale operations{.builds = 3, .rounds = 3, .turns = 10};
  uint64_t file_bytes = uint64_t{256} << 20;  // that is overwritten
  size_t tree_files_max = 1'000'000;
  size_t created_per_thread = 5'000;
};

template <class T>
T must(Result<T> result) {
  if (!result) give_up(to_string(result.error()));
  return std::move(*result);
}

inline const Caller bench_caller{Role::server_admin, "bench"};

// A store in a temporary folder with one file system.
class FsStore {
 public:
  explicit FsStore(size_t cache_bytes = size_t{512} << 20);

  const std::filesystem::path& path() const { return folder_.path(); }
  Clock& clock() { return clock_; }
  RocksdbEngine& rocksdb() { return *rocksdb_; }
  TracedEngine& engine() { return engine_; }
  FileSystem& fs() { return *fs_; }
  InodeId make_directory(InodeId parent, const std::string& name) {
    return must(fs_->make(bench_caller, parent, name, {.type = FileType::directory, .mode = 0755}))
        .inode;
  }

 private:
  TemporaryFolder folder_;
  SystemClock clock_;
  const std::unique_ptr<RocksdbEngine> rocksdb_;
  TracedEngine engine_;
  Transactor transactor_;
  const MapHandle map_;
  const std::unique_ptr<Keyspaces> keyspaces_;
  FileSystems systems_;
  std::shared_ptr<FileSystem> fs_;
};

// Single operations, beside RocksDB doing the same gets and puts.
void operation_cases(const FsScale& scale, Report& report);
// What a 4 KiB overwrite makes the disk write.
void amplification_case(const FsScale& scale, Report& report);
// du and removal of trees, listing, creates from several threads.
void tree_cases(const FsScale& scale, Report& report);
void thread_case(const FsScale& scale, Report& report);

}  // namespace trellis
