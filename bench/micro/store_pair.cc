#include "store_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

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

StorePair::StorePair(const Dataset& data) {
  const RocksdbOptions ours{
      .path = folder_.path() / "ours", .clock = clock_, .cache_bytes = cache_bytes};
  auto opened = open_rocksdb_engine(ours);
  if (!opened.has_value()) give_up(to_string(opened.error()));
  ours_ = std::move(*opened);
  open_raw({.path = folder_.path() / "raw", .clock = clock_, .cache_bytes = cache_bytes});
  load(data);
}

StorePair::~StorePair() {
  for (rocksdb::ColumnFamilyHandle* family : families_)
    raw_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
}

void StorePair::open_raw(const RocksdbOptions& options) {
  const StoreOptions store = make_store_options(options, *rocksdb::Env::Default());
  std::filesystem::create_directory(options.path);  // RocksDB makes it too, but with a warning
  rocksdb::DB* db = nullptr;
  must(rocksdb::DB::Open(store.db, options.path.string(),
                         {{main_family_name, store.main}, {blocks_family_name, store.blocks}},
                         &families_, &db));
  raw_.reset(db);
}

void StorePair::load(const Dataset& data) {
  std::vector<size_t> order(data.entries());
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  Random random(2);
  for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[random.below(i)]);

  Commit ours;
  rocksdb::WriteBatch raw;
  for (size_t i = 0; i < order.size(); i++) {
    ours.writes.put(data.key(order[i]), data.value(order[i]));
    must(raw.Put(families_[0], slice(data.key(order[i])), slice(data.value(order[i]))));
    if (i + 1 < order.size() && ours.writes.count() < load_batch_entries) continue;
    must(commit(*ours_, ours));
    must(raw_->Write({}, &raw));
    ours.writes.clear();
    raw.Clear();
  }
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
