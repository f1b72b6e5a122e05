#include "map/scope.h"

#include <functional>

#include "base/assert.h"
#include "codec/address.h"
#include "codec/keyspace_keys.h"
#include "codec/system_keys.h"

namespace trellis {
namespace {

constexpr ByteView tenant_modes = "mrtx";
constexpr size_t tenant_prefix_bytes = 4;
constexpr size_t model_offset = 4;

bool is_tenant_key(ByteView key) {
  if (key.empty()) return false;
  return key[0] == 'x' || tenant_modes.find(key[0]) != ByteView::npos;  // most are transactional
}

bool in_keyspace(ByteView key, KeyspaceId keyspace) {
  return is_tenant_key(key) && key.size() >= tenant_prefix_bytes &&
         load_be(key.data() + 1, 3) == keyspace.value;
}

// Garbage and counters. Who writes a note has locked what it is about, and counters are added to,
// in any order: so no lock orders them.
bool is_unlocked_write(ByteView key) {
  return key.size() > model_offset && key[0] == 'x' &&
         (key[model_offset] == 'g' || key[model_offset] == 'k');
}

// The due index tells whose garbage a transaction leaves behind. Writing an entry twice is writing
// it once; who removes one that others write has the keyspace to itself.
bool is_due_entry(ByteView key, std::optional<KeyspaceId> keyspace) {
  const auto entry = decode<KeyspaceDueKey>(key);
  return entry && (!keyspace || entry->keyspace == *keyspace);
}

// What every key of [begin, end) starts with.
ByteView shared_prefix(ByteView begin, ByteView end) {
  size_t size = 0;
  while (size < begin.size() && size < end.size() && begin[size] == end[size]) size++;
  if (size == begin.size() || prefix_end(begin.substr(0, size + 1)) != end)
    return begin.substr(0, size);
  for (size++; size < begin.size() && begin[size] == '\xff';) size++;
  return begin.substr(0, size);
}

// Whether every key that starts with `prefix` has the granule that `prefix` itself has.
bool fixes_granule(ByteView prefix) {
  Bytes of_prefix;
  Bytes of_first;
  Bytes of_last;
  return append_granule(of_prefix, prefix) && append_granule(of_first, Bytes(prefix) + '\0') &&
         append_granule(of_last, Bytes(prefix) + '\xff') && of_prefix == of_first &&
         of_prefix == of_last;
}

}  // namespace

const Scope::Lock* Scope::find(size_t hash, ByteView wanted) const {
  for (const Lock& lock : locks_)
    if (lock.hash == hash && granule(lock) == wanted) return &lock;
  return nullptr;
}

Scope& Scope::add(ByteView key, Mode mode) {
  ASSERT(!is_tenant_key(key) || (keyspace_ && in_keyspace(key, *keyspace_)));
  if (locks_.size() == 1) {  // who names a second one names more
    locks_.reserve(8);
    granules_.reserve(256);
  }
  const size_t begin = granules_.size();
  const bool has_granule = append_granule(granules_, key).has_value();
  ASSERT(has_granule);
  const ByteView granule = ByteView(granules_).substr(begin);
  const size_t hash = std::hash<ByteView>{}(granule);
  if (const Lock* const known = find(hash, granule); known != nullptr) {
    if (mode == Mode::exclusive) locks_[static_cast<size_t>(known - locks_.data())].mode = mode;
    granules_.resize(begin);
    return *this;
  }
  locks_.push_back(
      {hash, static_cast<uint32_t>(begin), static_cast<uint32_t>(granule.size()), mode});
  return *this;
}

bool Scope::allows(ByteView key, Mode mode) const {
  if (is_tenant_key(key)) {
    if (!keyspace_ || !in_keyspace(key, *keyspace_)) return false;
    if (keyspace_mode_ == Mode::exclusive) return true;
  }
  Bytes granule;
  if (!append_granule(granule, key)) return false;
  const Lock* const lock = find(std::hash<ByteView>{}(granule), granule);
  return lock != nullptr && (mode == Mode::shared || lock->mode == Mode::exclusive);
}

bool Scope::allows_read(ByteView key) const { return allows(key, Mode::shared); }

bool Scope::allows_write(ByteView key) const {
  if (keyspace_ && in_keyspace(key, *keyspace_) && is_unlocked_write(key)) return true;
  if (is_due_entry(key, keyspace_)) return true;
  return allows(key, Mode::exclusive);
}

bool Scope::allows_interval(ByteView begin, ByteView end, Mode mode) const {
  if (!end.empty() && begin >= end) return true;  // nothing lies in it
  if (keyspace_ && keyspace_mode_ == Mode::exclusive) {
    for (const KeyMode key_mode : {KeyMode::meta, KeyMode::table, KeyMode::raw, KeyMode::txn}) {
      const auto [first, last] = keyspace_interval(key_mode, *keyspace_);
      if (begin >= first && !end.empty() && end <= last) return true;
    }
  }
  if (end.empty() || !allows(begin, mode)) return false;
  return end == successor(begin) || fixes_granule(shared_prefix(begin, end));
}

bool Scope::allows_scan(ByteView begin, ByteView end) const {
  return allows_interval(begin, end, Mode::shared);
}

bool Scope::allows_remove_range(ByteView begin, ByteView end) const {
  return allows_interval(begin, end, Mode::exclusive);
}

}  // namespace trellis
