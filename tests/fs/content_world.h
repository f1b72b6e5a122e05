// One file system on an engine that may fail or crash, for tests of content.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "engine/faulty_engine.h"
#include "engine/memory_engine.h"
#include "fs/file_system.h"
#include "map/transact.h"

namespace trellis {

enum class ContentEngine : uint8_t { memory, faulty, crashing, rocksdb };

struct ContentSetup {
  ContentEngine engine;
  Way way;
};
std::string name_of(const ContentSetup& setup);
std::vector<ContentSetup> content_setups();

class ContentWorld {
 public:
  ContentWorld(const ContentSetup& setup, uint64_t seed);
  ~ContentWorld();

  FileSystem& fs() { return *fs_; }
  const Caller& caller() const { return caller_; }
  // The same map, never faulty.
  Engine& truth() { return *truth_; }
  KeyspaceId keyspace() const { return KeyspaceId{1}; }
  void set_faults(bool on);
  bool is_faulty() const { return setup_.engine == ContentEngine::faulty; }
  bool crashes() const { return setup_.engine == ContentEngine::crashing; }
  FaultCounts faults() const { return faulty_->counts(); }

  // What is not durable is lost, but for some of it; then all is opened anew.
  MemoryStore::CrashReport crash(Random& random);
  void make_durable();

  // All notes, until none is left. REQUIRES: no faults.
  void collect_all();
  // All that must hold of what is stored. REQUIRES: as above.
  void check();

 private:
  void open();

  struct RocksdbStore;
  const ContentSetup setup_;
  uint64_t seed_;
  const Caller caller_{Role::write, "test"};
  FakeClock clock_{1'700'000'000'000};
  std::shared_ptr<MemoryStore> store_;
  std::unique_ptr<RocksdbStore> rocksdb_;
  std::unique_ptr<MemoryEngine> memory_;
  Engine* truth_ = nullptr;
  std::unique_ptr<FaultyEngine> faulty_;
  std::unique_ptr<Transactor> transactor_;
  std::shared_ptr<FileSystem> fs_;
};

}  // namespace trellis
