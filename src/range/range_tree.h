// The ordered tree under a RangeCache: immutable nodes, replaced along a path.
//
// Keys are the ends of ranges. A search compares what all keys of a node share once, then a head of
// each key, 8 or 16 bytes that lie side by side, and whole keys only where those are equal. A leaf
// is one piece of memory, its ranges among it: what a lookup touches is one node per level.
//
//   leaf    | counts | shared bytes | heads | ids and generations | the rest, its texts last |
//   inner   | counts | shared bytes | heads | children | offsets u32 | last ends |
//
// What a lookup reads stands first and close together, and is fetched all at once: a million ranges
// are more than the processor's caches hold, and two fetches, one after the other, cost twice as
// much. The start of a range is not stored where it is the end of the one before it.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "range/descriptor.h"
#include "range/directory.h"

namespace trellis {

// A descriptor that lies elsewhere.
struct RangeView {
  RangeId id;
  ByteView start;
  ByteView end;
  uint64_t generation;
  ByteView home;
  uint64_t sticky_until_ms;
  bool touched;

  static RangeView of(const RangeDescriptor& range) {
    return {range.id,   range.start,           range.end, range.generation,
            range.home, range.sticky_until_ms, false};
  }
  RangeDescriptor descriptor() const {
    return {id, Bytes(start), Bytes(end), generation, Bytes(home), sticky_until_ms};
  }
  bool is(const RangeDescriptor& range) const {
    return id == range.id && generation == range.generation && start == range.start &&
           end == range.end && home == range.home;
  }
};

// The bytes of a key behind those that are shared, as numbers that order like them.
using KeyHead = uint64_t;
struct WideKeyHead {
  KeyHead first;
  KeyHead second;
  unsigned __int128 number() const { return static_cast<unsigned __int128>(first) << 64 | second; }
  bool operator==(const WideKeyHead&) const = default;
  bool operator<(const WideKeyHead& other) const { return number() < other.number(); }
};

class RangeNode {
 public:
  bool is_leaf() const { return height_ == 0; }
  unsigned height() const { return height_; }
  size_t count() const { return count_; }
  size_t memory_bytes() const { return memory_bytes_; }

 protected:
  RangeNode(unsigned height, size_t count, size_t shared_bytes, size_t memory_bytes)
      : height_(static_cast<uint16_t>(height)),
        count_(static_cast<uint16_t>(count)),
        shared_bytes_(static_cast<uint32_t>(shared_bytes)),
        memory_bytes_(memory_bytes) {}
  ~RangeNode() = default;
  const char* base() const { return reinterpret_cast<const char*>(this); }
  static constexpr size_t padded_to_8(size_t bytes) { return (bytes + 7) / 8 * 8; }

  // What a lookup reads, all lines at once and not one after another; `bytes`: without the shared
  // ones, of which it brings what is usual.
  void prefetch_bytes(size_t bytes) const {
    for (size_t at = 0; at < bytes + 32; at += 64) __builtin_prefetch(base() + at);
  }

  uint16_t height_;
  uint16_t count_;
  uint32_t shared_bytes_;
  size_t memory_bytes_;
};

// Counted by whoever holds it, the tree among them.
class RangeLeaf final : public RangeNode {
 public:
  static constexpr size_t ranges_max = 32;

  // REQUIRES: 1 to ranges_max, by end. Counted once, for the caller.
  static RangeLeaf* make(std::span<const RangeView> ranges);

  RangeView view(size_t i) const;
  ByteView start(size_t i) const;
  ByteView end(size_t i) const;
  uint64_t generation(size_t i) const;
  bool holds(size_t i, ByteView address, Side side) const {
    return side == Side::at ? start(i) <= address && address < end(i)
                            : start(i) < address && address <= end(i);
  }
  // The first whose end is > address (Side::at) or >= address (Side::before); count() if none is.
  size_t find(ByteView address, Side side) const;
  // The same as holds, for the one that find gave.
  bool found_holds(size_t i, ByteView address, Side side) const {
    if ((follows_ >> i & 1) != 0) return true;
    return side == Side::at ? start(i) <= address : start(i) < address;
  }
  // Brings near what find looks at, and what a user of a range does.
  void prefetch() const {
    prefetch_bytes(sizeof(RangeLeaf) + ranges_max * (sizeof(KeyHead) + sizeof(Name)));
  }

  void take() const { holders_.fetch_add(1, std::memory_order_relaxed); }
  void drop() const {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) free();
  }

  // Whoever comes by other ways than the tree must ask whether the leaf is still a part of it.
  bool in_tree() const { return in_tree_.load(std::memory_order_acquire); }
  void set_in_tree(bool in_tree) const { in_tree_.store(in_tree, std::memory_order_release); }

  // For the clock that makes room: was it read since the hand came by?
  void touch(size_t i) const {
    const uint32_t bit = uint32_t{1} << i;
    if ((touched_.load(std::memory_order_relaxed) & bit) == 0)
      touched_.fetch_or(bit, std::memory_order_relaxed);
  }
  bool untouch(size_t i) const {
    const uint32_t bit = uint32_t{1} << i;
    return (touched_.fetch_and(~bit, std::memory_order_relaxed) & bit) != 0;
  }

 private:
  struct Name {
    uint64_t id;
    uint64_t generation;
  };
  struct Rest {
    uint64_t sticky_until_ms;
    uint32_t end_offset;  // behind the end: the home, then the start if it is stored
    uint32_t end_bytes;
    uint32_t home_bytes;
    uint32_t start_bytes;
  };
  RangeLeaf(size_t count, size_t shared_bytes, bool wide, size_t memory_bytes)
      : RangeNode(0, count, shared_bytes, memory_bytes), wide_(wide) {}
  void free() const;
  static constexpr size_t head_bytes(bool wide) {
    return wide ? sizeof(WideKeyHead) : sizeof(KeyHead);
  }
  const char* shared() const { return reinterpret_cast<const char*>(this + 1); }
  const char* heads() const { return shared() + padded_to_8(shared_bytes_); }
  const Name* names() const {
    return reinterpret_cast<const Name*>(heads() + count_ * head_bytes(wide_));
  }
  const Rest* rests() const { return reinterpret_cast<const Rest*>(names() + count_); }

  // By number of the range.
  uint32_t follows_ = 0;  // starts where the one before it ends
  mutable std::atomic<uint32_t> touched_{0};
  static_assert(ranges_max <= 32);

  mutable std::atomic<uint32_t> holders_{1};
  mutable std::atomic<bool> in_tree_{false};
  const bool wide_;  // its heads are: a border between keyspaces leaves little that is shared
};

class RangeInner final : public RangeNode {
 public:
  static constexpr size_t children_max = 32;

  struct Child {
    ByteView end;  // of its last range
    RangeNode* node;
  };

  // REQUIRES: 1 to children_max, by end.
  static RangeInner* make(std::span<const Child> children);
  static void free(RangeInner* node);

  RangeNode* child(size_t i) const { return children()[i]; }
  ByteView end(size_t i) const { return {base() + offsets()[i], offsets()[i + 1] - offsets()[i]}; }
  size_t find(ByteView address, Side side) const;
  void prefetch() const {
    prefetch_bytes(sizeof(RangeInner) + children_max * (sizeof(WideKeyHead) + sizeof(RangeNode*)));
  }

 private:
  RangeInner(unsigned height, size_t count, size_t shared_bytes, size_t memory_bytes)
      : RangeNode(height, count, shared_bytes, memory_bytes) {}
  const char* shared() const { return reinterpret_cast<const char*>(this + 1); }
  const WideKeyHead* heads() const {
    return reinterpret_cast<const WideKeyHead*>(shared() + padded_to_8(shared_bytes_));
  }
  RangeNode* const* children() const {
    return reinterpret_cast<RangeNode* const*>(heads() + count_);
  }
  const uint32_t* offsets() const { return reinterpret_cast<const uint32_t*>(children() + count_); }
};

// The newest tree, as its writer sees it. A change makes a new root and leaves the old nodes as
// they are: take_replaced says which ones are no part of the tree any more. Nothing is freed here.
class RangeTree {
 public:
  struct Found {
    const RangeLeaf* leaf = nullptr;  // null: all ends lie before
    size_t index = 0;
    explicit operator bool() const { return leaf != nullptr; }
    ByteView start() const { return leaf->start(index); }
    ByteView end() const { return leaf->end(index); }
    bool holds(ByteView address, Side side) const {
      return leaf->found_holds(index, address, side);
    }
  };

  RangeNode* root() const { return root_; }
  size_t entries() const { return entries_; }
  size_t bytes() const { return bytes_; }

  static Found find(const RangeNode* root, ByteView address, Side side);
  Found find(ByteView address, Side side) const { return find(root_, address, side); }

  // REQUIRES: nothing in the tree overlaps it.
  void add(const RangeView& range);
  // REQUIRES: a range in the tree ends there.
  void remove(ByteView end);

  std::vector<RangeNode*> take_replaced() { return std::exchange(replaced_, {}); }

 private:
  using Children = std::vector<RangeInner::Child>;
  RangeInner::Child made(RangeLeaf* leaf);
  RangeInner::Child made(RangeInner* inner);
  void replace(RangeNode* node);
  Children pack(std::span<const RangeView> ranges, bool at_end);
  Children pack(std::span<const RangeInner::Child> children, bool at_end);
  Children add_below(RangeNode* node, const RangeView& range);
  Children remove_below(RangeNode* node, ByteView end);
  void join_small(Children& children, size_t at);

  RangeNode* root_ = nullptr;
  size_t entries_ = 0;
  size_t bytes_ = 0;
  std::vector<RangeNode*> replaced_;
};

}  // namespace trellis
