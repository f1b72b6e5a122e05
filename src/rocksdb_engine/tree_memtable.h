// RocksDB's memtable as an EntryTree (entry_tree.h).
//
// REQUIRES of the options: the bytewise comparator, and allow_concurrent_memtable_write = false.
#pragma once

#include <rocksdb/memtablerep.h>

#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/shared_mutex.h"

namespace trellis {

class TreeMemTable;

class TreeMemTableFactory final : public rocksdb::MemTableRepFactory {
 public:
  TreeMemTableFactory();
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
    // A hint: these keys are to be written soon.
    void prefetch(std::span<const ByteView> user_keys) const;

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
  const std::shared_ptr<Newest::Place> newest_;  // memtables may outlive the factory
};

}  // namespace trellis
