// Parts of Redis collections in memory, in order: what scans of them found.
//
// A leaf says what is stored in an interval of one collection (codec/redis_collection.h), all of
// it. A scan takes what leaves have and reads the rest; of what it reads, and a little behind it,
// it makes a leaf. A commit changes the leaf that has what was written, or drops it if it is large.
// So who pops from a sorted set again and again neither searches nor steps over what was popped
// before: a leaf without entries says that there are none.
//
// As with records, leaves are read and made under the latch of the key, and changed before the
// exclusive one goes: what is in them is what is stored.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/bytes.h"
#include "base/shared_mutex.h"
#include "engine/engine.h"

namespace trellis {

class ScanLeaves {
 public:
  explicit ScanLeaves(size_t bytes_max) : bytes_max_(bytes_max) {}

  // engine.scan. REQUIRES: the latch of what is scanned.
  Result<ScanPage> scan(Engine& engine, const ScanRequest& request, ScanVisitor visit);

  // Whether there may be a leaf of the collection: else nothing need be told of it.
  bool may_have(ByteView collection) const;
  // A record of it was written; absent: removed. REQUIRES: the latch, exclusive.
  void written(ByteView collection, ByteView key, std::optional<ByteView> value);
  // All that a new collection has, which `entries` gives in order; if that is little. REQUIRES: the
  // latch, exclusive, and that there is no leaf of it.
  void put_new(ByteView collection, FunctionRef<void(ScanVisitor)> entries);
  // Nobody knows what became of it.
  void doubt(ByteView collection, ByteView key);
  // All of them, if some may be in it: for removals of whole intervals, which are rare.
  void forget_range(ByteView begin, ByteView end);

  struct Figures {
    uint64_t hits = 0;    // scans that read nothing
    uint64_t misses = 0;  // the others
    size_t bytes = 0;
  };
  Figures figures() const;

 private:
  class Scan;
  struct Leaf;
  using Ring = std::list<Leaf*>;
  struct Slot {
    std::shared_ptr<Leaf> leaf;
    Ring::iterator in_ring;
    std::atomic<bool> is_used = false;
  };
  // Of a collection; its hash is made once.
  struct Name {
    ByteView bytes;
    size_t hash;
    explicit Name(ByteView collection);
    Name(ByteView collection, size_t known_hash) : bytes(collection), hash(known_hash) {}
    bool operator==(ByteView other) const { return bytes == other; }
  };
  struct NameHash {
    using is_transparent = void;
    size_t operator()(const Name& name) const { return name.hash; }
    size_t operator()(const Bytes& name) const { return Name(name).hash; }
  };
  // In a collection. What comes first behind its name decides mostly, and is at hand.
  struct Place {
    ByteView bytes;
    uint64_t head;
    Place(const Name& collection, ByteView at);
  };
  struct StoredPlace {
    Bytes bytes;
    uint64_t head;
  };
  struct PlaceOrder {
    using is_transparent = void;
    template <class Left, class Right>
    bool operator()(const Left& left, const Right& right) const {
      if (left.head != right.head) return left.head < right.head;
      return ByteView(left.bytes) < ByteView(right.bytes);
    }
  };
  using Slots = std::map<StoredPlace, Slot, PlaceOrder>;  // by where they begin
  using Collections = std::unordered_map<Bytes, Slots, NameHash, std::equal_to<>>;
  static constexpr size_t counts_of_shard = 4096;
  // All of a collection is in one.
  struct Shard {
    SharedMutex mutex;
    Collections collections;  // none is empty
    Ring ring;                // all leaves, for a clock
    Ring::iterator hand = ring.end();
    std::atomic<uint64_t> hits = 0;
    std::atomic<uint64_t> misses = 0;
    // Leaves, by the hash of their collection.
    std::array<std::atomic<uint32_t>, counts_of_shard> counts = {};
  };
  // What is at a place: a leaf, or how far none is.
  struct Found {
    std::shared_ptr<Leaf> leaf;
    Bytes gap_end;  // forward: where the next leaf begins; reverse: where the one before ends
  };

  Shard& shard(size_t hash) { return shards_[hash % shards]; }
  std::atomic<uint32_t>& count(size_t hash) {
    return shard(hash).counts[hash / shards % counts_of_shard];
  }
  Found find(const Name& collection, ByteView at, bool reverse);
  bool welcomes_new() { return bytes_ < bytes_max_ / 8 * 7 || asked_++ % 8 == 0; }
  void put(const Name& collection, std::shared_ptr<Leaf> leaf);
  static bool joins(const Leaf& leaf, const Leaf& next);
  void join_neighbour(Shard& shard, const Name& collection, Slots& slots, Slots::iterator slot);
  static Slots::iterator slot_of(Slots& slots, const Place& at);
  Slots::iterator erase(Shard& shard, Slots& slots, Slots::iterator slot);
  void erase_alone(Shard& shard, Collections::iterator collection, Slots::iterator slot);
  void make_room();

  static constexpr size_t shards = 64;
  const size_t bytes_max_;
  std::atomic<size_t> bytes_ = 0;
  std::atomic<size_t> asked_ = 0;
  std::atomic<size_t> next_to_shrink_ = 0;
  std::array<Shard, shards> shards_;
};

}  // namespace trellis
