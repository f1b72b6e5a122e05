// A catalog on every engine, seen from one process or from two, and what its log says it holds.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "catalog/catalog.h"
#include "engine/faulty_engine.h"
#include "engine/memory_engine.h"
#include "map/transact.h"
#include "support/cluster_world.h"
#include "tenant/tenant.h"

namespace trellis {

enum class CatalogEngine : uint8_t { memory, rocksdb, cluster };
struct CatalogSetup {
  const char* name;
  Way way;
  bool two_servers;
  bool faulty;
  CatalogEngine engine = CatalogEngine::memory;
};
std::vector<CatalogSetup> catalog_setups();

// What lives in a metalake, by its names: what it is, and its version.
struct Living {
  CatalogRef ref;
  uint64_t version = 0;
  bool operator==(const Living&) const = default;
};
using LivingOnes = std::map<std::vector<std::string>, std::map<CatalogType, Living>>;
std::string to_string(const LivingOnes& all);

class CatalogWorld {
 public:
  static constexpr KeyspaceId keyspace{7};

  CatalogWorld(const CatalogSetup& setup, uint64_t seed);
  ~CatalogWorld();

  struct Server {
    std::shared_ptr<Engine> engine;
    std::unique_ptr<FaultyEngine> faulty;
    std::unique_ptr<Transactor> transactor;
    std::unique_ptr<Tenant> tenant;
    std::unique_ptr<Catalog> catalog;
  };
  Server& server(size_t i) { return servers_[i % servers_.size()]; }
  size_t servers() const { return servers_.size(); }
  // The same map, never faulty, seen by a process of its own.
  Server& truth() { return truth_; }
  static CatalogCall call(Server& server) {
    return {*server.tenant, {Role::write, "test"}, "test"};
  }
  FakeClock& clock() { return clock_; }
  void set_faults(bool on);
  uint64_t faults() const;

  // How many changes all logs hold, of dropped metalakes too.
  size_t logged_changes();
  // Everything that is noted; errors are those of faults.
  void collect(Server& server);
  void collect_all();

  // --- REQUIRES: nobody writes, and faults are off ---
  // Enables everything.
  LivingOnes living();
  // What the logs of all metalakes that live say. A failure if one makes no sense.
  LivingOnes logged();
  // check_catalog finds nothing, and what lives is what the logs say.
  void check();

 private:
  struct RocksdbStore;
  void open_engine(const CatalogSetup& setup, Server& server);
  Server open(const CatalogSetup& setup, uint64_t seed, bool faulty);
  std::vector<Garbage> notes();
  void add_living(const EntityPath& parent, CatalogType type, LivingOnes& all);

  FakeClock clock_{1'700'000'000'000};
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  std::unique_ptr<RocksdbStore> rocksdb_;
  std::unique_ptr<ClusterWorld> cluster_;
  uint64_t fault_seed_;
  std::vector<Server> servers_;
  Server truth_;
};

}  // namespace trellis
