#include "rocksdb_engine/batched_read.h"

#include <memory>

#include "base/assert.h"
#include "base/bytes.h"
#include "rocksdb_engine/rocksdb_status.h"
#include "rocksdb_engine/slice_pin.h"

namespace trellis {
namespace {

constexpr size_t run_keys_min = 8;  // for fewer an iterator costs more
constexpr size_t number_bytes = 8;

uint64_t number_of(const rocksdb::Slice& key) {
  return load_be(key.data() + key.size() - number_bytes, number_bytes);
}

// Whether each key is the one before it plus one, as the elements of a list are.
bool are_numbered_in_order(std::span<const rocksdb::Slice> keys) {
  if (keys.size() < run_keys_min || keys[0].size() < number_bytes) return false;
  const ByteView prefix = to_view(keys[0]).substr(0, keys[0].size() - number_bytes);
  const uint64_t first = number_of(keys[0]);
  if (first > UINT64_MAX - keys.size()) return false;  // behind the largest comes the smallest
  for (size_t i = 1; i < keys.size(); i++)
    if (keys[i].size() != keys[0].size() || number_of(keys[i]) != first + i ||
        !to_view(keys[i]).starts_with(prefix))
      return false;
  return true;
}

}  // namespace

BatchedRead& BatchedRead::of_this_thread() {
  static thread_local BatchedRead read;
  return read;
}

Status BatchedRead::read(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                         std::span<Value> values, const rocksdb::Snapshot* snapshot) {
  ASSERT(keys_.size() == values.size());
  options_.snapshot = snapshot;
  Status status;
  if (!are_numbered_in_order(keys_) || !walk(db, family, values))
    status = search_all(db, family, values);
  give_memory_back();
  return status;
}

Status BatchedRead::search(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                           std::span<Value> values) {
  options_.snapshot = nullptr;
  Status status = search_all(db, family, values);
  give_memory_back();
  return status;
}

void BatchedRead::give_memory_back() {
  if (keys_.capacity() > batched_keys_kept) *this = BatchedRead();
}

Status BatchedRead::search_all(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                               std::span<Value> values) {
  const size_t count = keys_.size();
  ASSERT(count == values.size());
  if (count == 0) return {};
  if (slices_.size() < count) {
    slices_ = std::vector<rocksdb::PinnableSlice>(count);
    statuses_ = std::vector<rocksdb::Status>(count);
  }
  db.MultiGet(options_, &family, count, keys_.data(), slices_.data(), statuses_.data(),
              /*sorted_input=*/false);
  const rocksdb::Status* failed = nullptr;
  for (size_t i = 0; i < count; i++) {
    SlicePin& pin = values[i].pin<SlicePin>();
    pin.skip = 0;
    if (statuses_[i].ok()) {
      pin.slice = std::move(slices_[i]);
      values[i].set_found({pin.data(), pin.size()});
    } else {
      pin.slice.Reset();
      values[i].set_absent();
      if (!statuses_[i].IsNotFound()) failed = &statuses_[i];
    }
    slices_[i].Reset();
  }
  if (failed == nullptr) return {};
  for (Value& value : values) value.set_absent();
  return read_error(*failed);
}

// A step of an iterator is several times cheaper than a search. False if there is too much between
// the keys, or something is wrong, of which a search tells more.
bool BatchedRead::walk(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                       std::span<Value> values) {
  const Bytes behind = successor(to_view(keys_.back()));
  const rocksdb::Slice end = to_slice(behind);
  rocksdb::ReadOptions options = options_;
  options.iterate_upper_bound = &end;
  options.total_order_seek = true;
  options.max_skippable_internal_keys = keys_.size();
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(options, &family));
  size_t next = 0;
  size_t strangers = 0;
  for (at->Seek(keys_.front()); at->Valid(); at->Next()) {
    while (next < keys_.size() && keys_[next].compare(at->key()) < 0) values[next++].set_absent();
    if (next == keys_.size() || keys_[next] != at->key()) {
      if (++strangers > keys_.size()) return false;
      continue;
    }
    SlicePin& pin = values[next].pin<SlicePin>();
    pin.skip = 0;
    pin.slice.Reset();
    pin.slice.PinSelf(at->value());
    values[next++].set_found({pin.data(), pin.size()});
  }
  while (next < keys_.size()) values[next++].set_absent();
  return at->status().ok();
}

}  // namespace trellis
