// For tests: one file system on any engine, seen from one process or from two, which crash.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "conformance/engine_fixture.h"
#include "fs/file_system.h"
#include "fs/fs_model.h"
#include "map/map_handle.h"

namespace trellis {

// Memory, faulty, RocksDB, clusters; each way that it can be used.
std::vector<WayOfEngine> fs_setups();

class FsWorld {
 public:
  static constexpr KeyspaceId id{7};

  FsWorld(const WayOfEngine& way, uint64_t seed);
  ~FsWorld() { close(); }

  FileSystem& fs(size_t server = 0) { return *servers_[server % servers_.size()].fs; }
  size_t servers() const { return servers_.size(); }
  Engine& engine() { return under_test_->engine(); }
  FaultyEngine* faulty() { return under_test_->faulty(); }
  FakeClock& clock() { return clock_; }
  const Caller& caller() const { return caller_; }

  void set_faults(bool on);
  // All processes end at once: what was answered is there afterwards.
  void crash(Random& random);
  void reopen();

  // All notes that are due, until there are none. REQUIRES: no faults.
  void collect_all();
  // fsck finds nothing but blocks that nobody maps, and counters equal a recount.
  void check(bool offline = true);
  // What of the tree below differs from the model, in words; empty: nothing.
  std::string difference(const FsModel& model, InodeId base = root_inode);
  // A file as it is now. REQUIRES: it is there.
  ModelFile read_file(uint64_t inode);

 private:
  struct Server {
    std::unique_ptr<Transactor> transactor;
    std::shared_ptr<FileSystem> fs;
  };
  void open();
  void close();
  std::string difference_of(const FsModel& model, uint64_t inode);
  std::string difference_of_directory(const FsModel& model, uint64_t inode);

  const WayOfEngine way_;
  uint64_t seed_;
  const Caller caller_{Role::write, "test"};
  FakeClock clock_{1'700'000'000'000};
  std::unique_ptr<EngineUnderTest> under_test_;
  std::vector<Server> servers_;
};

}  // namespace trellis
