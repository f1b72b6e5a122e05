// File data in the column family "blocks". Keys are those that the map has for blocks: FsBlockKey
// in codec/fs_keys.h.
#pragma once

#include <rocksdb/db.h>

#include "engine/engine.h"
#include "rocksdb_engine/read_sampler.h"
#include "rocksdb_engine/room_watch.h"
#include "rocksdb_engine/wal_sync.h"

namespace trellis {

class RocksdbBlockStore final : public BlockStore {
 public:
  RocksdbBlockStore(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family, ReadSampler& sampler,
                    WalSync& wal, const RoomWatch& room)
      : db_(db), family_(family), sampler_(sampler), wal_(wal), room_(room) {}

  Status read(std::span<const BlockId> blocks, std::span<Value> values) override;
  Status read_each(std::span<const BlockId> blocks, BlockVisitor visit) override;
  Status write(std::span<const BlockWrite> writes) override;
  Status remove(KeyspaceId keyspace, DataId data, uint64_t first, uint64_t end) override;
  Result<BlockPage> list(const BlockId& first, const BlockId& end, size_t blocks_max) override;
  Result<bool> remove_all(KeyspaceId keyspace, size_t blocks_max) override;

 private:
  // As they are stored.
  Status read_stored(std::span<const BlockId> blocks, std::span<Value> values);
  // How many of the first of them were shown: those of the memtable, and perhaps one more.
  Result<size_t> read_of_memtable(std::span<const BlockId> blocks, BlockVisitor visit);
  Status write_batch(rocksdb::WriteBatch& batch);

  rocksdb::DB& db_;
  rocksdb::ColumnFamilyHandle& family_;
  ReadSampler& sampler_;
  WalSync& wal_;
  const RoomWatch& room_;
};

}  // namespace trellis
