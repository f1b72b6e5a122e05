// RocksDB's memtable as an EntryTree (entry_tree.h).
//
// REQUIRES of the options: the bytewise comparator, allow_concurrent_memtable_write = false, and
// flush_verify_memtable_count = false, for what is hidden is not flushed.
#pragma once

#include <rocksdb/memtablerep.h>

#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/shared_mutex.h"
#include "rocksdb_engine/read_epochs.h"

namespace trellis {

class TreeMemTable;

class TreeMemTableFactory final : public rocksdb::MemTableRepFactory {
 public:
  // With `epochs` all who read the family are counted there, for as long as they have an iterator
  // or a snapshot, and all who write to it. `filter_bytes` of each memtable are for a filter of its
  // keys, which gets look at first.
  explicit TreeMemTableFactory(std::shared_ptr<ReadEpochs> epochs = nullptr,
                               size_t filter_bytes = 0);
  ~TreeMemTableFactory() override;
  using rocksdb::MemTableRepFactory::CreateMemTableRep;
  rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator&,
                                          rocksdb::Allocator* allocator,
                                          const rocksdb::SliceTransform*,
                                          rocksdb::Logger*) override;
  const char* Name() const override { return "TrellisTreeMemTable"; }

  // The memtable that was made last, which is the one that is written to. It stays while this is
  // held: briefly.
  class Newest {
   public:
    explicit Newest(const TreeMemTableFactory& factory);
    ~Newest();
    Newest(const Newest&) = delete;
    Newest& operator=(const Newest&) = delete;
    // A hint: this thread is to write these keys next, in this order. They stay until it is told to
    // forget them.
    void expect(std::span<const ByteView> user_keys) const;
    static void forget_expected();

   private:
    friend class TreeMemTableFactory;
    friend class TreeMemTable;
    struct Place {
      SharedMutex mutex;
      const TreeMemTable* memtable = nullptr;  // null: it is gone
    };
    Place& place_;
  };

 private:
  // Memtables may outlive the factory.
  const std::shared_ptr<ReadEpochs> epochs_;
  const size_t filter_bytes_;
  const std::shared_ptr<Newest::Place> newest_;
};

}  // namespace trellis
