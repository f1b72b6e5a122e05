// Files on every engine, seen from one process or from two, and what must be left of them when all
// are removed: nothing.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fs/files.h"
#include "fs/files_backend.h"

namespace trellis {

enum class FilesEngine : uint8_t { memory, two_servers, faulty, rocksdb, cluster };
std::string name_of(FilesEngine engine);
inline constexpr FilesEngine all_files_engines[] = {FilesEngine::memory, FilesEngine::two_servers,
                                                    FilesEngine::faulty, FilesEngine::rocksdb,
                                                    FilesEngine::cluster};

class FilesWorld {
 public:
  FilesWorld(FilesEngine engine, uint64_t seed);
  ~FilesWorld();

  // As the servers have it, in turn.
  Files& files() { return *servers_[turn_++ % servers_.size()].files; }
  FileSystem& fs() { return *servers_[0].fs; }
  FakeClock& clock() { return clock_; }
  FilesBackend& backend() { return *backend_; }
  bool is_faulty() const { return engine_ == FilesEngine::faulty; }

  // Removes all, empties the trash, ends sessions and collects: then there is nothing but the
  // root. REQUIRES: faults are off, and no reader or writer is left.
  void expect_nothing_is_left();

 private:
  struct Server {
    std::unique_ptr<Transactor> transactor;
    std::shared_ptr<FileSystem> fs;
    std::unique_ptr<Files> files;
  };
  void collect_all();

  const FilesEngine engine_;
  FakeClock clock_{1'700'000'000'000};
  std::unique_ptr<FilesBackend> backend_;
  std::vector<Server> servers_;
  std::atomic<size_t> turn_ = 0;
};

}  // namespace trellis
