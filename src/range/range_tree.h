// The ordered tree under a RangeCache: immutable nodes, replaced along a path.
//
// Keys are the ends of ranges. A node compares what all its keys share once, and then eight bytes
// of each that lie side by side: whole keys are touched only where those are equal, and at the end.
//
//   node   | height | count | shared bytes | slots: {head u64, last range} | children | shared |
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "range/descriptor.h"
#include "range/directory.h"

namespace trellis {

// One immutable descriptor and who uses it, in one piece of memory.
class CachedRange {
 public:
  // Counted once, for the caller.
  static CachedRange* make(const RangeDescriptor& range);

  RangeId id() const { return RangeId{id_}; }
  uint64_t generation() const { return generation_; }
  uint64_t sticky_until_ms() const { return sticky_until_ms_; }
  ByteView start() const { return {bytes(), start_bytes_}; }
  ByteView end() const { return {bytes() + start_bytes_, end_bytes_}; }
  ByteView home() const { return {bytes() + start_bytes_ + end_bytes_, home_bytes_}; }
  size_t memory_bytes() const {
    return sizeof(CachedRange) + start_bytes_ + end_bytes_ + home_bytes_;
  }
  bool holds(ByteView address, Side side) const {
    return side == Side::at ? start() <= address && address < end()
                            : start() < address && address <= end();
  }
  bool is(const RangeDescriptor& range) const;
  RangeDescriptor descriptor() const;

  void take() const { holders_.fetch_add(1, std::memory_order_relaxed); }
  void drop() const {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) free();
  }

  // In the tree of its cache. Whoever finds it by other ways than the tree must ask.
  bool cached() const { return cached_.load(std::memory_order_acquire); }
  void set_cached(bool cached) const { cached_.store(cached, std::memory_order_release); }

  // For the clock that makes room: read since the hand came by?
  void touch() const {
    if (!touched_.load(std::memory_order_relaxed)) touched_.store(true, std::memory_order_relaxed);
  }
  bool untouch() const { return touched_.exchange(false, std::memory_order_relaxed); }

 private:
  CachedRange() = default;
  void free() const;
  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }

  mutable std::atomic<uint32_t> holders_{1};
  mutable std::atomic<bool> cached_{false};
  mutable std::atomic<bool> touched_{true};
  uint32_t start_bytes_ = 0;
  uint32_t end_bytes_ = 0;
  uint32_t home_bytes_ = 0;
  uint64_t id_ = 0;
  uint64_t generation_ = 0;
  uint64_t sticky_until_ms_ = 0;
};

class RangeNode {
 public:
  static constexpr size_t slots_max = 64;

  struct Slot {
    uint64_t head;
    const CachedRange* last;  // of a leaf the range; above, the last one below the child
  };
  struct Item {
    const CachedRange* last;
    RangeNode* child;  // null in a leaf
  };

  // REQUIRES: 1 to slots_max items, by end.
  static RangeNode* make(unsigned height, const Item* items, size_t count);
  static void free(RangeNode* node);

  unsigned height() const { return height_; }
  size_t count() const { return count_; }
  size_t memory_bytes() const { return memory_bytes(height_, count_, shared_bytes_); }
  const CachedRange* last_of(size_t i) const { return slots()[i].last; }
  RangeNode* child(size_t i) const { return children()[i]; }
  Item item(size_t i) const { return {last_of(i), height_ == 0 ? nullptr : child(i)}; }

  // The first slot whose end is > address (Side::at) or >= address (Side::before).
  size_t find(ByteView address, Side side) const;
  // Brings a node that is about to be searched near: all its lines at once, not one after another.
  void prefetch() const {
    for (size_t at = 0; at < sizeof(RangeNode) + slots_max * sizeof(Slot); at += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(this) + at);
  }

 private:
  RangeNode() = default;
  static size_t memory_bytes(unsigned height, size_t count, size_t shared_bytes) {
    return sizeof(RangeNode) + count * sizeof(Slot) +
           (height == 0 ? 0 : count * sizeof(RangeNode*)) + shared_bytes;
  }
  Slot* slots() const { return reinterpret_cast<Slot*>(const_cast<RangeNode*>(this) + 1); }
  RangeNode** children() const { return reinterpret_cast<RangeNode**>(slots() + count_); }
  char* shared() const {
    return height_ == 0 ? reinterpret_cast<char*>(slots() + count_)
                        : reinterpret_cast<char*>(children() + count_);
  }

  uint16_t height_ = 0;
  uint16_t count_ = 0;
  uint32_t shared_bytes_ = 0;
};

// The newest tree, as its writer sees it. Changes make a new root and leave the old nodes as they
// are: take_replaced says which ones are no part of the tree any more, and take_removed which
// ranges. Nothing is freed here.
class RangeTree {
 public:
  RangeNode* root() const { return root_; }
  size_t entries() const { return entries_; }
  size_t bytes() const { return bytes_; }

  static const CachedRange* find(const RangeNode* root, ByteView address, Side side);

  // REQUIRES: nothing in the tree overlaps it. Takes over the caller's count.
  void add(const CachedRange* range);
  // REQUIRES: it is in the tree.
  void remove(const CachedRange* range);

  std::vector<RangeNode*> take_replaced() { return std::exchange(replaced_, {}); }
  std::vector<const CachedRange*> take_removed() { return std::exchange(removed_, {}); }

 private:
  using Items = std::vector<RangeNode::Item>;
  RangeNode* make(unsigned height, const RangeNode::Item* items, size_t count);
  void replace(RangeNode* node);
  // One node of the items, or two if they are too many; `at` is where the new one is.
  Items pack(unsigned height, const Items& items, size_t at);
  Items add_below(RangeNode* node, const CachedRange* range);
  Items remove_below(RangeNode* node, const CachedRange* range);
  void join_small(Items& items, size_t at);

  RangeNode* root_ = nullptr;
  size_t entries_ = 0;
  size_t bytes_ = 0;
  std::vector<RangeNode*> replaced_;
  std::vector<const CachedRange*> removed_;
};

}  // namespace trellis
