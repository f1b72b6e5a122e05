// The entries of a memtable in order: a tree of wide nodes, for one writer and any number of
// readers that wait for nobody.
//
//   entry    | length of the internal key, varint32 | user key | trailer u64le | value ... |
//   order    user keys as bytes; of one user key, the higher trailer (the later write) first
//   node     | entries | windows |, and in inner nodes the children that begin with these entries
//
// RocksDB's own, a skip list, reads some twenty entries from all over the memory to place one, and
// that was half of what a write cost. Here a window, eight bytes of the user key from where the
// keys of its node begin to differ, stands beside each entry: a search reads windows, and hardly
// ever an entry.
//
// A node has a version, odd while the writer changes it: who read something while it changed reads
// again. Nodes and entries never go, and each node knows the next one on its level, so that a
// reader that comes to a node just as it is split finds the rest on its right.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "base/bytes.h"

namespace trellis {

// The key of an entry.
struct EntryKey {
  ByteView user;
  uint64_t trailer;

  static EntryKey of_entry(const char* entry);
  static EntryKey of_internal_key(ByteView internal_key);
};

class EntryTree {
 public:
  // Memory that is there for as long as the tree.
  using Allocate = std::function<char*(size_t bytes)>;
  explicit EntryTree(Allocate allocate);
  EntryTree(const EntryTree&) = delete;
  EntryTree& operator=(const EntryTree&) = delete;

  // One thread at a time. REQUIRES: no entry with that key is in it.
  void insert(const char* entry);
  bool contains(const EntryKey& key) const;
  // Any thread. A hint: entries of these user keys are to be inserted soon. The waits for the
  // memory of all of them overlap.
  void prefetch(std::span<const ByteView> user_keys) const;

 private:
  struct Node;

 public:
  // Any thread. Sees what was inserted before it came there.
  class Position {
   public:
    explicit Position(const EntryTree& tree) : tree_(&tree) {}
    bool valid() const { return entry_ != nullptr; }
    const char* entry() const { return entry_; }
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
  Node* make_node(unsigned level);
  Node* split(Node& node);
  void insert_at(Node& node, const char* entry, Node* child);
  void lower_first(Node& node, const char* entry);
  const Node* leaf_for(const EntryKey& key) const;

  const Allocate allocate_;
  std::atomic<Node*> root_;
};

}  // namespace trellis
