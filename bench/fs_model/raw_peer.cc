#include "raw_peer.h"

#include <cstring>

#include "measure.h"
#include "rocksdb_engine/store_options.h"
#include "store_pair.h"

namespace trellis {

RawPeer::RawPeer(const std::filesystem::path& path, const Clock& clock, size_t cache_bytes)
    : buffer_(size_t{1} << 20) {
  const StoreOptions store = make_store_options(
      {.path = path, .clock = clock, .cache_bytes = cache_bytes}, *rocksdb::Env::Default());
  std::filesystem::create_directory(path);  // RocksDB makes it too, but with a warning
  rocksdb::DB* db = nullptr;
  must(rocksdb::DB::Open(store.db, path.string(),
                         {{main_family_name, store.main}, {blocks_family_name, store.blocks}},
                         &families_, &db));
  db_.reset(db);
}

RawPeer::~RawPeer() {
  for (rocksdb::ColumnFamilyHandle* family : families_)
    db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
}

void RawPeer::run(const Trace& trace) {
  for (const EngineCall& call : trace) run(call);
}

void RawPeer::compact() {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  for (rocksdb::ColumnFamilyHandle* family : families_)
    must(db_->CompactRange(options, family, nullptr, nullptr));
}

void RawPeer::run(const EngineCall& call) {
  switch (call.kind) {
    case EngineCall::Kind::get: return get(call);
    case EngineCall::Kind::read_block: return read_block(call);
    case EngineCall::Kind::scan: return scan(call);
    case EngineCall::Kind::commit: return write(call, families_[0]);
    case EngineCall::Kind::write_blocks: return write(call, families_[1]);
  }
}

void RawPeer::get(const EngineCall& call) {
  rocksdb::PinnableSlice value;
  const rocksdb::Status status = db_->Get({}, families_[0], slice(call.key), &value);
  if (!status.IsNotFound()) must(status);
  keep(value.data());
}

// Into the buffer of who asked, one behind the other, as content is.
void RawPeer::read_block(const EngineCall& call) {
  rocksdb::PinnableSlice value;
  must(db_->Get({}, families_[1], slice(call.key), &value));
  if (buffer_.size() - buffer_at_ < value.size()) buffer_at_ = 0;
  std::memcpy(buffer_.data() + buffer_at_, value.data(), value.size());
  keep(buffer_.data());
  buffer_at_ += value.size();
}

void RawPeer::scan(const EngineCall& call) {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options, families_[0]));
  if (call.reverse)
    at->SeekForPrev(slice(call.end));
  else
    at->Seek(slice(call.key));
  for (size_t i = 0; i < call.entries_max && at->Valid(); i++) {
    keep(at->value().data());
    if (call.reverse)
      at->Prev();
    else
      at->Next();
  }
}

// A patch is put as a small block of its own here: to fold it is our operator's, not RocksDB's.
void RawPeer::write(const EngineCall& call, rocksdb::ColumnFamilyHandle* family) {
  rocksdb::WriteBatch batch;
  for (const EngineCall::Write& write : call.writes) {
    switch (write.op) {
      case WriteOp::put: must(batch.Put(family, slice(write.key), slice(write.value))); break;
      case WriteOp::remove: must(batch.Delete(family, slice(write.key))); break;
      case WriteOp::remove_range:
        must(batch.DeleteRange(family, slice(write.key), slice(write.value)));
        break;
      case WriteOp::add: must(batch.Put(family, slice(write.key), slice(write.value))); break;
    }
  }
  must(db_->Write({}, &batch));
}

}  // namespace trellis
