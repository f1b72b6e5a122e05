// Raw data on every engine: several tenants, seen from one process or from two, and what must hold
// of their stored data whenever nobody writes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/faulty_engine.h"
#include "map/map_handle.h"
#include "map/transact.h"
#include "raw/raw.h"
#include "tenant/tenant.h"

namespace trellis {

enum class EngineUse : uint8_t { memory, two_servers, faulty, faulty_two_servers, rocksdb };

struct RawSetup {
  EngineUse use;
  Way way;
};
std::string name_of(const RawSetup& setup);
std::vector<RawSetup> raw_setups();

struct ModelEntry {
  Bytes value;
  uint64_t expires_at_ms = 0;
  bool visible(uint64_t now_ms) const { return expires_at_ms == 0 || now_ms < expires_at_ms; }
  bool operator==(const ModelEntry&) const = default;
};
// What is stored, by the user's key; what has expired and was not collected included.
using Contents = std::map<Bytes, ModelEntry, std::less<>>;

// One engine with one or two handles on it.
class RawBackend {
 public:
  virtual ~RawBackend() = default;
  virtual std::vector<Engine*> handles() = 0;
  // The same map, never faulty.
  virtual Engine& truth() = 0;
  virtual void set_faults(bool /*on*/) {}
  virtual uint64_t faults() { return 0; }  // that were injected
};

class RawWorld {
 public:
  static constexpr size_t keyspaces = 3;

  RawWorld(const RawSetup& setup, uint64_t seed);

  // As server number `server` has it.
  Tenant& tenant(size_t server, size_t keyspace) {
    return *servers_[server % servers_.size()].tenants[keyspace];
  }
  size_t servers() const { return servers_.size(); }
  const RawSetup& setup() const { return setup_; }
  RawBackend& backend() { return *backend_; }
  FakeClock& clock() { return clock_; }
  Raw& raw() { return raw_; }
  const Caller& caller() const { return caller_; }

  Contents stored(size_t keyspace, ByteView prefix = {});
  // The notes of a keyspace: due time and key.
  std::vector<std::pair<uint64_t, Bytes>> notes(size_t keyspace);

  // Of every keyspace: there is one note per entry with a ttl and no other, and the figures are
  // those of what is stored. `in_memory`: those that the tenants keep, too.
  // REQUIRES: nobody writes, and faults are off.
  void check_invariants(bool in_memory);
  // One note; whether it is gone.
  Result<bool> collect(Tenant& tenant, uint64_t due_ms, ByteView target) {
    const Garbage note{.due_ms = due_ms, .target = Bytes(target)};
    TRY_ASSIGN(const size_t gone, raw_.collect(tenant, {&note, 1}));
    return gone == 1;
  }
  // Everything that is noted now, in one transaction; how many notes are left.
  Result<size_t> collect_together(Tenant& tenant, size_t keyspace);
  // Collects all notes until there are none that are due. REQUIRES: as above.
  void collect_all();

 private:
  struct Server {
    std::unique_ptr<Transactor> transactor;
    std::vector<std::unique_ptr<Tenant>> tenants;
  };

  const RawSetup setup_;
  const Caller caller_{Role::write, "test"};
  FakeClock clock_{1'700'000'000'000};
  std::unique_ptr<RawBackend> backend_;
  std::vector<Server> servers_;
  Raw raw_;
};

}  // namespace trellis
