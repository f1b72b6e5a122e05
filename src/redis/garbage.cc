#include "redis/garbage.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "codec/address.h"
#include "codec/redis_keys.h"
#include "redis/fences.h"
#include "redis/field_expiry.h"
#include "redis/key.h"

namespace trellis {
namespace {

constexpr size_t flushed_entries_max = 1'000;  // in one transaction
constexpr size_t flushed_bytes_max = 1024 * 1024;
constexpr size_t few_records = 1'000;  // of a life
// From there on a range is worth it: each is one more to look at for who reads, until a flush.
constexpr uint64_t measured_bytes_min = 1024 * 1024;
constexpr size_t life_entries_max = 65'536;  // in one transaction
constexpr size_t life_bytes_max = 8 * 1024 * 1024;
// What leaves the disk at once, with what stood beside it; from where on it waits for that.
constexpr uint64_t reclaimed_bytes_min = 16 << 20;
constexpr uint64_t removed_bytes_min = 1 << 20;
constexpr size_t removed_max = 256;
constexpr size_t flushed_keys_max = 32;  // in one transaction
constexpr size_t flushed_pages_max = 8;  // at a time
constexpr size_t expired_max = 16;       // in one transaction
constexpr size_t under_way_max = 1'000;  // databases, whose place is remembered

// Some entries of a table that one transaction may remove: of few keys, because each is latched.
struct FlushedPage {
  std::vector<Bytes> keys;
  std::vector<Bytes> granules;
};

constexpr ByteView flushed_tables = "mstzch";  // in order; with the records of keys go the counts

// The first entries of a part; without an end it is all of the database.
Result<FlushedPage> read_flushed(Tenant& tenant, uint16_t slot, const KeyPart& part) {
  FlushedPage page;
  Status bad;
  const auto take = [&](ByteView key, ByteView) {
    Bytes granule;
    bad = append_granule(granule, key);
    if (!bad) return Visit::stop;
    if (page.granules.empty() || page.granules.back() != granule) {
      if (page.granules.size() == flushed_keys_max) return Visit::stop;
      page.granules.push_back(std::move(granule));
    }
    page.keys.emplace_back(key);
    return Visit::go_on;
  };
  const auto read = [&](ByteView begin, ByteView end) -> Status {
    TRY(tenant.map().engine.scan({.begin = begin,
                                  .end = end,
                                  .entries_max = flushed_entries_max,
                                  .bytes_max = flushed_bytes_max},
                                 take));
    return bad;
  };
  if (!part.end.empty()) {
    TRY(read(part.from, part.end));
    return page;
  }
  for (const char table : flushed_tables) {
    const Bytes prefix = redis_slot_prefix(tenant.id(), table, slot);
    TRY(read(prefix, prefix_end(prefix)));
    if (!page.keys.empty()) break;
  }
  return page;
}

// An entry that is still there, and what it stands for.
Status remove_flushed(CountedView& view, ByteView key, uint16_t slot) {
  Value old;
  TRY(view.get(key, old));
  if (!old.found()) return {};
  if (const auto record = decode<RedisMetadataKey>(key)) {
    const auto metadata = decode_redis_metadata(old.bytes());
    if (metadata && metadata->expire_ms != 0)
      view.forget_garbage(metadata->expire_ms, expiry_target(slot, record->inner.key));
    if (metadata && metadata->next_field_ms != 0)
      view.forget_garbage(metadata->next_field_ms,
                          fields_target(slot, record->inner.key, metadata->version));
    view.count_keys(-1, slot);
  }
  view.remove(key, old);
  return {};
}

// A page of what was in a database that was flushed; true if nothing more is to be removed: others
// may have emptied the slot since, and a database may have it. Several pages at a time.
Result<bool> remove_flushed_page(Tenant& tenant, const Garbage& note, uint16_t slot,
                                 const FlushedPage& page) {
  const Bytes note_key = encode(GarbageKey{tenant.id(), note.due_ms, Model::redis, note.target});
  const Bytes slots_key = encode(RedisDatabasesKey{tenant.id()});
  Scope scope = Scope::in(tenant.id());
  scope.shared(note_key).shared(slots_key);
  for (const Bytes& key : page.keys) scope.exclusive(key);
  bool over = false;
  TRY(tenant.collect(Model::redis, scope, [&](CountedView& view) -> Status {
    Value noted;
    Value stored_slots;
    TRY(view.get(note_key, noted));
    TRY(view.get(slots_key, stored_slots));
    TRY_ASSIGN(const DatabaseSlots slots, decode_slots(stored_slots));
    over = !noted.found() || slots.database_of(slot).has_value();
    if (over) return {};
    for (const Bytes& key : page.keys) TRY(remove_flushed(view, key, slot));
    return {};
  }));
  return over;
}

Status forget_flushed(Tenant& tenant, const Garbage& note, uint16_t slot) {
  const Bytes note_key = encode(GarbageKey{tenant.id(), note.due_ms, Model::redis, note.target});
  const Bytes slots_key = encode(RedisDatabasesKey{tenant.id()});
  Scope scope = Scope::in(tenant.id());
  scope.exclusive(note_key).shared(slots_key);
  return tenant.collect(Model::redis, scope, [&](CountedView& view) -> Status {
    Value noted;
    Value stored_slots;
    TRY(view.get(note_key, noted));
    TRY(view.get(slots_key, stored_slots));
    TRY_ASSIGN(const DatabaseSlots slots, decode_slots(stored_slots));
    if (!noted.found()) return {};
    view.forget_garbage(note.due_ms, note.target);
    if (!slots.database_of(slot)) view.forget_slot(slot);
    return {};
  });
}

// The first entries of a part; true if the note is gone.
Result<bool> remove_some_flushed(Tenant& tenant, const Garbage& note, uint16_t slot,
                                 KeyPart& part) {
  TRY_ASSIGN(const FlushedPage page, read_flushed(tenant, slot, part));
  const bool is_all = part.end.empty();
  bool over = is_all;
  if (!page.keys.empty()) {
    TRY_ASSIGN(over, remove_flushed_page(tenant, note, slot, page));
  }
  if (over) TRY(forget_flushed(tenant, note, slot));
  if (!is_all) part.from = page.keys.empty() ? part.end : page.keys.back();
  return over;
}

// With the key of a life and its note to itself: what `collect` answers, whether the note is gone.
// Who was faster took it back.
Result<bool> while_noted(Tenant& tenant, const Garbage& note, const RedisGarbage& life,
                         FunctionRef<Result<bool>(CountedView&)> collect) {
  const Bytes note_key = encode(GarbageKey{tenant.id(), note.due_ms, Model::redis, note.target});
  Scope scope = Scope::in(tenant.id());
  scope.shared(encode(RedisDatabasesKey{tenant.id()}))
      .exclusive(redis_metadata_key(tenant.id(), life.slot, life.name))
      .exclusive(note_key);
  bool is_gone = false;
  TRY(tenant.collect(Model::redis, scope, [&](CountedView& view) -> Status {
    is_gone = true;
    Value noted;
    TRY(view.get(note_key, noted));
    if (!noted.found()) return {};
    TRY_ASSIGN(is_gone, collect(view));
    return {};
  }));
  return is_gone;
}

// All that is in a database that was flushed goes record by record, as its own note says: what a
// life's records came to in bytes does not hold then.
Result<bool> is_flushed(CountedView& view, KeyspaceId keyspace, uint16_t slot) {
  Value stored_slots;
  TRY(view.get(encode(RedisDatabasesKey{keyspace}), stored_slots));
  TRY_ASSIGN(const DatabaseSlots slots, decode_slots(stored_slots));
  return !slots.database_of(slot).has_value();
}

// The intervals of a life, or of what was trimmed off a stream, one of each table.
std::vector<KeyPart> parts_of(KeyspaceId keyspace, const RedisGarbage& life) {
  std::vector<KeyPart> parts;
  for (const char table : redis_tables) {
    if (!is_of_lives(table)) continue;
    const Bytes prefix = redis_life_prefix(keyspace, table, life.slot, life.name, life.version);
    const bool is_trimmed = life.kind == RedisGarbage::Kind::trimmed;
    if (!is_trimmed) parts.push_back({prefix, prefix_end(prefix)});
    if (is_trimmed && table == stream_tag.bytes[0])
      parts.push_back(
          {prefix, prefix + encode(StreamEntrySub{life.last.ms, life.last.seq}) + '\0'});
  }
  return parts;
}

// The first records of a life.
struct LifePage {
  std::vector<std::pair<Bytes, size_t>> few;  // up to few_records, with the bytes of the value
  size_t entries = 0;
  struct Read {
    KeyPart part;
    uint64_t bytes;
  };
  std::vector<Read> all;
  bool is_whole = false;
};

Result<LifePage> read_life(CountedView& view, std::span<const KeyPart> parts) {
  LifePage page;
  for (const KeyPart& part : parts) {
    uint64_t bytes = 0;
    const auto take = [&](ByteView key, ByteView value) {
      if (page.entries++ < few_records) page.few.emplace_back(key, value.size());
      bytes += key.size() + value.size();
      return Visit::go_on;
    };
    TRY_ASSIGN(ScanPage scanned, view.scan({.begin = part.from,
                                            .end = part.end,
                                            .entries_max = life_entries_max,
                                            .bytes_max = life_bytes_max,
                                            .reading = ScanRequest::Reading::much_once},
                                           take));
    const Bytes& end = scanned.resume ? *scanned.resume : part.end;
    if (bytes > 0) page.all.push_back({{part.from, end}, bytes});
    if (scanned.resume) return page;
  }
  page.is_whole = true;
  return page;
}

}  // namespace

// Of a life whose bytes are known: nothing of it is read but whether there is something. True if
// the note is gone.
Result<bool> RedisGarbageOwner::remove_measured(Tenant& tenant, const Garbage& note,
                                                const RedisGarbage& life) {
  std::vector<KeyPart> removed;
  const auto remove = [&](CountedView& view) -> Result<bool> {
    removed.clear();
    TRY_ASSIGN(const bool flushed, is_flushed(view, tenant.id(), life.slot));
    if (flushed) return false;
    for (KeyPart& part : parts_of(tenant.id(), life)) {
      TRY_ASSIGN(const ScanPage page,
                 view.scan({.begin = part.from, .end = part.end, .entries_max = 1},
                           [](ByteView, ByteView) { return Visit::stop; }));
      if (page.entries == 0) continue;
      view.remove_unread(part.from, part.end, removed.empty() ? note.bytes : 0);
      removed.push_back(std::move(part));
    }
    view.forget_garbage(note.due_ms, note.target);
    return true;
  };
  TRY_ASSIGN(const bool is_gone, while_noted(tenant, note, life, remove));
  if (is_gone) note_removed(removed, note.bytes);
  return is_gone;
}

// The records of one life, in all tables, or some of a stream. A page at a time; true if the note
// is gone. What a page has goes with it: others may remove some, too (a flush, a stream's next
// note).
Result<bool> RedisGarbageOwner::remove_life(Tenant& tenant, const Garbage& note,
                                            const RedisGarbage& life) {
  const bool is_measured = life.kind == RedisGarbage::Kind::measured;
  if (is_measured && note.bytes >= measured_bytes_min) {
    TRY_ASSIGN(const bool is_gone, remove_measured(tenant, note, life));
    if (is_gone) return true;
  }
  const std::vector<KeyPart> parts = parts_of(tenant.id(), life);
  const auto remove = [&](CountedView& view) -> Result<bool> {
    TRY_ASSIGN(const LifePage page, read_life(view, parts));
    if (page.entries <= few_records) {
      for (const auto& [key, value_bytes] : page.few) view.remove_found(key, value_bytes);
    } else {
      for (const LifePage::Read& read : page.all)
        view.remove_unread(read.part.from, read.part.end, read.bytes);
    }
    if (page.is_whole) view.forget_garbage(note.due_ms, note.target);
    return page.is_whole;
  };
  TRY_ASSIGN(const bool is_gone, while_noted(tenant, note, life, remove));
  if (is_gone) note_removed(parts, note.bytes);
  return is_gone;
}

// Fences are few.
void RedisGarbageOwner::note_removed(std::span<const KeyPart> parts, uint64_t bytes) {
  if (bytes < removed_bytes_min) return;
  const std::lock_guard lock(mutex_);
  for (const KeyPart& part : parts)
    if (part.from[redis_table_offset] != 'c') removed_.push_back({{part.from, part.end}, bytes});
  has_newly_removed_ = true;
}

// What stood side by side leaves as one, for a table of the store has some of many. What comes to
// little even so would have more rewritten around it than goes: it waits for its neighbours.
Result<std::vector<KeyInterval>> RedisGarbageOwner::take_removed(Engine& engine) {
  std::vector<Removed> all;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(has_newly_removed_, false)) return std::vector<KeyInterval>();
    all.swap(removed_);
  }
  std::ranges::sort(all, {}, [](const Removed& one) -> const Bytes& { return one.interval.begin; });
  std::vector<Removed> joined;
  for (Removed& one : all) {
    bool is_next = !joined.empty();
    if (is_next && joined.back().interval.end < one.interval.begin) {
      const ByteView begin = joined.back().interval.end;
      TRY_ASSIGN(const ScanPage between,
                 engine.scan({.begin = begin, .end = one.interval.begin, .entries_max = 1},
                             [](ByteView, ByteView) { return Visit::stop; }));
      is_next = between.entries == 0;
    }
    if (is_next) {
      joined.back().interval.end = std::max(joined.back().interval.end, one.interval.end);
      joined.back().bytes += one.bytes;
    } else {
      joined.push_back(std::move(one));
    }
  }
  std::vector<KeyInterval> large;
  std::vector<Removed> small;
  for (Removed& one : joined) {
    if (one.bytes >= reclaimed_bytes_min)
      large.push_back(std::move(one.interval));
    else
      small.push_back(std::move(one));
  }
  const std::lock_guard lock(mutex_);
  if (small.size() <= removed_max) std::ranges::move(small, std::back_inserter(removed_));
  return large;
}

// A bit of what was left to do about the fences of a collection; true if the note is gone.
Result<bool> RedisGarbageOwner::tend_fences(Tenant& tenant, const Garbage& note,
                                            const RedisGarbage& life) {
  return while_noted(tenant, note, life, [&](CountedView& view) -> Result<bool> {
    Keys keys(view, tenant.id(), server_.versions(), nobody_, server_.fence_books(), {},
              tenant.map().clock.unix_ms());
    TRY_ASSIGN(const Key* const key, keys.open_by_field_in(life.slot, life.name));
    TRY_ASSIGN(const bool flushed, is_flushed(view, tenant.id(), life.slot));
    auto next = Keys::FencesNote::goes;
    if (!flushed && key->exists() && key->version() == life.version) {
      TRY_ASSIGN(next, keys.tend_fences(*key));
    }
    const bool is_gone = next != Keys::FencesNote::stays;
    if (is_gone) view.forget_garbage(note.due_ms, note.target);
    if (next == Keys::FencesNote::is_for_later) keys.leave_fences(*key, Fences::marked_ms);
    TRY(keys.finish());  // the bytes of its records
    return is_gone;
  });
}

// Fields whose time has come, some of them; true if the note is gone: there may be one for later.
Result<bool> RedisGarbageOwner::expire_fields(Tenant& tenant, const Garbage& note,
                                              const RedisGarbage& life) {
  TRY(server_.versions().prepare());
  const auto expire = [&](CountedView& view) -> Result<bool> {
    bool is_gone = true;
    Keys keys(view, tenant.id(), server_.versions(), nobody_, server_.fence_books(), {},
              tenant.map().clock.unix_ms());
    TRY_ASSIGN(Key* const key, keys.open_by_field_in(life.slot, life.name));
    if (!key->has_field_note(life.version, note.due_ms)) {
      view.forget_garbage(note.due_ms, note.target);  // of no life: cannot be
    } else if (!key->exists()) {
      key->drop();  // takes the note back too
    } else {
      TRY(FieldExpiry(keys, *key).collect());
      is_gone = key->next_field_ms() != note.due_ms;
    }
    TRY(keys.finish());
    return is_gone;
  };
  return while_noted(tenant, note, life, expire);
}

std::optional<KeyPart> RedisGarbageOwner::take_part(const Tenant& tenant, const Target& target,
                                                    uint16_t slot) {
  const std::lock_guard lock(mutex_);
  auto known = flushed_.find(target);
  if (known == flushed_.end()) {
    if (flushed_.size() >= under_way_max) flushed_.clear();
    known = flushed_.try_emplace(target).first;
    for (const char table : flushed_tables) {
      const Bytes prefix = redis_slot_prefix(tenant.id(), table, slot);
      append_parts(known->second.parts, borders_, prefix, prefix_end(prefix));
    }
  }
  Flushed& flushed = known->second;
  if (flushed.parts.empty() && flushed.taken > 0) return std::nullopt;
  KeyPart part;
  if (!flushed.parts.empty()) {
    part = std::move(flushed.parts.back());
    flushed.parts.pop_back();
  }
  flushed.taken++;
  return part;
}

void RedisGarbageOwner::put_back(const Target& target, KeyPart part, uint64_t removed_bytes) {
  const std::lock_guard lock(mutex_);
  const auto known = flushed_.find(target);
  if (known == flushed_.end() || known->second.taken == 0) return;  // forgotten meanwhile
  known->second.taken--;
  known->second.bytes += removed_bytes;
  if (part.from < part.end) known->second.parts.push_back(std::move(part));
}

uint64_t RedisGarbageOwner::take_flushed_bytes(const Target& target) {
  const std::lock_guard lock(mutex_);
  const auto flushed = flushed_.extract(target);
  return flushed.empty() ? 0 : flushed.mapped().bytes;
}

// Some pages of it, beside others who do the same.
Result<bool> RedisGarbageOwner::remove_slot(Tenant& tenant, const Garbage& note, uint16_t slot) {
  const Bytes note_key = encode(GarbageKey{tenant.id(), note.due_ms, Model::redis, note.target});
  Value noted;
  TRY(tenant.map().engine.get(note_key, noted));
  if (!noted.found()) return true;                   // the others were faster
  const Target target{tenant.id().value, note_key};  // the slot may be flushed again
  for (size_t i = 0; i < flushed_pages_max; i++) {
    std::optional<KeyPart> part = take_part(tenant, target, slot);
    if (!part) return false;
    const uint64_t bytes_before = tenant.collected_bytes();  // others add to it: about so much
    const Result<bool> gone = remove_some_flushed(tenant, note, slot, *part);
    put_back(target, std::move(*part), tenant.collected_bytes() - bytes_before);
    TRY(gone);
    if (!*gone) continue;
    std::vector<KeyPart> parts;
    for (const char table : flushed_tables) {
      const Bytes prefix = redis_slot_prefix(tenant.id(), table, slot);
      parts.push_back({prefix, prefix_end(prefix)});
    }
    note_removed(parts, take_flushed_bytes(target));
    return true;
  }
  return false;
}

bool RedisGarbageOwner::is_shared(const Garbage& note) const {
  const auto garbage = decode_redis_garbage(note.target);
  return garbage && garbage->kind == RedisGarbage::Kind::flush;
}

// Keys whose time has come.
Status RedisGarbageOwner::expire(Tenant& tenant, std::span<const Garbage> notes) {
  struct Due {
    const Garbage& note;
    Bytes note_key;
    RedisGarbage key;
  };
  std::vector<Due> all;
  Scope scope = Scope::in(tenant.id());
  for (const Garbage& note : notes) {
    all.push_back({note, encode(GarbageKey{tenant.id(), note.due_ms, Model::redis, note.target}),
                   *decode_redis_garbage(note.target)});
    const RedisGarbage& key = all.back().key;
    scope.exclusive(redis_metadata_key(tenant.id(), key.slot, key.name))
        .exclusive(all.back().note_key);
  }
  TRY(server_.versions().prepare());
  size_t expired = 0;
  TRY(tenant.collect(Model::redis, scope, [&](CountedView& view) -> Status {
    expired = 0;
    Keys keys(view, tenant.id(), server_.versions(), nobody_, server_.fence_books(), {},
              tenant.map().clock.unix_ms());
    for (const Due& due : all) {
      Value noted;
      TRY(view.get(due.note_key, noted));
      if (!noted.found()) continue;
      TRY_ASSIGN(Key* const key, keys.open_in(due.key.slot, due.key.name));
      if (key->stored_expire_ms() != due.note.due_ms) {
        view.forget_garbage(due.note.due_ms, due.note.target);  // of no key: cannot be
      } else if (!key->exists()) {
        key->drop();  // takes the note back too
        expired++;
      }
    }
    return keys.finish();
  }));
  if (expired != 0)
    server_.usage(tenant.id())->count([&](UsageFigures& figures) { figures.expired += expired; });
  return {};
}

bool RedisGarbageOwner::is_at_once(const Garbage& note) const {
  const auto garbage = decode_redis_garbage(note.target);
  return garbage && garbage->kind < RedisGarbage::Kind::measured;
}

Result<size_t> RedisGarbageOwner::collect(Tenant& tenant, std::span<const Garbage> notes) {
  using Kind = RedisGarbage::Kind;
  std::vector<RedisGarbage> all;
  for (const Garbage& note : notes) {
    const auto garbage = decode_redis_garbage(note.target);
    if (!garbage) return Error{Code::corrupt, "a note of Redis does not make sense"};
    all.push_back(*garbage);
  }
  size_t gone = 0;
  for (size_t i = 0; i < notes.size();) {
    size_t count = 1;
    bool is_gone = true;
    if (all[i].kind == Kind::expiry) {
      while (i + count < notes.size() && count < expired_max && all[i + count].kind == Kind::expiry)
        count++;
      // Those that wait have an entry of the due index that waits for them.
      if (server_.expires_actively()) TRY(expire(tenant, notes.subspan(i, count)));
    } else if (all[i].kind == Kind::flush) {
      TRY_ASSIGN(is_gone, remove_slot(tenant, notes[i], all[i].slot));
    } else if (all[i].kind == Kind::fields) {
      if (server_.expires_actively()) {
        TRY_ASSIGN(is_gone, expire_fields(tenant, notes[i], all[i]));
      }
    } else if (all[i].kind == Kind::fences) {
      TRY_ASSIGN(is_gone, tend_fences(tenant, notes[i], all[i]));
    } else {
      TRY_ASSIGN(is_gone, remove_life(tenant, notes[i], all[i]));
    }
    gone += is_gone ? count : 0;
    i += count;
  }
  return gone;
}

}  // namespace trellis
