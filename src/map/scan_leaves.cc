#include "map/scan_leaves.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "codec/redis_collection.h"

namespace trellis {
namespace {

// What a scan reads to make a leaf of, if it was asked for less.
constexpr size_t leaf_entries = 64;
constexpr size_t leaf_bytes = 4 * 1024;
// What is larger is not kept.
constexpr size_t leaf_bytes_max = 32 * 1024;
constexpr size_t overhead_bytes = 320;  // of a leaf: nodes, pointers, what malloc adds
// A scan that finds many small leaves is better off without them.
constexpr int steps_max = 8;

size_t hash_of(ByteView collection) { return std::hash<ByteView>{}(collection); }

}  // namespace

ScanLeaves::Name::Name(ByteView collection) : Name(collection, hash_of(collection)) {}

// What does not begin with the collection's name is the end of it.
ScanLeaves::Place::Place(const Name& collection, ByteView at) : bytes(at), head(UINT64_MAX) {
  if (!at.starts_with(collection.bytes)) return;
  const ByteView behind = at.substr(collection.bytes.size(), sizeof(head));
  head = 0;
  for (size_t i = 0; i < sizeof(head); i++)
    head = head << 8 | (i < behind.size() ? static_cast<uint8_t>(behind[i]) : 0);
}

// Entries are | key size u32 | value size u32 | key | value |, in order.
struct ScanLeaves::Leaf {
  Bytes begin;
  Bytes end;
  Bytes entries;
  std::vector<uint32_t> places;
  size_t hash = 0;  // of its collection

  static constexpr size_t head_bytes = 2 * sizeof(uint32_t);

  size_t size() const { return places.size(); }
  uint32_t number_at(size_t place) const {
    uint32_t number = 0;
    std::memcpy(&number, entries.data() + place, sizeof(number));
    return number;
  }
  ByteView key(size_t i) const {
    return ByteView(entries).substr(places[i] + head_bytes, number_at(places[i]));
  }
  ByteView value(size_t i) const {
    const size_t place = places[i] + head_bytes + number_at(places[i]);
    return ByteView(entries).substr(place, number_at(places[i] + sizeof(uint32_t)));
  }
  size_t bytes() const {
    return overhead_bytes + begin.size() + end.size() + entries.size() +
           places.size() * sizeof(uint32_t);
  }
  // The first that is not before `key`.
  size_t index_of(ByteView wanted) const {
    size_t low = 0;
    size_t high = size();
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (key(middle) < wanted)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  static void append_entry(Bytes& out, ByteView key, ByteView value) {
    const uint32_t sizes[] = {static_cast<uint32_t>(key.size()),
                              static_cast<uint32_t>(value.size())};
    out.append(reinterpret_cast<const char*>(sizes), sizeof(sizes));
    out.append(key);
    out.append(value);
  }
  void append(ByteView key, ByteView value) {
    places.push_back(static_cast<uint32_t>(entries.size()));
    append_entry(entries, key, value);
  }
  void append(const Leaf& next) {
    for (const uint32_t place : next.places)
      places.push_back(place + static_cast<uint32_t>(entries.size()));
    entries += next.entries;
  }
  void replace(ByteView wanted, std::optional<ByteView> with) {
    const size_t i = index_of(wanted);
    const bool is_there = i < size() && key(i) == wanted;
    const size_t place = i < size() ? places[i] : entries.size();
    const size_t old_bytes = is_there ? head_bytes + wanted.size() + value(i).size() : 0;
    Bytes added;
    if (with) append_entry(added, wanted, *with);
    entries.replace(place, old_bytes, added);
    const auto at = places.begin() + static_cast<ptrdiff_t>(i);
    if (is_there && !with) places.erase(at);
    if (!is_there && with) places.insert(at, static_cast<uint32_t>(place));
    for (size_t j = with ? i + 1 : i; j < size(); j++)
      places[j] += static_cast<uint32_t>(added.size() - old_bytes);
  }
};

// --- one scan ---

class ScanLeaves::Scan {
 public:
  Scan(ScanLeaves& leaves, const Name& collection, Engine& engine, const ScanRequest& request,
       ScanVisitor visit)
      : leaves_(leaves),
        collection_(collection),
        engine_(engine),
        request_(request),
        visit_(visit),
        begin_(request.begin),
        end_(request.end) {}

  Result<ScanPage> run() {
    Shard& shard = leaves_.shard(collection_.hash);
    bool reads = false;
    for (int step = 0; !is_stopped_ && begin_ < end_; step++) {
      Found found;
      if (step < steps_max)
        found = leaves_.find(collection_, request_.reverse ? end_ : begin_, request_.reverse);
      if (found.leaf == nullptr) {
        reads = true;
        TRY(read_gap(found.gap_end, request_.reading == ScanRequest::Reading::often &&
                                        step < steps_max && leaves_.welcomes_new()));
      } else if (request_.reverse) {
        visit_back(*found.leaf);
        if (is_stopped_ || found.leaf->begin <= begin_) break;
        go_on_at(found.leaf->begin);
      } else {
        visit_forward(*found.leaf);
        if (is_stopped_ || found.leaf->end >= end_) break;
        go_on_at(found.leaf->end);
      }
    }
    (reads ? shard.misses : shard.hits).fetch_add(1, std::memory_order_relaxed);
    return std::move(page_);
  }

 private:
  void go_on_at(Bytes place) {
    held_ = std::move(place);
    (request_.reverse ? end_ : begin_) = held_;
  }

  void visit_forward(const Leaf& leaf) {
    const size_t first = begin_ <= leaf.begin ? 0 : leaf.index_of(begin_);
    for (size_t i = first; i < leaf.size() && !is_stopped_; i++) {
      const ByteView key = leaf.key(i);
      if (key >= end_) return;
      emit(key, leaf.value(i));
    }
  }
  void visit_back(const Leaf& leaf) {
    const size_t behind = end_ >= leaf.end ? leaf.size() : leaf.index_of(end_);
    for (size_t i = behind; i > 0 && !is_stopped_; i--) {
      const ByteView key = leaf.key(i - 1);
      if (key < begin_) return;
      emit(key, leaf.value(i - 1));
    }
  }

  // What lies before the next leaf; with `keeps` it becomes one.
  Status read_gap(const Bytes& gap_end, bool keeps) {
    ScanRequest asked = request_;
    asked.begin = begin_;
    asked.end = end_;
    const bool is_bounded = !gap_end.empty() && gap_end > begin_ && gap_end < end_;
    if (is_bounded) (request_.reverse ? asked.begin : asked.end) = gap_end;
    asked.entries_max = request_.entries_max - page_.entries;
    asked.bytes_max =
        std::max<size_t>(request_.bytes_max - std::min(bytes_, request_.bytes_max), 1);
    if (keeps) {
      asked.entries_max = std::max(asked.entries_max, leaf_entries);
      asked.bytes_max = std::max(asked.bytes_max, leaf_bytes);
    }
    Leaf read;  // in the order of the scan
    TRY_ASSIGN(const ScanPage page, engine_.scan(asked, [&](ByteView key, ByteView value) {
      if (!is_stopped_) emit(key, value);
      if (keeps) read.append(key, value);
      keeps = keeps && read.entries.size() <= leaf_bytes_max;
      const bool wants_more =
          keeps && read.size() < leaf_entries && read.entries.size() < leaf_bytes;
      return is_stopped_ && !wants_more ? Visit::stop : Visit::go_on;
    }));
    Bytes seen_begin(asked.begin);
    Bytes seen_end(asked.end);
    if (page.resume) (request_.reverse ? seen_begin : seen_end) = *page.resume;
    if (keeps) keep(seen_begin, seen_end, read);
    go_on_at(std::move(request_.reverse ? seen_begin : seen_end));
    return {};
  }

  void keep(const Bytes& begin, const Bytes& end, const Leaf& read) {
    auto leaf = std::make_shared<Leaf>();
    leaf->begin = begin;
    leaf->end = end;
    leaf->hash = collection_.hash;
    leaf->entries.reserve(read.entries.size());
    leaf->places.reserve(read.size());
    for (size_t i = 0; i < read.size(); i++) {
      const size_t at = request_.reverse ? read.size() - 1 - i : i;
      leaf->append(read.key(at), read.value(at));
    }
    leaves_.put(collection_, std::move(leaf));
  }

  void emit(ByteView key, ByteView value) {
    const size_t size = key.size() + value.size();
    if (page_.entries > 0 && bytes_ + size > request_.bytes_max) return stop_before(key);
    page_.entries++;
    bytes_ += size;
    if (visit_(key, value) == Visit::stop || page_.entries >= request_.entries_max)
      stop_behind(key);
  }
  void stop_before(ByteView key) {
    is_stopped_ = true;
    page_.resume = request_.reverse ? successor(key) : Bytes(key);
  }
  void stop_behind(ByteView key) {
    is_stopped_ = true;
    page_.resume = request_.reverse ? Bytes(key) : successor(key);
  }

  ScanLeaves& leaves_;
  const Name collection_;
  Engine& engine_;
  const ScanRequest& request_;
  ScanVisitor visit_;
  ByteView begin_;  // of what is left
  ByteView end_;
  Bytes held_;  // one of them, unless it is the request's
  ScanPage page_;
  size_t bytes_ = 0;
  bool is_stopped_ = false;
};

Result<ScanPage> ScanLeaves::scan(Engine& engine, const ScanRequest& request, ScanVisitor visit) {
  const ByteView collection = redis_collection_of(request.begin, request.end);
  const bool is_much = request.reading == ScanRequest::Reading::much_once;
  if (collection.empty() || is_much) return engine.scan(request, visit);
  return Scan(*this, Name(collection), engine, request, visit).run();
}

// --- the leaves ---

ScanLeaves::Found ScanLeaves::find(const Name& collection, ByteView at, bool reverse) {
  Shard& shard = this->shard(collection.hash);
  const std::shared_lock lock(shard.mutex);
  const auto found = shard.collections.find(collection);
  if (found == shard.collections.end()) return {};
  Slots& slots = found->second;
  // The last one that begins at or before `at`; in reverse, before it.
  const Place place(collection, at);
  const auto next = reverse ? slots.lower_bound(place) : slots.upper_bound(place);
  if (next != slots.begin()) {
    Slot& slot = std::prev(next)->second;
    const bool has_it = reverse ? at <= slot.leaf->end : at < slot.leaf->end;
    if (has_it) {
      slot.is_used.store(true, std::memory_order_relaxed);
      return {slot.leaf, {}};
    }
    if (reverse) return {nullptr, slot.leaf->end};
  }
  return {nullptr, !reverse && next != slots.end() ? next->first.bytes : Bytes()};
}

bool ScanLeaves::may_have(ByteView collection) const {
  const size_t hash = hash_of(collection);
  return shards_[hash % shards].counts[hash / shards % counts_of_shard].load(
             std::memory_order_relaxed) != 0;
}

ScanLeaves::Slots::iterator ScanLeaves::erase(Shard& shard, Slots& slots, Slots::iterator slot) {
  bytes_ -= slot->second.leaf->bytes();
  count(slot->second.leaf->hash)--;
  if (shard.hand == slot->second.in_ring) shard.hand++;
  shard.ring.erase(slot->second.in_ring);
  return slots.erase(slot);
}

void ScanLeaves::erase_alone(Shard& shard, Collections::iterator collection, Slots::iterator slot) {
  erase(shard, collection->second, slot);
  if (collection->second.empty()) shard.collections.erase(collection);
}

// Of two neighbours.
bool ScanLeaves::joins(const Leaf& leaf, const Leaf& next) {
  return leaf.entries.size() + next.entries.size() <= leaf_bytes;
}

// Others may have put one that has some of it. Neighbours that are small become one with it, so
// that what was emptied leaf by leaf is passed at once.
void ScanLeaves::put(const Name& collection, std::shared_ptr<Leaf> leaf) {
  Shard& shard = this->shard(collection.hash);
  {
    const std::unique_lock lock(shard.mutex);
    const auto found = shard.collections.find(collection);
    Slots& slots = found != shard.collections.end() ? found->second
                                                    : shard.collections[Bytes(collection.bytes)];
    auto next = slots.upper_bound(Place(collection, leaf->begin));
    if (next != slots.end() && next->second.leaf->begin < leaf->end) return;
    if (next != slots.begin()) {
      const auto before = std::prev(next);
      const Leaf& old = *before->second.leaf;
      if (old.end > leaf->begin) return;
      if (old.end == leaf->begin && joins(old, *leaf)) {
        auto joined = std::make_shared<Leaf>(old);
        joined->append(*leaf);
        joined->end = leaf->end;
        leaf = std::move(joined);
        erase(shard, slots, before);
      }
    }
    if (next != slots.end() && next->second.leaf->begin == leaf->end) {
      const Leaf& old = *next->second.leaf;
      if (joins(*leaf, old)) {
        leaf->append(old);
        leaf->end = old.end;
        erase(shard, slots, next);
      }
    }
    bytes_ += leaf->bytes();
    count(collection.hash)++;
    Slot& slot = slots[{leaf->begin, Place(collection, leaf->begin).head}];
    slot.in_ring = shard.ring.insert(shard.hand, leaf.get());
    slot.leaf = std::move(leaf);
  }
  if (bytes_ > bytes_max_) make_room();
}

void ScanLeaves::make_room() {
  constexpr size_t looks_max = 64;  // at once, so that nobody waits for long
  for (size_t tries = 0; tries < 2 * shards && bytes_ > bytes_max_; tries++) {
    Shard& shard = shards_[next_to_shrink_++ % shards];
    const std::unique_lock lock(shard.mutex);
    for (size_t looks = 0; looks < looks_max && !shard.ring.empty() && bytes_ > bytes_max_;
         looks++) {
      if (shard.hand == shard.ring.end()) shard.hand = shard.ring.begin();
      const Leaf& leaf = **shard.hand;
      const Name collection(redis_collection_of(leaf.begin), leaf.hash);
      const auto found = shard.collections.find(collection);
      const auto slot = found->second.find(Place(collection, leaf.begin));
      if (slot->second.is_used.exchange(false, std::memory_order_relaxed))
        shard.hand++;
      else
        erase_alone(shard, found, slot);
    }
  }
}

ScanLeaves::Slots::iterator ScanLeaves::slot_of(Slots& slots, const Place& at) {
  const auto next = slots.upper_bound(at);
  if (next == slots.begin()) return slots.end();
  const auto slot = std::prev(next);
  return at.bytes < slot->second.leaf->end ? slot : slots.end();
}

void ScanLeaves::written(ByteView collection, ByteView key, std::optional<ByteView> value) {
  const Name name(collection);
  Shard& shard = this->shard(name.hash);
  const std::unique_lock lock(shard.mutex);
  const auto found = shard.collections.find(name);
  if (found == shard.collections.end()) return;
  const auto slot = slot_of(found->second, Place(name, key));
  if (slot == found->second.end()) return;
  Leaf& leaf = *slot->second.leaf;  // the exclusive latch: nobody looks at it
  if (leaf.entries.size() + (value ? value->size() : 0) > 2 * leaf_bytes)
    return erase_alone(shard, found, slot);
  bytes_ -= leaf.bytes();
  leaf.replace(key, value);
  bytes_ += leaf.bytes();
  if (leaf.entries.empty()) join_neighbour(shard, name, found->second, slot);
}

// A leaf without entries, so that whoever pops does not leave a row of them. REQUIRES: the latch of
// the collection, exclusive.
void ScanLeaves::join_neighbour(Shard& shard, const Name& collection, Slots& slots,
                                Slots::iterator slot) {
  const Leaf& leaf = *slot->second.leaf;
  if (slot != slots.begin()) {
    Leaf& before = *std::prev(slot)->second.leaf;
    if (before.end == leaf.begin) {
      bytes_ += leaf.end.size() - before.end.size();
      before.end = leaf.end;
      erase(shard, slots, slot);
      return;
    }
  }
  const auto next = std::next(slot);
  if (next == slots.end() || next->second.leaf->begin != leaf.end) return;
  Leaf& behind = *next->second.leaf;
  auto node = slots.extract(next);
  bytes_ += leaf.begin.size() - behind.begin.size();
  behind.begin = leaf.begin;
  node.key() = {leaf.begin, Place(collection, leaf.begin).head};
  erase(shard, slots, slot);
  slots.insert(std::move(node));
}

void ScanLeaves::put_new(ByteView collection, FunctionRef<void(ScanVisitor)> entries) {
  if (bytes_ >= bytes_max_ / 8 * 7) return;
  auto leaf = std::make_shared<Leaf>();
  bool is_all = true;
  entries([&](ByteView key, ByteView value) {
    is_all = leaf->entries.size() + key.size() + value.size() <= leaf_bytes;
    if (is_all) leaf->append(key, value);
    return is_all ? Visit::go_on : Visit::stop;
  });
  if (!is_all) return;
  leaf->entries.shrink_to_fit();
  leaf->places.shrink_to_fit();
  leaf->begin = collection;
  leaf->end = prefix_end(collection);
  const Name name(collection);
  leaf->hash = name.hash;
  put(name, std::move(leaf));
}

void ScanLeaves::doubt(ByteView collection, ByteView key) {
  const Name name(collection);
  Shard& shard = this->shard(name.hash);
  const std::unique_lock lock(shard.mutex);
  const auto found = shard.collections.find(name);
  if (found == shard.collections.end()) return;
  const auto slot = slot_of(found->second, Place(name, key));
  if (slot != found->second.end()) erase_alone(shard, found, slot);
}

void ScanLeaves::forget_range(ByteView begin, ByteView end) {
  // Most intervals are of other models.
  constexpr size_t model_bytes = 5;
  const bool is_of_redis = begin.size() >= model_bytes && begin[model_bytes - 1] == 'd';
  if (begin.substr(0, model_bytes) == end.substr(0, model_bytes) && !is_of_redis) return;
  for (Shard& shard : shards_) {
    const std::unique_lock lock(shard.mutex);
    for (auto& [collection, slots] : shard.collections)
      for (auto slot = slots.begin(); slot != slots.end();) slot = erase(shard, slots, slot);
    shard.collections.clear();
  }
}

ScanLeaves::Figures ScanLeaves::figures() const {
  Figures figures{.bytes = bytes_};
  for (const Shard& shard : shards_) {
    figures.hits += shard.hits.load(std::memory_order_relaxed);
    figures.misses += shard.misses.load(std::memory_order_relaxed);
  }
  return figures;
}

}  // namespace trellis
