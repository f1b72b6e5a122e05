#include "map/record_cache.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <utility>

#include "codec/redis_collection.h"
#include "codec/redis_keys.h"

namespace trellis {
namespace {

// A larger one costs less to read than to keep twice.
constexpr size_t cached_value_bytes_max = 4096;
constexpr size_t slots_min = 64;

// 'x' keyspace 'd', then the table: codec/redis_keys.h.
constexpr size_t kind_bytes = 6;
constexpr size_t table_offset = 5;

// What a group is, who its consumers are and what is pending of it. Entries are read in order, and
// so is what is pending by consumer.
bool is_of_group(ByteView key) {
  const ByteView sub = key.substr(redis_collection_of(key).size());
  constexpr ByteView delimiter = stream_delimiter.bytes;
  return sub.size() > delimiter.size() && static_cast<uint8_t>(sub[delimiter.size()]) <= 3 &&
         sub.starts_with(delimiter);
}

bool is_kind_held(ByteView key) {
  if (key.size() < kind_bytes || key[0] != 'x' || key[4] != 'd') return false;
  const char table = key[table_offset];
  return table == 'm' || table == 's' || (table == 't' && is_of_group(key));
}

}  // namespace

// One piece of memory: this, the key, the value.
struct RecordCache::Record {
  std::atomic<uint32_t> pins;
  uint32_t key_bytes;
  uint32_t value_bytes;
  bool found;
  bool read_lately;

  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
  ByteView key() const { return {bytes(), key_bytes}; }
  ByteView value() const { return {bytes() + key_bytes, value_bytes}; }
  // With what malloc adds, roughly.
  size_t size() const { return sizeof(Record) + key_bytes + value_bytes + 16; }

  static Record* make(ByteView key, std::optional<ByteView> value) {
    const size_t value_bytes = value ? value->size() : 0;
    void* const memory = ::operator new(sizeof(Record) + key.size() + value_bytes);
    auto* const record =
        new (memory) Record{1, static_cast<uint32_t>(key.size()),
                            static_cast<uint32_t>(value_bytes), value.has_value(), false};
    char* const bytes = reinterpret_cast<char*>(record + 1);
    std::memcpy(bytes, key.data(), key.size());
    if (value_bytes != 0) std::memcpy(bytes + key.size(), value->data(), value_bytes);
    return record;
  }
  // In its place, if it fits there and nobody else holds it. REQUIRES: the shard is locked.
  bool overwrite(ByteView value) {
    if (!found || value.size() != value_bytes || pins.load(std::memory_order_acquire) != 1)
      return false;
    std::memcpy(const_cast<char*>(bytes()) + key_bytes, value.data(), value.size());
    return true;
  }
  void unpin() {
    if (pins.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    this->~Record();
    ::operator delete(this);
  }
};

struct RecordCache::Pin {
  Pin() = default;
  Pin(Pin&& other) noexcept : record(std::exchange(other.record, nullptr)) {}
  Pin& operator=(Pin&&) = delete;
  ~Pin() {
    if (record != nullptr) record->unpin();
  }
  void hold(Record* next) {
    if (record != nullptr) record->unpin();
    record = next;
  }
  const char* data() const { return record->value().data(); }
  size_t size() const { return record->value().size(); }

  Record* record = nullptr;
};

class RecordCache::Shard {
 public:
  ~Shard() {
    for (const Slot& slot : slots_)
      if (slot.record != nullptr) slot.record->unpin();
  }
  void set_bytes_max(size_t bytes) { bytes_max_ = bytes; }

  // Brings what find() will read nearer.
  void prefetch_slot(uint64_t hash) {
    // Without the lock: what is prefetched may be elsewhere by now.
    const uintptr_t slots = slots_at_.load(std::memory_order_relaxed);
    const size_t mask = slots_mask_.load(std::memory_order_relaxed);
    __builtin_prefetch(reinterpret_cast<const void*>(slots + (hash & mask) * sizeof(Slot)));
  }
  void prefetch_record(uint64_t hash) {
    const std::lock_guard lock(mutex_);
    if (slots_.empty()) return;
    size_t i = hash & mask();
    while (slots_[i].record != nullptr && slots_[i].hash != hash) i = (i + 1) & mask();
    // For writing: the pin, and what may be written over. As much of it as small records have.
    const auto* const record = reinterpret_cast<const char*>(slots_[i].record);
    if (record == nullptr) return;
    for (size_t line = 0; line < 3; line++) __builtin_prefetch(record + 64 * line, 1);
  }

  // Pinned, or null.
  Record* find(uint64_t hash, ByteView key) {
    const std::lock_guard lock(mutex_);
    const Slot* const slot = slot_of(hash, key);
    if (slot == nullptr) {
      misses_++;
      return nullptr;
    }
    hits_++;
    slot->record->read_lately = true;
    slot->record->pins.fetch_add(1, std::memory_order_relaxed);
    return slot->record;
  }

  void put(uint64_t hash, ByteView key, std::optional<ByteView> value, bool is_new_welcome) {
    const std::lock_guard lock(mutex_);
    Slot* const slot = slot_of(hash, key);
    if (slot == nullptr && !is_new_welcome && used_bytes() > bytes_max_ / 4 * 3) return;
    if (slot != nullptr && value && slot->record->overwrite(*value)) return;
    Record* const record = Record::make(key, value);
    bytes_ += record->size();
    if (slot != nullptr) {
      Record* const old = std::exchange(slot->record, record);
      bytes_ -= old->size();
      record->read_lately = old->read_lately;
      old->unpin();
    } else {
      while ((records_ + 1) * 4 > slots_.size() * 3) may_grow() ? grow() : drop_one();
      insert({record, hash});
      records_++;
    }
    while (used_bytes() > bytes_max_ && records_ > 0) drop_one();
  }

  void forget(uint64_t hash, ByteView key) {
    const std::lock_guard lock(mutex_);
    if (Slot* const slot = slot_of(hash, key); slot != nullptr) erase(slot);
  }

  void forget_range(ByteView begin, ByteView end) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < slots_.size();) {
      const Record* const record = slots_[i].record;
      const bool goes =
          record != nullptr && record->key() >= begin && (end.empty() || record->key() < end);
      if (goes)
        erase(&slots_[i]);  // which may move another one here
      else
        i++;
    }
  }

  void add_to(Figures& figures) {
    const std::lock_guard lock(mutex_);
    figures.hits += hits_;
    figures.misses += misses_;
    figures.records += records_;
    figures.bytes += used_bytes();
  }

 private:
  struct Slot {
    Record* record = nullptr;
    uint64_t hash = 0;
  };

  size_t used_bytes() const { return bytes_ + slots_.size() * sizeof(Slot); }
  size_t mask() const { return slots_.size() - 1; }

  Slot* slot_of(uint64_t hash, ByteView key) {
    if (slots_.empty()) return nullptr;
    for (size_t i = hash & mask(); slots_[i].record != nullptr; i = (i + 1) & mask())
      if (slots_[i].hash == hash && slots_[i].record->key() == key) return &slots_[i];
    return nullptr;
  }

  // REQUIRES: there is an empty slot.
  void insert(const Slot& slot) {
    size_t i = slot.hash & mask();
    while (slots_[i].record != nullptr) i = (i + 1) & mask();
    slots_[i] = slot;
  }

  // The table itself takes no more than a part of the memory.
  bool may_grow() const {
    return slots_.size() < slots_min || 2 * slots_.size() * sizeof(Slot) <= bytes_max_ / 2;
  }
  void grow() {
    const std::vector<Slot> old =
        std::exchange(slots_, std::vector<Slot>(slots_.empty() ? slots_min : 2 * slots_.size()));
    for (const Slot& slot : old)
      if (slot.record != nullptr) insert(slot);
    hand_ = 0;
    slots_at_.store(reinterpret_cast<uintptr_t>(slots_.data()), std::memory_order_relaxed);
    slots_mask_.store(mask(), std::memory_order_relaxed);
  }

  // Those behind it move up, so that each is found from where its hash points to.
  void erase(Slot* slot) {
    bytes_ -= slot->record->size();
    records_--;
    slot->record->unpin();
    auto hole = static_cast<size_t>(slot - slots_.data());
    for (size_t i = (hole + 1) & mask(); slots_[i].record != nullptr; i = (i + 1) & mask()) {
      const size_t home = slots_[i].hash & mask();
      if (((i - home) & mask()) < ((i - hole) & mask())) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = {};
  }

  // REQUIRES: there is one.
  void drop_one() {
    for (;; hand_ = (hand_ + 1) & mask()) {
      Slot& slot = slots_[hand_];
      if (slot.record == nullptr) continue;
      if (!slot.record->read_lately) return erase(&slot);
      slot.record->read_lately = false;
    }
  }

  std::mutex mutex_;
  std::vector<Slot> slots_;             // a power of two of them, a quarter at least empty
  std::atomic<uintptr_t> slots_at_{0};  // where slots_ are, for prefetch_slot
  std::atomic<size_t> slots_mask_{0};
  size_t hand_ = 0;
  size_t records_ = 0;
  size_t bytes_ = 0;
  size_t bytes_max_ = 0;
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
};

RecordCache::RecordCache(size_t bytes_max) : shards_(std::make_unique<Shard[]>(shards)) {
  for (size_t i = 0; i < shards; i++) shards_[i].set_bytes_max(bytes_max / shards);
}

RecordCache::~RecordCache() = default;

bool RecordCache::holds(ByteView key) { return is_kind_held(key); }

// The low bits choose the slot.
RecordCache::Shard& RecordCache::shard(uint64_t hash) const { return shards_[hash >> 58]; }

bool RecordCache::get(ByteView key, Value& value) {
  return get(std::hash<ByteView>{}(key), key, value);
}

void RecordCache::get_many(std::span<const ByteView> keys, std::span<Value> values,
                           std::span<bool> known) {
  constexpr size_t group = 64;
  for (size_t begin = 0; begin < keys.size(); begin += group) {
    const size_t end = std::min(begin + group, keys.size());
    uint64_t hashes[group];
    for (size_t i = begin; i < end; i++) {
      hashes[i - begin] = std::hash<ByteView>{}(keys[i]);
      shard(hashes[i - begin]).prefetch_slot(hashes[i - begin]);
    }
    for (size_t i = begin; i < end; i++)
      shard(hashes[i - begin]).prefetch_record(hashes[i - begin]);
    for (size_t i = begin; i < end; i++)
      known[i] = holds(keys[i]) && get(hashes[i - begin], keys[i], values[i]);
  }
}

bool RecordCache::get(uint64_t hash, ByteView key, Value& value) {
  Record* const record = shard(hash).find(hash, key);
  if (record == nullptr) return false;
  value.pin<Pin>().hold(record);
  if (record->found)
    value.set_found(record->value());
  else
    value.set_absent();
  return true;
}

void RecordCache::store(ByteView key, std::optional<ByteView> value, bool is_new_welcome) {
  const uint64_t hash = std::hash<ByteView>{}(key);
  if (value && value->size() > cached_value_bytes_max)
    shard(hash).forget(hash, key);
  else
    shard(hash).put(hash, key, value, is_new_welcome);
}

void RecordCache::put_read(ByteView key, const Value& value) {
  store(key, value.found() ? std::optional(value.bytes()) : std::nullopt, true);
}
bool RecordCache::is_of_key(ByteView key) { return key[table_offset] == 'm'; }

void RecordCache::put_written(ByteView key, std::optional<ByteView> value) {
  // What was popped from a queue is not asked for again.
  if (!value && !is_of_key(key)) return forget(key);
  store(key, value, false);
}

void RecordCache::forget(ByteView key) {
  const uint64_t hash = std::hash<ByteView>{}(key);
  shard(hash).forget(hash, key);
}

void RecordCache::forget_range(ByteView begin, ByteView end) {
  // Most intervals are of other kinds of keys.
  constexpr size_t model_bytes = table_offset;
  const bool is_of_redis = begin.size() >= model_bytes && begin[model_bytes - 1] == 'd';
  if (begin.substr(0, model_bytes) == end.substr(0, model_bytes) && !is_of_redis) return;
  for (size_t i = 0; i < shards; i++) shards_[i].forget_range(begin, end);
}

RecordCache::Figures RecordCache::figures() const {
  Figures figures;
  for (size_t i = 0; i < shards; i++) shards_[i].add_to(figures);
  return figures;
}

}  // namespace trellis
