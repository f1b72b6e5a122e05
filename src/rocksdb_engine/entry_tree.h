// The entries of a memtable in order: a tree of wide nodes, for one writer and any number of
// readers that wait for nobody.
//
//   entry    | older entry u64 | length of the internal key, varint32 | user key | trailer u64le |
//            | length of the value, varint32 | value |; pointers to it point behind `older entry`
//   order    user keys as bytes; of one user key, the higher trailer (the later write) first
//   node     | entries | windows |, and in inner nodes the children that begin with these keys
//
// RocksDB's own, a skip list, reads some twenty entries from all over the memory to place one, and
// that was half of what a write cost. Here a window, eight bytes of the user key from where the
// keys of its node begin to differ, stands beside each entry: a search reads windows, and hardly
// ever an entry.
//
// A node has a version, odd while the writer changes it: who read something while it changed reads
// again. Nodes never go, and each knows the next one on its level, so that a reader that comes to a
// node just as it is split finds the rest on its right.
//
// Of each user key a leaf has the latest entry, which leads to the older ones: to write a key again
// is to change one pointer. What a put or a removal hides is of use to those only who began to read
// before it was committed. When these have left it is taken out of the chain, and when all who may
// have come to it meanwhile have left too, its memory is used for other entries. So a memtable does
// not grow by what is written again and again, and is flushed the less. Inner nodes have copies of
// keys, which stay.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "rocksdb_engine/key_filter.h"
#include "rocksdb_engine/read_epochs.h"

namespace trellis {

// The key of an entry.
struct EntryKey {
  ByteView user;
  uint64_t trailer;  // sequence number << 8 | what kind of write it is

  static EntryKey of_entry(const char* entry);
  static EntryKey of_internal_key(ByteView internal_key);
};

class EntryTree {
 private:
  struct Node;

 public:
  // Where entries go that a thread is about to insert, found for all of them at once, so that their
  // waits for memory overlap. They are inserted in this order, with others between them or not.
  // What is not so any more is not believed.
  class Places {
   public:
    void clear() { places_.clear(), next_ = 0; }

   private:
    friend class EntryTree;
    struct Place {
      ByteView user;
      uint64_t tree;
      Node* leaf;
      uint64_t change;  // the last one of the tree when it was looked for
    };
    std::vector<Place> places_;
    size_t next_ = 0;
  };

  // Memory that is there for as long as the tree.
  using Allocate = std::function<char*(size_t bytes)>;
  // With `epochs`, which outlive the tree, all who read are counted there, and so is whoever
  // writes, until others see that: then memory is used again.
  explicit EntryTree(Allocate allocate, ReadEpochs* epochs = nullptr, size_t filter_bytes = 0);
  EntryTree(const EntryTree&) = delete;
  EntryTree& operator=(const EntryTree&) = delete;

  // One thread at a time. An entry has its memory from here.
  char* allocate_entry(size_t bytes);
  // REQUIRES: no entry of its user key has a trailer that is as high, and its own is not 0.
  void insert(const char* entry, Places* places = nullptr);
  // The others: any thread.
  bool contains(const EntryKey& key) const;
  // False: no entry has that user key. Costs less than to look for it.
  bool may_have(ByteView user_key) const { return filter_.may_have(user_key); }
  // REQUIRES: the keys stay while the places do.
  void look_up(std::span<const ByteView> user_keys, Places& places) const;

  // Any thread. Sees what was inserted before it came there.
  class Position {
   public:
    explicit Position(const EntryTree& tree) : tree_(&tree) {}
    bool valid() const { return entry_ != nullptr; }
    const char* entry() const { return entry_; }
    const EntryTree& tree() const { return *tree_; }
    void to_first();
    void to_last();
    void to_lower_bound(const EntryKey& key);  // the first that is not before it
    void to_last_not_after(const EntryKey& key);
    void next();
    void previous();

   private:
    void to_first_of(const Node* leaf);
    void to_last_before(const EntryKey& key);

    const EntryTree* tree_;
    const Node* node_ = nullptr;
    uint32_t version_ = 0;
    size_t index_ = 0;
    const char* entry_ = nullptr;
  };

 private:
  // An entry that hides all that are older, of which this is the first.
  struct Hiding {
    const char* entry;
    const char* older;
    uint64_t since;  // an epoch
  };
  // One that nobody comes to any more.
  struct Unlinked {
    const char* entry;
    uint64_t since;
  };
  Node* make_node(unsigned level);
  const char* copy_key(const char* entry);
  Node* split(Node& node);
  void insert_at(Node& node, size_t at, const char* entry, Node* child);
  void insert_new(std::span<Node* const> path, size_t at, const char* entry);
  void lower_first(Node& node, const char* entry);
  bool insert_into(Node& leaf, const EntryKey& key, const char* entry);
  Node* looked_up(ByteView user, Places& places) const;
  // The leaf where the key is, if it is anywhere, or where the one before it is.
  enum class Wanted : uint8_t { key, key_before };
  const Node* leaf_for(ByteView user, Wanted wanted) const;
  void reclaim();
  void unlink_older(const char* entry);

  const Allocate allocate_;
  ReadEpochs* const epochs_;  // may be null
  const uint64_t number_;     // of all trees
  KeyFilter filter_;
  std::atomic<Node*> root_;
  std::atomic<uint64_t> changes_{0};  // splits that began and ended: odd while one is under way
  // Of the writer.
  uint64_t inner_change_ = 0;  // the last one that split an inner node
  std::deque<Hiding> hiding_;  // in the order in which they came
  std::deque<Unlinked> unlinked_;
  static constexpr size_t free_classes = 64;
  std::array<std::vector<char*>, free_classes> free_;  // by size
  char* piece_ = nullptr;                              // what entries are cut from
  size_t piece_bytes_ = 0;
};

}  // namespace trellis
