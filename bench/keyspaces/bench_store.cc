#include "bench_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace trellis {

namespace {

constexpr size_t load_batch_operations = 1'000;
constexpr size_t noise_bytes = size_t{1} << 20;
constexpr size_t noise_step_bytes = 127;  // neighbours in a block do not overlap, nor compress

}  // namespace

BenchStore::BenchStore(size_t cache_bytes)
    : rocksdb_(must(open_rocksdb_engine(
          {.path = folder_.path() / "store", .clock = clock_, .cache_bytes = cache_bytes}))),
      engine_(*rocksdb_),
      transactor_(engine_, clock_),
      map_{engine_, transactor_, clock_},
      keyspaces_(must(Keyspaces::open(map_))),
      gc_(map_, keyspaces_->changes()),
      collector_(*keyspaces_, gc_) {
  collector_.own(Model::raw, raw_);
  keyspaces_->on_due([this] { collector_.wake(); });
}

std::shared_ptr<Tenant> BenchStore::make_tenant(const std::string& name, size_t keys,
                                                size_t value_bytes) {
  must(keyspaces_->create({.name = name, .id = {}, .config = {}, .request_id = {}}, bench_caller));
  auto tenant = must(keyspaces_->tenant(name));
  const Bytes noise = Random(keys).bytes(noise_bytes + value_bytes);
  for (size_t first = 0; first < keys; first += load_batch_operations) {
    const size_t count = std::min(load_batch_operations, keys - first);
    std::vector<std::string> names;
    for (size_t i = 0; i < count; i++) names.push_back(raw_key(first + i));
    std::vector<RawOperation> operations;
    for (size_t i = 0; i < count; i++) {
      const size_t at = (first + i) * noise_step_bytes % noise_bytes;
      operations.push_back({.key = names[i], .value = ByteView(noise).substr(at, value_bytes)});
    }
    must(raw_.batch(*tenant, bench_caller, operations));
  }
  return tenant;
}

// As people name keys; those that follow each other are stored side by side.
std::string raw_key(size_t index) { return fmt::format("user:{:010}", index); }

}  // namespace trellis
