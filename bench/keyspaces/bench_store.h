// A store in a temporary folder with all that a server has but HTTP.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "counting_engine.h"
#include "map/map_handle.h"
#include "measure.h"
#include "raw/raw.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "store_pair.h"
#include "tenant/collector.h"
#include "tenant/gc.h"
#include "tenant/keyspaces.h"

namespace trellis {

template <class T>
T must(Result<T> result) {
  if (!result) give_up(to_string(result.error()));
  return std::move(*result);
}

inline const Caller bench_caller{Role::server_admin, "bench"};

class BenchStore {
 public:
  explicit BenchStore(size_t cache_bytes = size_t{256} << 20);

  const std::filesystem::path& path() const { return folder_.path(); }
  Clock& clock() { return clock_; }
  RocksdbEngine& rocksdb() { return *rocksdb_; }
  CountingEngine& engine() { return engine_; }
  Keyspaces& keyspaces() { return *keyspaces_; }
  Collector& collector() { return collector_; }
  Raw& raw() { return raw_; }

  // A new keyspace with raw keys raw_key(0) to raw_key(keys - 1).
  std::shared_ptr<Tenant> make_tenant(const std::string& name, size_t keys, size_t value_bytes);

 private:
  TemporaryFolder folder_;
  SystemClock clock_;
  const std::unique_ptr<RocksdbEngine> rocksdb_;
  CountingEngine engine_;
  Transactor transactor_;
  const MapHandle map_;
  Raw raw_;
  const std::unique_ptr<Keyspaces> keyspaces_;
  Gc gc_;
  Collector collector_;
};

std::string raw_key(size_t index);

}  // namespace trellis
