// What a client remembers of the directory: descriptors, ordered by their end, within a bound of
// bytes. It may be stale at any time; whoever finds out says so (evict) and asks again.
//
//   TRY_ASSIGN(RangeRef range, cache.find(address, Side::at));
//   ... the range says that it is another one by now, and what it is ...
//   TRY(cache.evict(range, replacements));
//
// Of descriptors that overlap only the one of the highest generation is kept. Reads take no lock:
// the cache is a tree of immutable nodes under one atomic pointer; writers, under a mutex, copy the
// path that they change, and what is replaced is freed when no reader can see it any more.
//
// Threads: any. Blocking: find, when it must ask the directory; evict and insert for other writers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "range/descriptor.h"
#include "range/directory.h"

namespace trellis {

class RangeLeaf;  // range_tree.h

// One immutable descriptor, cached or not any more. Costs nothing to hold but the memory.
class RangeRef {
 public:
  RangeRef() = default;
  RangeRef(const RangeRef& other);
  RangeRef(RangeRef&& other) noexcept
      : leaf_(std::exchange(other.leaf_, nullptr)), index_(other.index_) {}
  RangeRef& operator=(RangeRef other) noexcept {
    std::swap(leaf_, other.leaf_);
    std::swap(index_, other.index_);
    return *this;
  }
  ~RangeRef();

  explicit operator bool() const { return leaf_ != nullptr; }
  // The rest REQUIRES a range. Views live as long as a reference does.
  RangeId id() const;
  uint64_t generation() const;
  uint64_t sticky_until_ms() const;
  ByteView start() const;
  ByteView end() const;
  ByteView home() const;
  bool holds(ByteView address, Side side = Side::at) const;
  RangeDescriptor descriptor() const;

 private:
  friend class RangeCache;
  RangeRef(const RangeLeaf* leaf, size_t index);  // counts itself
  const RangeLeaf* leaf_ = nullptr;
  uint32_t index_ = 0;
};

struct RangeCacheFigures {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t stale_hops = 0;       // evict was called: a trip to the wrong range
  uint64_t lookups = 0;          // asked the directory
  uint64_t directory_reads = 0;  // which took so many reads
  uint64_t evictions = 0;        // for want of room
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

class RangeCache {
 public:
  // `finder`, mostly a Directory, must outlive it.
  RangeCache(RangeFinder& finder, size_t bytes_max);
  // REQUIRES: nobody calls any more. References may live on.
  ~RangeCache();
  RangeCache(const RangeCache&) = delete;
  RangeCache& operator=(const RangeCache&) = delete;

  // From the cache alone; an empty reference if it is not there.
  RangeRef get(ByteView address, Side side = Side::at);
  // From the cache, or else the directory; those who miss the same interval share one lookup.
  Result<RangeRef> find(ByteView address, Side side = Side::at);

  // False if something that overlaps is as new or newer: then that stays.
  bool insert(const RangeDescriptor& range);

  // `failed` was asked and is not what its descriptor says; `replacements` are what it said
  // instead. Removes `failed`, if it is still there, and nothing else; replacements go by the rule
  // of insert. All of that is seen at once. Code::corrupt if what failed is among the replacements:
  // going on would never end.
  Status evict(const RangeRef& failed, std::span<const RangeDescriptor> replacements = {});

  RangeCacheFigures figures() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace trellis
