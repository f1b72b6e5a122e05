#include "rocksdb_engine/batched_read.h"

#include "base/assert.h"
#include "rocksdb_engine/rocksdb_status.h"
#include "rocksdb_engine/slice_pin.h"

namespace trellis {

BatchedRead& BatchedRead::of_this_thread() {
  static thread_local BatchedRead read;
  return read;
}

Status BatchedRead::read(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                         std::span<Value> values) {
  Status status = read_all(db, family, values);
  if (keys_.capacity() > batched_keys_kept) *this = BatchedRead();
  return status;
}

Status BatchedRead::read_all(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                             std::span<Value> values) {
  const size_t count = keys_.size();
  ASSERT(count == values.size());
  if (count == 0) return {};
  if (slices_.size() < count) {
    slices_ = std::vector<rocksdb::PinnableSlice>(count);
    statuses_ = std::vector<rocksdb::Status>(count);
  }
  static const rocksdb::ReadOptions options;
  db.MultiGet(options, &family, count, keys_.data(), slices_.data(), statuses_.data(),
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

}  // namespace trellis
