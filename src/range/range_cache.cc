#include "range/range_cache.h"

#include <fmt/format.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <vector>

#include "base/assert.h"
#include "range/range_tree.h"

namespace trellis {

namespace {

constexpr size_t lanes_max = 64;
// Nodes that wait to be freed before a writer looks whether readers have gone.
constexpr size_t retired_nodes_max = 256;
// How many ranges in use the clock passes before it takes one all the same.
constexpr unsigned clock_steps_max = 32;
// How often one waits for somebody else's lookup of the same gap before making an own one.
constexpr unsigned joins_max = 2;

// Readers of a lane may be of several threads.
struct alignas(64) Lane {
  std::atomic<uint32_t> readers[2]{};  // by the parity of their epoch
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> misses{0};
};

size_t this_lane() {
  static std::atomic<size_t> threads{0};
  thread_local const size_t lane = threads.fetch_add(1, std::memory_order_relaxed) % lanes_max;
  return lane;
}

// What the thread found last: those who stay in one place need no more.
struct LastHit {
  uint64_t cache = 0;
  RangeRef range;
};
thread_local LastHit last_hit;

struct Flight {
  bool done = false;
  Status outcome;
  RangeRef range;
};

}  // namespace

RangeRef::RangeRef(const RangeRef& other) : range_(other.range_) {
  if (range_ != nullptr) range_->take();
}
RangeRef::~RangeRef() {
  if (range_ != nullptr) range_->drop();
}
RangeId RangeRef::id() const { return range_->id(); }
uint64_t RangeRef::generation() const { return range_->generation(); }
uint64_t RangeRef::sticky_until_ms() const { return range_->sticky_until_ms(); }
ByteView RangeRef::start() const { return range_->start(); }
ByteView RangeRef::end() const { return range_->end(); }
ByteView RangeRef::home() const { return range_->home(); }
bool RangeRef::holds(ByteView address, Side side) const { return range_->holds(address, side); }
RangeDescriptor RangeRef::descriptor() const { return range_->descriptor(); }

struct RangeCache::State {
  State(Directory& directory, size_t bytes_max) : directory(directory), bytes_max(bytes_max) {
    static std::atomic<uint64_t> caches{0};
    id = caches.fetch_add(1) + 1;
  }

  // A reader announces itself in the epoch that is current, and is counted there until it goes. The
  // epoch moves on only when nobody is left in the one before it: so what was unlinked in an epoch
  // is seen by nobody two epochs later.
  class Reading {
   public:
    explicit Reading(State& state) : lane_(state.lanes[this_lane()]) {
      for (;;) {
        const uint64_t epoch = state.epoch.load();
        parity_ = epoch & 1;
        lane_.readers[parity_].fetch_add(1);
        if (state.epoch.load() == epoch) return;
        lane_.readers[parity_].fetch_sub(1);
      }
    }
    ~Reading() { lane_.readers[parity_].fetch_sub(1, std::memory_order_release); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    Lane& lane_;
    size_t parity_ = 0;
  };

  struct Retired {
    uint64_t epoch;
    std::vector<RangeNode*> nodes;
    std::vector<const CachedRange*> ranges;
  };

  // --- readers ---

  RangeRef peek(ByteView address, Side side) {
    const Reading reading(*this);
    const CachedRange* found = RangeTree::find(root.load(std::memory_order_acquire), address, side);
    if (found == nullptr || !found->holds(address, side)) return {};
    found->take();
    found->touch();
    return RangeRef(found);
  }

  // The start of what follows the gap that an address is in: names the gap.
  Bytes gap_of(ByteView address, Side side) {
    const Reading reading(*this);
    const CachedRange* next = RangeTree::find(root.load(std::memory_order_acquire), address, side);
    return next == nullptr ? Bytes() : Bytes(next->start());
  }

  // --- writers: REQUIRE write_mutex ---

  // The range as it is cached now, counted for the caller; null if it is refused.
  const CachedRange* insert(const RangeDescriptor& range) {
    if (range.start >= range.end) return nullptr;
    std::vector<const CachedRange*> older;
    const CachedRange* other = RangeTree::find(tree.root(), range.start, Side::at);
    while (other != nullptr && other->start() < range.end) {
      if (other->is(range)) {
        other->take();
        return other;
      }
      if (other->generation() >= range.generation) return nullptr;
      older.push_back(other);
      other = RangeTree::find(tree.root(), other->end(), Side::at);
    }
    for (const CachedRange* each : older) tree.remove(each);
    const CachedRange* made = CachedRange::make(range);
    made->take();
    made->set_cached(true);
    tree.add(made);
    return made;
  }

  void make_room() {
    unsigned steps = 0;
    while (tree.bytes() > bytes_max && tree.entries() > 0) {
      const CachedRange* next = RangeTree::find(tree.root(), hand, Side::at);
      if (next == nullptr) {
        hand.clear();
      } else if (next->untouch() && steps < clock_steps_max) {
        hand = next->end();
        steps++;
      } else {
        hand = next->end();
        tree.remove(next);
        evictions++;
        steps = 0;
      }
    }
  }

  void publish() {
    make_room();
    root.store(tree.root());
    retired.push_back({epoch.load(), tree.take_replaced(), tree.take_removed()});
    for (const CachedRange* range : retired.back().ranges) range->set_cached(false);
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
      free(retired.front());
      retired.pop_front();
    }
  }

  static void free(const Retired& gone) {
    for (RangeNode* node : gone.nodes) RangeNode::free(node);
    for (const CachedRange* range : gone.ranges) range->drop();
  }

  static void free(RangeNode* node) {
    for (size_t i = 0; i < node->count(); i++) {
      if (node->height() > 0) {
        free(node->child(i));
      } else {
        node->last_of(i)->set_cached(false);
        node->last_of(i)->drop();
      }
    }
    RangeNode::free(node);
  }

  // --- lookups ---

  Result<RangeRef> look_up(ByteView address, Side side);
  Result<RangeRef> find_missing(ByteView address, Side side);

  Directory& directory;
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
             directory.find(address, side, meta2_range.generation == 0 ? nullptr : &meta2_range));
  directory_reads.fetch_add(answer.reads, std::memory_order_relaxed);
  const std::lock_guard lock(write_mutex);
  for (const RangeDescriptor& other : answer.others)
    if (const CachedRange* cached = insert(other)) cached->drop();
  const CachedRange* found = insert(answer.range);
  // Something newer overlaps it and does not hold the address: the caller will find out.
  if (found == nullptr) found = CachedRange::make(answer.range);
  found->touch();
  publish();
  return RangeRef(found);
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

RangeCache::RangeCache(Directory& directory, size_t bytes_max)
    : state_(std::make_unique<State>(directory, bytes_max)) {}

RangeCache::~RangeCache() {
  for (const State::Retired& gone : state_->retired) State::free(gone);
  if (state_->tree.root() != nullptr) State::free(state_->tree.root());
}

RangeRef RangeCache::get(ByteView address, Side side) {
  Lane& lane = state_->lanes[this_lane()];
  LastHit& last = last_hit;
  if (last.cache == state_->id && last.range.range_->cached() && last.range.holds(address, side)) {
    lane.hits.fetch_add(1, std::memory_order_relaxed);
    last.range.range_->touch();
    return last.range;
  }
  RangeRef range = state_->peek(address, side);
  if (range) {
    lane.hits.fetch_add(1, std::memory_order_relaxed);
    last = {state_->id, range};
  } else {
    lane.misses.fetch_add(1, std::memory_order_relaxed);
  }
  return range;
}

Result<RangeRef> RangeCache::find(ByteView address, Side side) {
  if (RangeRef range = get(address, side)) return range;
  return state_->find_missing(address, side);
}

bool RangeCache::insert(const RangeDescriptor& range) {
  const std::lock_guard lock(state_->write_mutex);
  const CachedRange* cached = state_->insert(range);
  if (cached != nullptr) cached->drop();
  state_->publish();
  return cached != nullptr;
}

Status RangeCache::evict(const RangeRef& failed, std::span<const RangeDescriptor> replacements) {
  ASSERT(failed);
  const std::lock_guard lock(state_->write_mutex);
  state_->stale_hops++;
  const RangeDescriptor wrong = failed.descriptor();
  // It may have gone and come back since: then what is there is as wrong.
  const CachedRange* there = RangeTree::find(state_->tree.root(), wrong.start, Side::at);
  if (there != nullptr && there->is(wrong)) state_->tree.remove(there);
  bool again = false;
  for (const RangeDescriptor& range : replacements) {
    if (failed.range_->is(range))
      again = true;
    else if (const CachedRange* cached = state_->insert(range))
      cached->drop();
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
