#include "store_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <span>
#include <system_error>

#include "base/function_ref.h"
#include "base/random.h"
#include "codec/keyspace_keys.h"
#include "measure.h"
#include "rocksdb_engine/store_options.h"

namespace trellis {

namespace {

constexpr size_t noise_bytes = size_t{1} << 20;
constexpr size_t load_batch_entries = 100;
// Gives write buffers of 64 MiB: no case fills one, so no flush falls into anybody's turn.
constexpr size_t cache_bytes = size_t{512} << 20;

Bytes data_key(size_t number) {
  const std::string name = fmt::format("item:{:011}", number);
  return encode(RawKey{bench_keyspace, name});
}

// All indexes in random order, the same every time.
void for_each_batch(const Dataset& data, FunctionRef<void(std::span<const size_t>)> load) {
  std::vector<size_t> order(data.entries());
  std::iota(order.begin(), order.end(), size_t{0});
  Random random(2);
  for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[random.below(i)]);
  for (size_t i = 0; i < order.size(); i += load_batch_entries)
    load(std::span(order).subspan(i, std::min(load_batch_entries, order.size() - i)));
}

// A few blocks of every size, so that what is allocated next lies elsewhere in every build.
std::vector<Bytes> scatter(size_t build) {
  Random random(build);
  std::vector<Bytes> blocks;
  for (size_t size = 32; size <= 64 * 1024; size += size / 4)
    for (size_t count = random.below(16); count > 0; count--) blocks.emplace_back(size, '\0');
  return blocks;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "trellis-bench-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr)
    give_up(fmt::format("make a folder {}: {}", path, std::strerror(errno)));
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // nobody is left to be told
  std::filesystem::remove_all(path_, ignored);
}

Dataset::Dataset(size_t entries, size_t value_bytes) : value_bytes_(value_bytes) {
  Random random(1);
  noise_ = random.bytes(noise_bytes);
  for (size_t i = 0; i < entries; i++) {
    keys_.push_back(data_key(2 * i));
    absent_keys_.push_back(data_key(2 * i + 1));
  }
  picks_.resize(size_t{1} << 18);
  for (size_t& pick : picks_) pick = random.below(entries);
}

StorePair::StorePair(const Dataset& data, size_t build) : scatter_(scatter(build)) {
  if (build % 2 == 0) make_ours(data);
  make_raw(data);
  if (build % 2 == 1) make_ours(data);
}

StorePair::~StorePair() {
  for (rocksdb::ColumnFamilyHandle* family : families_)
    raw_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
}

void StorePair::make_ours(const Dataset& data) {
  auto opened = open_rocksdb_engine(
      {.path = folder_.path() / "ours", .clock = clock_, .cache_bytes = cache_bytes});
  if (!opened.has_value()) give_up(to_string(opened.error()));
  ours_ = std::move(*opened);
  Commit batch;
  for_each_batch(data, [&](std::span<const size_t> indexes) {
    batch.writes.clear();
    for (const size_t index : indexes) batch.writes.put(data.key(index), data.value(index));
    must(commit(*ours_, batch));
  });
}

void StorePair::make_raw(const Dataset& data) {
  const std::filesystem::path path = folder_.path() / "raw";
  const StoreOptions store = make_store_options(
      {.path = path, .clock = clock_, .cache_bytes = cache_bytes}, *rocksdb::Env::Default());
  std::filesystem::create_directory(path);  // RocksDB makes it too, but with a warning
  rocksdb::DB* db = nullptr;
  must(rocksdb::DB::Open(store.db, path.string(),
                         {{main_family_name, store.main}, {blocks_family_name, store.blocks}},
                         &families_, &db));
  raw_.reset(db);
  rocksdb::WriteBatch batch;
  for_each_batch(data, [&](std::span<const size_t> indexes) {
    batch.Clear();
    for (const size_t index : indexes)
      must(batch.Put(families_[0], slice(data.key(index)), slice(data.value(index))));
    must(raw_->Write({}, &batch));
  });
}

void StorePair::settle(const Dataset& data) {
  must(ours_->compact());
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  must(raw_->CompactRange(options, families_[0], nullptr, nullptr));
  Value value;
  rocksdb::PinnableSlice slice_value;
  for (size_t i = 0; i < data.entries(); i++) {
    must(ours_->get(data.key(i), value));
    slice_value.Reset();
    must(raw_->Get({}, families_[0], slice(data.key(i)), &slice_value));
  }
}

void must(const rocksdb::Status& status) {
  if (!status.ok()) give_up("RocksDB: " + status.ToString());
}

}  // namespace trellis
