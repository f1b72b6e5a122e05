#include "rocksdb_engine/block_store.h"

#include <fmt/format.h>

#include <array>

#include "base/assert.h"
#include "base/limits.h"
#include "rocksdb_engine/batched_read.h"
#include "rocksdb_engine/merge_operators.h"
#include "rocksdb_engine/rocksdb_status.h"
#include "rocksdb_engine/slice_pin.h"
#include "rocksdb_engine/write_unsynced.h"

namespace trellis {

namespace {

// Few blocks are deleted one by one: a range tombstone costs every later read near it.
constexpr uint64_t point_deletes_max = 16;

using BlockKey = std::array<char, 22>;

rocksdb::Slice to_slice(const BlockKey& key) { return {key.data(), key.size()}; }

BlockKey encode_key(const BlockId& id) {
  BlockKey key;
  char* out = key.data();
  const auto append = [&out](uint64_t value, int width) {
    while (width-- > 0) *out++ = static_cast<char>(value >> (8 * width));
  };
  append('x', 1);
  append(id.keyspace.value, 3);
  append('f', 1);
  append(0x02, 1);
  append(id.data.value, 8);
  append(id.index, 8);
  return key;
}

Status check_keyspace(KeyspaceId keyspace) {
  if (keyspace.value <= keyspace_id_max) return {};
  return Error{Code::invalid, fmt::format("keyspace {} is over keyspace_id_max ({})",
                                          keyspace.value, keyspace_id_max)};
}

Status check_write(const BlockWrite& write) {
  TRY(check_keyspace(write.block.keyspace));
  const size_t end = size_t{write.offset.value_or(0)} + write.bytes.size();
  if (end <= block_bytes_max) return {};
  return Error{Code::too_large,
               fmt::format("block of {} bytes is over block_bytes_max ({})", end, block_bytes_max)};
}

std::string describe(const BlockId& id) {
  return fmt::format("block {} of data {} in keyspace {}", id.index, id.data.value,
                     id.keyspace.value);
}

// Turns what is stored into the block's own bytes.
Status unwrap(const BlockId& id, Value& value) {
  if (!value.found()) return {};
  const Result<ByteView> data = decode_block(value.bytes());
  if (!data.has_value()) {
    return Error{Code::corrupt, fmt::format("{}: {}; write the whole block again or restore from a "
                                            "backup",
                                            describe(id), data.error().message)};
  }
  SlicePin& pin = value.pin<SlicePin>();
  pin.skip = block_header_bytes;
  value.set_found(*data);
  return {};
}

}  // namespace

Status RocksdbBlockStore::read(std::span<const BlockId> blocks, std::span<Value> values) {
  ASSERT(blocks.size() == values.size());
  const ReadSampler::Sample sample(sampler_);
  static thread_local std::vector<BlockKey> encoded;
  encoded.clear();
  for (const BlockId& id : blocks) {
    TRY(check_keyspace(id.keyspace));
    encoded.push_back(encode_key(id));
  }
  BatchedRead& batch = BatchedRead::of_this_thread();
  batch.keys().clear();
  for (const BlockKey& key : encoded) batch.keys().push_back(to_slice(key));
  TRY(batch.read(db_, family_, values));
  for (size_t i = 0; i < blocks.size(); i++) {
    if (Status status = unwrap(blocks[i], values[i]); !status.has_value()) {
      for (Value& value : values) value.set_absent();
      return status;
    }
  }
  return {};
}

Status RocksdbBlockStore::write(std::span<const BlockWrite> writes) {
  for (const BlockWrite& write : writes) TRY(check_write(write));
  rocksdb::WriteBatch batch;
  for (const BlockWrite& write : writes) {
    const BlockKey key = encode_key(write.block);
    const rocksdb::Slice key_part = to_slice(key);
    if (write.offset.has_value()) {
      const auto header = patch_header(*write.offset, write.bytes);
      const rocksdb::Slice parts[] = {{header.data(), header.size()},
                                      trellis::to_slice(write.bytes)};
      batch.Merge(&family_, {&key_part, 1}, {parts, 2});
    } else {
      const auto header = block_header(write.bytes);
      const rocksdb::Slice parts[] = {{header.data(), header.size()},
                                      trellis::to_slice(write.bytes)};
      batch.Put(&family_, {&key_part, 1}, {parts, 2});
    }
    if (batch.GetDataSize() >= commit_bytes_max) TRY(write_batch(batch));
  }
  return write_batch(batch);
}

Status RocksdbBlockStore::remove(KeyspaceId keyspace, DataId data, uint64_t first, uint64_t end) {
  TRY(check_keyspace(keyspace));
  if (first >= end) return {};
  rocksdb::WriteBatch batch;
  if (end - first <= point_deletes_max) {
    for (uint64_t index = first; index != end; index++) {
      batch.Delete(&family_, to_slice(encode_key({keyspace, data, index})));
    }
  } else {
    batch.DeleteRange(&family_, to_slice(encode_key({keyspace, data, first})),
                      to_slice(encode_key({keyspace, data, end})));
  }
  return write_batch(batch);
}

Status RocksdbBlockStore::write_batch(rocksdb::WriteBatch& batch) {
  if (wal_.failed()) return wal_.failure(Code::unavailable);
  const rocksdb::Status status = write_unsynced(db_, batch);
  batch.Clear();
  if (status.ok()) return {};
  return write_error(status);
}

}  // namespace trellis
