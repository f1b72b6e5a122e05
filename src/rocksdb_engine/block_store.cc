#include "rocksdb_engine/block_store.h"

#include <fmt/format.h>
#include <rocksdb/convenience.h>

#include "base/assert.h"
#include "base/limits.h"
#include "codec/fs_keys.h"
#include "rocksdb_engine/batched_read.h"
#include "rocksdb_engine/merge_operators.h"
#include "rocksdb_engine/rocksdb_status.h"
#include "rocksdb_engine/slice_pin.h"
#include "rocksdb_engine/write_unsynced.h"

namespace trellis {

namespace {

// Few blocks are deleted one by one: a range tombstone costs every later read near it.
constexpr uint64_t point_deletes_max = 16;

// What a thread keeps of the keys that it has read at once.
constexpr size_t keys_kept_bytes = size_t{32} << 10;

void append_key(Bytes& out, const BlockId& id) {
  append(out, FsBlockKey{id.keyspace, id.data, id.index});
}

Bytes key_of(const BlockId& id) {
  // Behind the last keyspace there are no keys of that form.
  if (id.keyspace.value > keyspace_id_max) return prefix_end("x");
  return encode(FsBlockKey{id.keyspace, id.data, id.index});
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

Status RocksdbBlockStore::read_stored(std::span<const BlockId> blocks, std::span<Value> values) {
  ASSERT(blocks.size() == values.size());
  const ReadSampler::Sample sample(sampler_);
  static thread_local Bytes encoded;  // one behind the other; all are of one size
  encoded.clear();
  if (encoded.capacity() > keys_kept_bytes) encoded.shrink_to_fit();
  for (const BlockId& id : blocks) {
    TRY(check_block_keyspace(id.keyspace));
    append_key(encoded, id);
  }
  BatchedRead& batch = BatchedRead::of_this_thread();
  batch.keys().clear();
  for (size_t i = 0; i < blocks.size(); i++) {
    const size_t size = encoded.size() / blocks.size();
    batch.keys().push_back(to_slice(ByteView(encoded).substr(i * size, size)));
  }
  return batch.search(db_, family_, values);
}

Status RocksdbBlockStore::read(std::span<const BlockId> blocks, std::span<Value> values) {
  TRY(read_stored(blocks, values));
  for (size_t i = 0; i < blocks.size(); i++) {
    if (Status status = unwrap(blocks[i], values[i]); !status.has_value()) {
      for (Value& value : values) value.set_absent();
      return status;
    }
  }
  return {};
}

// What is in the memtable, which gives copies, is read block by block, so that there is one of them
// at a time, in the processor's caches; from the first on that is not, all together: it takes fewer
// searches, and they wait for the disk at the same time.
Status RocksdbBlockStore::read_each(std::span<const BlockId> blocks, BlockVisitor visit) {
  TRY_ASSIGN(const size_t shown, read_of_memtable(blocks, visit));
  const std::span<const BlockId> rest = blocks.subspan(shown);
  if (rest.empty()) return {};
  std::vector<Value> values(rest.size());
  TRY(read_stored(rest, values));
  for (size_t i = 0; i < rest.size(); i++) {
    TRY(unwrap(rest[i], values[i]));
    visit(shown + i, values[i]);
  }
  return {};
}

Result<size_t> RocksdbBlockStore::read_of_memtable(std::span<const BlockId> blocks,
                                                   BlockVisitor visit) {
  const ReadSampler::Sample sample(sampler_);
  rocksdb::ReadOptions options;
  options.read_tier = rocksdb::kBlockCacheTier;
  Bytes key;
  Value value;
  for (size_t i = 0; i < blocks.size(); i++) {
    TRY(check_block_keyspace(blocks[i].keyspace));
    key.clear();
    append_key(key, blocks[i]);
    SlicePin& pin = value.pin<SlicePin>();
    pin.slice.Reset();
    pin.skip = 0;
    const rocksdb::Status status = db_.Get(options, &family_, to_slice(key), &pin.slice);
    // Of a table that is not open RocksDB says that all is well, and gives nothing.
    if (status.IsIncomplete() || (status.ok() && pin.size() == 0)) return i;
    if (!status.ok() && !status.IsNotFound()) return read_error(status);
    if (status.ok())
      value.set_found({pin.data(), pin.size()});
    else
      value.set_absent();
    const bool is_of_table = pin.slice.IsPinned();
    TRY(unwrap(blocks[i], value));
    visit(i, value);
    if (is_of_table) return i + 1;
  }
  return blocks.size();
}

Status RocksdbBlockStore::write(std::span<const BlockWrite> writes) {
  for (const BlockWrite& write : writes) TRY(check_block_write(write));
  TRY(room_.check());
  rocksdb::WriteBatch batch;
  Bytes key;
  for (const BlockWrite& write : writes) {
    key.clear();
    append_key(key, write.block);
    const rocksdb::Slice key_part = to_slice(key);
    if (write.offset.has_value()) {
      const auto header = patch_header(*write.offset, write.bytes);
      const rocksdb::Slice parts[] = {{header.data(), header.size()}, to_slice(write.bytes)};
      batch.Merge(&family_, {&key_part, 1}, {parts, 2});
    } else {
      const auto header = block_header(write.bytes);
      const rocksdb::Slice parts[] = {{header.data(), header.size()}, to_slice(write.bytes)};
      batch.Put(&family_, {&key_part, 1}, {parts, 2});
    }
    if (batch.GetDataSize() >= commit_bytes_max) TRY(write_batch(batch));
  }
  return write_batch(batch);
}

Status RocksdbBlockStore::remove(KeyspaceId keyspace, DataId data, uint64_t first, uint64_t end) {
  TRY(check_block_keyspace(keyspace));
  if (first >= end) return {};
  rocksdb::WriteBatch batch;
  if (end - first <= point_deletes_max) {
    Bytes key;
    for (uint64_t index = first; index != end; index++) {
      key.clear();
      append_key(key, {keyspace, data, index});
      batch.Delete(&family_, to_slice(key));
    }
  } else {
    batch.DeleteRange(&family_, to_slice(encode(FsBlockKey{keyspace, data, first})),
                      to_slice(encode(FsBlockKey{keyspace, data, end})));
  }
  return write_batch(batch);
}

Result<BlockPage> RocksdbBlockStore::list(const BlockId& first, const BlockId& end,
                                          size_t blocks_max) {
  ASSERT(blocks_max > 0);
  TRY(check_block_keyspace(first.keyspace));
  BlockPage page;
  if (first >= end) return page;
  const Bytes end_key = key_of(end);
  const rocksdb::Slice upper_bound = to_slice(end_key);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper_bound;
  options.fill_cache = false;  // a list of a large file would push everything else out
  const std::unique_ptr<rocksdb::Iterator> at(db_.NewIterator(options, &family_));
  for (at->Seek(to_slice(key_of(first))); at->Valid(); at->Next()) {
    const auto key = decode<FsBlockKey>(to_view(at->key()));
    if (!key) {
      return Error{Code::corrupt, fmt::format("a block has the key {}: {}",
                                              to_hex(to_view(at->key())), key.error().message)};
    }
    const BlockId id{key->keyspace, key->data, key->block};
    if (page.blocks.size() == blocks_max) {
      page.resume = id;
      break;
    }
    const size_t stored_bytes = at->value().size();
    page.blocks.push_back({id, stored_bytes - std::min(stored_bytes, block_header_bytes)});
  }
  if (!at->status().ok()) return read_error(at->status());
  return page;
}

// All at once. Whole tables of them go without being read; that has no place in the order of
// writes: it is durable at once, and an older write of a block may show again in a table that was
// kept. So what was committed is made durable before it, and a range delete comes after it.
Result<bool> RocksdbBlockStore::remove_all(KeyspaceId keyspace, size_t) {
  TRY(check_block_keyspace(keyspace));
  const Bytes begin = key_of(blocks_begin(keyspace));
  const Bytes end = key_of(blocks_end(keyspace));
  const rocksdb::Slice first = to_slice(begin);
  const rocksdb::Slice last = to_slice(end);
  TRY(wal_.wait_durable(wal_.last_ticket()));
  const rocksdb::Status dropped =
      rocksdb::DeleteFilesInRange(&db_, &family_, &first, &last, /*include_end=*/false);
  if (!dropped.ok()) return write_error(dropped);
  rocksdb::WriteBatch batch;
  batch.DeleteRange(&family_, first, last);
  TRY(write_batch(batch));
  return true;
}

Status RocksdbBlockStore::write_batch(rocksdb::WriteBatch& batch) {
  TRY(wal_.check());
  TRY(room_.check_floor());
  const rocksdb::Status status = write_unsynced(db_, batch);
  batch.Clear();
  if (status.ok()) return {};
  return write_error(status);
}

}  // namespace trellis
