#include "range/range_cache.h"

#include <fmt/format.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <vector>

#include "base/assert.h"
#include "base/metrics.h"
#include "range/range_tree.h"

namespace trellis {

namespace {

constexpr size_t lanes_max = metrics_detail::slots_max;
// Nodes that wait to be freed before a writer looks whether readers have gone.
constexpr size_t retired_nodes_max = 256;
// How many ranges in use the clock passes before it takes one all the same.
constexpr unsigned clock_steps_max = 32;
// How often in a row the leaf that a thread holds is of no use before it takes another.
constexpr unsigned leaf_misses_max = 8;
// How often one waits for somebody else's lookup of the same gap before making an own one.
constexpr unsigned joins_max = 2;

// Of one thread, or of many that found no lane of their own.
struct alignas(64) Lane {
  std::atomic<uint64_t> readers[2]{};  // by the parity of their epoch
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> misses{0};
};

// A leaf that the thread often finds what it looks for in: those who stay in one place need no
// more. It is left for one that was of use twice running, and not at once.
struct LastLeaf {
  uint64_t cache = 0;
  const RangeLeaf* seen = nullptr;  // the last one; may be gone: only compared
  RangeRef held;
  unsigned misses = 0;  // running
};
thread_local LastLeaf last_leaf;

struct Flight {
  bool done = false;
  Status outcome;
  RangeRef range;
};

}  // namespace

RangeRef::RangeRef(const RangeLeaf* leaf, size_t index)
    : leaf_(leaf), index_(static_cast<uint32_t>(index)) {
  leaf_->take();
}
RangeRef::RangeRef(const RangeRef& other) : leaf_(other.leaf_), index_(other.index_) {
  if (leaf_ != nullptr) leaf_->take();
}
RangeRef::~RangeRef() {
  if (leaf_ != nullptr) leaf_->drop();
}
RangeId RangeRef::id() const { return leaf_->view(index_).id; }
uint64_t RangeRef::generation() const { return leaf_->generation(index_); }
uint64_t RangeRef::sticky_until_ms() const { return leaf_->view(index_).sticky_until_ms; }
ByteView RangeRef::start() const { return leaf_->start(index_); }
ByteView RangeRef::end() const { return leaf_->end(index_); }
ByteView RangeRef::home() const { return leaf_->view(index_).home; }
bool RangeRef::holds(ByteView address, Side side) const {
  return leaf_->holds(index_, address, side);
}
RangeDescriptor RangeRef::descriptor() const { return leaf_->view(index_).descriptor(); }

struct RangeCache::State {
  State(RangeFinder& finder, size_t bytes_max) : finder(finder), bytes_max(bytes_max) {
    static std::atomic<uint64_t> caches{0};
    id = caches.fetch_add(1) + 1;
  }

  // A reader announces itself in the epoch that is current, and is counted there until it goes. The
  // epoch moves on only when nobody is left in the one before it: so what was unlinked in an epoch
  // is seen by nobody two epochs later.
  class Reading {
   public:
    explicit Reading(State& state) : slot_(metrics_detail::slot()), lane_(state.lanes[slot_]) {
      for (;;) {
        const uint64_t epoch = state.epoch.load();
        parity_ = epoch & 1;
        lane_.readers[parity_].fetch_add(1);
        if (state.epoch.load() == epoch) return;
        lane_.readers[parity_].fetch_sub(1);
      }
    }
    ~Reading() {
      std::atomic<uint64_t>& readers = lane_.readers[parity_];
      if (slot_ == metrics_detail::shared_slot)
        readers.fetch_sub(1, std::memory_order_release);
      else  // the only writer
        readers.store(readers.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    const uint32_t slot_;
    Lane& lane_;
    size_t parity_ = 0;
  };

  struct Retired {
    uint64_t epoch;
    std::vector<RangeNode*> nodes;
  };

  // --- readers ---

  RangeRef peek(ByteView address, Side side) {
    const Reading reading(*this);
    const RangeTree::Found found =
        RangeTree::find(root.load(std::memory_order_acquire), address, side);
    if (!found || !found.holds(address, side)) return {};
    found.leaf->touch(found.index);
    return RangeRef(found.leaf, found.index);
  }

  // The start of what follows the gap that an address is in: names the gap.
  Bytes gap_of(ByteView address, Side side) {
    const Reading reading(*this);
    const RangeTree::Found next =
        RangeTree::find(root.load(std::memory_order_acquire), address, side);
    return next ? Bytes(next.start()) : Bytes();
  }

  // --- writers: REQUIRE write_mutex ---

  // False if it is refused.
  bool insert(const RangeDescriptor& range) {
    if (range.start >= range.end) return false;
    std::vector<Bytes> older;  // by their ends
    RangeTree::Found other = tree.find(range.start, Side::at);
    while (other && other.start() < range.end) {
      if (other.leaf->view(other.index).is(range)) return true;
      if (other.leaf->generation(other.index) >= range.generation) return false;
      older.emplace_back(other.end());
      other = tree.find(older.back(), Side::at);
    }
    for (const Bytes& end : older) tree.remove(end);
    tree.add(RangeView::of(range));
    return true;
  }

  void make_room() {
    unsigned steps = 0;
    while (tree.bytes() > bytes_max && tree.entries() > 0) {
      const RangeTree::Found next = tree.find(hand, Side::at);
      if (!next) {
        hand.clear();
        continue;
      }
      hand = next.end();
      if (next.leaf->untouch(next.index) && steps < clock_steps_max) {
        steps++;
        continue;
      }
      tree.remove(hand);
      evictions++;
      steps = 0;
    }
  }

  void publish() {
    make_room();
    root.store(tree.root());
    retired.push_back({epoch.load(), tree.take_replaced()});
    for (const RangeNode* node : retired.back().nodes)
      if (node->is_leaf()) static_cast<const RangeLeaf*>(node)->set_in_tree(false);
    retired_nodes += retired.back().nodes.size();
    if (retired_nodes >= retired_nodes_max) reclaim();
  }

  bool try_advance() {
    const uint64_t now = epoch.load();
    for (const Lane& lane : lanes)
      if (lane.readers[(now + 1) & 1].load() != 0) return false;
    epoch.store(now + 1);
    return true;
  }

  void reclaim() {
    if (try_advance()) try_advance();
    const uint64_t now = epoch.load();
    while (!retired.empty() && retired.front().epoch + 2 <= now) {
      retired_nodes -= retired.front().nodes.size();
      for (RangeNode* node : retired.front().nodes) free(node);
      retired.pop_front();
    }
  }

  // Leaves may be held by others.
  static void free(RangeNode* node) {
    if (node->is_leaf())
      static_cast<RangeLeaf*>(node)->drop();
    else
      RangeInner::free(static_cast<RangeInner*>(node));
  }

  static void free_all(RangeNode* node) {
    if (node->is_leaf()) {
      static_cast<RangeLeaf*>(node)->set_in_tree(false);
    } else {
      for (size_t i = 0; i < node->count(); i++) free_all(static_cast<RangeInner*>(node)->child(i));
    }
    free(node);
  }

  // --- lookups ---

  Result<RangeRef> look_up(ByteView address, Side side);
  Result<RangeRef> find_missing(ByteView address, Side side);

  RangeFinder& finder;
  const size_t bytes_max;
  uint64_t id;

  std::atomic<RangeNode*> root{nullptr};
  std::atomic<uint64_t> epoch{0};
  std::array<Lane, lanes_max> lanes;

  std::mutex write_mutex;
  RangeTree tree;
  std::deque<Retired> retired;
  size_t retired_nodes = 0;
  Bytes hand;  // of the clock: the end of the range that it passed last
  uint64_t evictions = 0;
  uint64_t stale_hops = 0;

  std::mutex flights_mutex;
  std::condition_variable flight_done;
  std::map<Bytes, std::shared_ptr<Flight>> flights;
  std::atomic<uint64_t> lookups{0};
  std::atomic<uint64_t> directory_reads{0};
};

Result<RangeRef> RangeCache::State::look_up(ByteView address, Side side) {
  lookups.fetch_add(1, std::memory_order_relaxed);
  RangeDescriptor meta2_range;
  if (address >= ByteView("\x04")) {
    Bytes record("\x03");
    record += address;
    if (side == Side::at) record.push_back('\0');
    if (const RangeRef known = peek(record, Side::at)) meta2_range = known.descriptor();
  }
  TRY_ASSIGN(const DirectoryAnswer answer,
             finder.find(address, side, meta2_range.generation == 0 ? nullptr : &meta2_range));
  directory_reads.fetch_add(answer.reads, std::memory_order_relaxed);
  const std::lock_guard lock(write_mutex);
  for (const RangeDescriptor& other : answer.others) insert(other);
  RangeRef found;
  if (insert(answer.range)) {
    const RangeTree::Found at = tree.find(answer.range.start, Side::at);
    at.leaf->touch(at.index);
    found = RangeRef(at.leaf, at.index);
  } else {  // something newer overlaps it and does not hold the address: the caller will find out
    const RangeView alone = RangeView::of(answer.range);
    const RangeLeaf* leaf = RangeLeaf::make(std::span(&alone, 1));
    found = RangeRef(leaf, 0);
    leaf->drop();
  }
  publish();
  return found;
}

Result<RangeRef> RangeCache::State::find_missing(ByteView address, Side side) {
  for (unsigned joins = 0;; joins++) {
    const bool by_gap = joins < joins_max;
    Bytes key(by_gap ? "g" : side == Side::at ? "a" : "b");
    key += by_gap ? gap_of(address, side) : Bytes(address);
    std::unique_lock lock(flights_mutex);
    const auto [place, leads] = flights.try_emplace(key);
    if (leads) place->second = std::make_shared<Flight>();
    const std::shared_ptr<Flight> flight = place->second;
    if (!leads) {
      flight_done.wait(lock, [&] { return flight->done; });
      if (!flight->outcome.has_value()) return Error(flight->outcome.error());
      if (flight->range.holds(address, side)) return flight->range;
      lock.unlock();
      if (RangeRef range = peek(address, side)) return range;
      continue;
    }
    lock.unlock();
    // A lookup may have ended between our miss and now.
    Result<RangeRef> range = peek(address, side);
    if (!*range) range = look_up(address, side);
    lock.lock();
    flight->done = true;
    if (range.has_value())
      flight->range = *range;
    else
      flight->outcome = Error(range.error());
    flights.erase(key);
    flight_done.notify_all();
    return range;
  }
}

RangeCache::RangeCache(RangeFinder& finder, size_t bytes_max)
    : state_(std::make_unique<State>(finder, bytes_max)) {}

RangeCache::~RangeCache() {
  for (const State::Retired& gone : state_->retired)
    for (RangeNode* node : gone.nodes) State::free(node);
  if (state_->tree.root() != nullptr) State::free_all(state_->tree.root());
}

RangeRef RangeCache::get(ByteView address, Side side) {
  const uint32_t slot = metrics_detail::slot();
  Lane& lane = state_->lanes[slot];
  LastLeaf& last = last_leaf;
  if (last.cache == state_->id && last.held && last.held.leaf_->in_tree()) {
    const RangeLeaf& leaf = *last.held.leaf_;
    const size_t at = leaf.find(address, side);
    if (at < leaf.count() && leaf.found_holds(at, address, side)) {
      metrics_detail::add(lane.hits, 1, slot);
      leaf.touch(at);
      last.misses = 0;
      return RangeRef(&leaf, at);
    }
    last.misses++;
  } else {
    last.misses = leaf_misses_max;
  }
  RangeRef range = state_->peek(address, side);
  if (!range) {
    metrics_detail::add(lane.misses, 1, slot);
    return range;
  }
  metrics_detail::add(lane.hits, 1, slot);
  if (last.seen == range.leaf_ && last.misses >= leaf_misses_max) {
    last.cache = state_->id;
    last.held = range;
  }
  last.seen = range.leaf_;
  return range;
}

Result<RangeRef> RangeCache::find(ByteView address, Side side) {
  Result<RangeRef> range = get(address, side);
  if (*range) return range;
  return state_->find_missing(address, side);
}

bool RangeCache::insert(const RangeDescriptor& range) {
  const std::lock_guard lock(state_->write_mutex);
  const bool inserted = state_->insert(range);
  state_->publish();
  return inserted;
}

Status RangeCache::evict(const RangeRef& failed, std::span<const RangeDescriptor> replacements) {
  ASSERT(failed);
  const std::lock_guard lock(state_->write_mutex);
  state_->stale_hops++;
  const RangeDescriptor wrong = failed.descriptor();
  // It may have gone and come back since: then what is there is as wrong.
  const RangeTree::Found there = state_->tree.find(wrong.start, Side::at);
  if (there && there.leaf->view(there.index).is(wrong)) state_->tree.remove(wrong.end);
  bool again = false;
  for (const RangeDescriptor& range : replacements) {
    if (failed.leaf_->view(failed.index_).is(range))
      again = true;
    else
      state_->insert(range);
  }
  state_->publish();
  if (!again) return {};
  return Error{Code::corrupt,
               fmt::format("{} was refused by its home, which then named the same one: run "
                           "'trellis range verify'",
                           to_string(wrong))};
}

RangeCacheFigures RangeCache::figures() const {
  RangeCacheFigures out;
  for (const Lane& lane : state_->lanes) {
    out.hits += lane.hits.load(std::memory_order_relaxed);
    out.misses += lane.misses.load(std::memory_order_relaxed);
  }
  out.lookups = state_->lookups.load(std::memory_order_relaxed);
  out.directory_reads = state_->directory_reads.load(std::memory_order_relaxed);
  const std::lock_guard lock(state_->write_mutex);
  out.stale_hops = state_->stale_hops;
  out.evictions = state_->evictions;
  out.entries = state_->tree.entries();
  out.bytes = state_->tree.bytes();
  return out;
}

}  // namespace trellis
