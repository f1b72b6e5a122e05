#include "rocksdb_engine/tree_memtable.h"

#include <rocksdb/slice.h>

#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "rocksdb_engine/entry_tree.h"

namespace trellis {
namespace {

// An iterator is made for every get. Its memory is kept per thread: so it costs no allocation, and
// there is a place for those that RocksDB wants in an arena, whose class it keeps to itself, and
// destroys without giving the memory back. No more is kept than were in use at one time.
class IteratorMemory {
 public:
  ~IteratorMemory() {
    for (void* memory : free_) ::operator delete(memory);
  }
  void* take(size_t bytes) {
    if (free_.empty()) return ::operator new(bytes);
    void* const memory = free_.back();
    free_.pop_back();
    return memory;
  }
  void give(void* memory) { free_.push_back(memory); }
  static IteratorMemory& of_this_thread() {
    static thread_local IteratorMemory memory;
    return memory;
  }

 private:
  std::vector<void*> free_;
};

}  // namespace

class TreeMemTable final : public rocksdb::MemTableRep {
 public:
  using Newest = TreeMemTableFactory::Newest;

  TreeMemTable(rocksdb::Allocator* allocator, std::shared_ptr<ReadEpochs> epochs,
               size_t filter_bytes, std::shared_ptr<Newest::Place> newest)
      : MemTableRep(allocator),
        epochs_(std::move(epochs)),
        newest_(std::move(newest)),
        tree_(
            [this](size_t bytes) {
              char* memory = nullptr;
              MemTableRep::Allocate(bytes, &memory);
              return memory;
            },
            epochs_.get(), filter_bytes) {
    const std::unique_lock lock(newest_->mutex);
    newest_->memtable = this;
  }
  ~TreeMemTable() override {
    const std::unique_lock lock(newest_->mutex);  // also if it is not: somebody may still hold it
    if (newest_->memtable == this) newest_->memtable = nullptr;
  }

  void expect(std::span<const ByteView> user_keys) const { tree_.look_up(user_keys, places()); }
  static EntryTree::Places& places() {
    static thread_local EntryTree::Places places;
    return places;
  }

  rocksdb::KeyHandle Allocate(size_t bytes, char** entry) override {
    *entry = tree_.allocate_entry(bytes);
    return *entry;
  }
  void Insert(rocksdb::KeyHandle handle) override {
    tree_.insert(static_cast<const char*>(handle), &places());
  }
  bool Contains(const char* key) const override { return tree_.contains(EntryKey::of_entry(key)); }
  size_t ApproximateMemoryUsage() override { return 0; }  // all of it is the allocator's
  rocksdb::MemTableRep::Iterator* GetIterator(rocksdb::Arena* arena) override {
    return new TreeIterator(tree_, arena != nullptr);
  }
  // What a LookupKey is only RocksDB knows, so the get is its own: it takes an iterator from here
  // and does not give it back.
  void Get(const rocksdb::LookupKey& key, void* argument,
           bool (*visit)(void*, const char*)) override {
    MemTableRep::Get(key, argument, visit);
    delete lent_;
  }
  rocksdb::MemTableRep::Iterator* GetDynamicPrefixIterator(rocksdb::Arena* arena) override {
    auto* const iterator = new TreeIterator(tree_, arena != nullptr);
    if (arena == nullptr) lent_ = iterator;
    return iterator;
  }

 private:
  class TreeIterator final : public rocksdb::MemTableRep::Iterator {
   public:
    TreeIterator(const EntryTree& tree, bool in_arena) : position_(tree), in_arena_(in_arena) {}
    ~TreeIterator() override {
      if (lent_ == this) lent_ = nullptr;
      if (in_arena_) IteratorMemory::of_this_thread().give(this);
    }
    static void* operator new(size_t bytes) { return IteratorMemory::of_this_thread().take(bytes); }
    static void operator delete(void* memory) { IteratorMemory::of_this_thread().give(memory); }

    bool Valid() const override { return position_.valid(); }
    const char* key() const override { return position_.entry(); }
    void Next() override { position_.next(); }
    void Prev() override { position_.previous(); }
    void Seek(const rocksdb::Slice& internal_key, const char* memtable_key) override {
      const EntryKey key = wanted(internal_key, memtable_key);
      // One that is lent looks for that user key only, once.
      if (lent_ == this && !position_.tree().may_have(key.user)) return;
      position_.to_lower_bound(key);
    }
    void SeekForPrev(const rocksdb::Slice& internal_key, const char* memtable_key) override {
      position_.to_last_not_after(wanted(internal_key, memtable_key));
    }
    void SeekToFirst() override { position_.to_first(); }
    void SeekToLast() override { position_.to_last(); }

   private:
    static EntryKey wanted(const rocksdb::Slice& internal_key, const char* memtable_key) {
      if (memtable_key != nullptr) return EntryKey::of_entry(memtable_key);
      return EntryKey::of_internal_key({internal_key.data(), internal_key.size()});
    }

    EntryTree::Position position_;
    const bool in_arena_;
  };

  static thread_local TreeIterator* lent_;  // to RocksDB's get
  const std::shared_ptr<ReadEpochs> epochs_;
  const std::shared_ptr<Newest::Place> newest_;
  EntryTree tree_;
};

thread_local TreeMemTable::TreeIterator* TreeMemTable::lent_ = nullptr;

TreeMemTableFactory::TreeMemTableFactory(std::shared_ptr<ReadEpochs> epochs, size_t filter_bytes)
    : epochs_(std::move(epochs)),
      filter_bytes_(filter_bytes),
      newest_(std::make_shared<Newest::Place>()) {}
TreeMemTableFactory::~TreeMemTableFactory() = default;

rocksdb::MemTableRep* TreeMemTableFactory::CreateMemTableRep(
    const rocksdb::MemTableRep::KeyComparator&, rocksdb::Allocator* allocator,
    const rocksdb::SliceTransform*, rocksdb::Logger*) {
  return new TreeMemTable(allocator, epochs_, filter_bytes_, newest_);
}

TreeMemTableFactory::Newest::Newest(const TreeMemTableFactory& factory) : place_(*factory.newest_) {
  place_.mutex.lock_shared();
}
TreeMemTableFactory::Newest::~Newest() { place_.mutex.unlock_shared(); }

void TreeMemTableFactory::Newest::expect(std::span<const ByteView> user_keys) const {
  if (place_.memtable != nullptr) place_.memtable->expect(user_keys);
}
void TreeMemTableFactory::Newest::forget_expected() { TreeMemTable::places().clear(); }

}  // namespace trellis
