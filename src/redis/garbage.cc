#include "redis/garbage.h"

#include "codec/address.h"
#include "codec/redis_keys.h"
#include "redis/key.h"

namespace trellis {
namespace {

constexpr size_t life_entries_max = 1'000;  // in one transaction
constexpr size_t life_bytes_max = 1024 * 1024;
constexpr size_t flushed_keys_max = 32;  // in one transaction
constexpr size_t flushed_pages_max = 8;  // at a time
constexpr size_t expired_max = 16;       // in one transaction

// Some entries of a table that one transaction may remove: of few keys, because each is latched.
struct FlushedPage {
  std::vector<Bytes> keys;
  std::vector<Bytes> granules;
};

constexpr ByteView flushed_tables = "mstz";  // in order; with the records of keys go the counts

// From `from` on, which is behind what the last page removed: an engine has to step over that.
Result<FlushedPage> read_flushed(Tenant& tenant, uint16_t slot, ByteView from) {
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
  for (const char table : flushed_tables) {
    const Bytes prefix = redis_slot_prefix(tenant.id(), table, slot);
    const Bytes end = prefix_end(prefix);
    if (from >= end) continue;
    TRY(tenant.map().engine.scan({.begin = std::max(ByteView(prefix), from),
                                  .end = end,
                                  .entries_max = life_entries_max,
                                  .bytes_max = life_bytes_max},
                                 take));
    TRY(bad);
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
    view.count_keys(-1, slot);
  }
  view.remove(key, old);
  return {};
}

// A page of what was in a database that was flushed; true if the note is gone.
Result<bool> remove_flushed_page(Tenant& tenant, const Garbage& note, uint16_t slot,
                                 const FlushedPage& page) {
  const Bytes note_key = encode(GarbageKey{tenant.id(), note.due_ms, Model::redis, note.target});
  const Bytes slots_key = encode(RedisDatabasesKey{tenant.id()});
  Scope scope = Scope::in(tenant.id());
  scope.exclusive(note_key).shared(slots_key);
  for (const Bytes& key : page.keys) scope.exclusive(key);
  bool gone = false;
  TRY(tenant.collect(Model::redis, scope, [&](CountedView& view) -> Status {
    Value noted;
    Value stored_slots;
    TRY(view.get(note_key, noted));
    TRY(view.get(slots_key, stored_slots));
    TRY_ASSIGN(const DatabaseSlots slots, decode_slots(stored_slots));
    // Others may have emptied the slot since, and a database may have it.
    gone = page.keys.empty() || !noted.found() || slots.database_of(slot).has_value();
    if (!gone) {
      for (const Bytes& key : page.keys) TRY(remove_flushed(view, key, slot));
    } else if (noted.found()) {
      view.forget_garbage(note.due_ms, note.target);
      if (!slots.database_of(slot)) view.forget_slot(slot);
    }
    return {};
  }));
  return gone;
}

// Removes some entries of an interval; absent: none is left, else where to go on.
Result<std::optional<Bytes>> remove_some(CountedView& view, ByteView begin, ByteView end) {
  if (begin >= end) return std::optional<Bytes>();
  std::vector<std::pair<Bytes, size_t>> found;
  TRY_ASSIGN(ScanPage page, view.scan({.begin = begin,
                                       .end = end,
                                       .entries_max = life_entries_max,
                                       .bytes_max = life_bytes_max},
                                      [&](ByteView key, ByteView value) {
                                        found.emplace_back(key, value.size());
                                        return Visit::go_on;
                                      }));
  for (const auto& [key, value_bytes] : found) view.remove_found(key, value_bytes);
  return std::move(page.resume);
}

}  // namespace

Bytes& RedisGarbageOwner::removed_to(const Tenant& tenant, ByteView target) {
  constexpr size_t under_way_max = 1'000;
  if (removed_to_.size() >= under_way_max) removed_to_.clear();
  return removed_to_[{tenant.id().value, Bytes(target)}];
}

// The records of one life, in both tables. A part of them at a time; true if the note is gone.
Result<bool> RedisGarbageOwner::remove_life(Tenant& tenant, const Garbage& note,
                                            const RedisGarbage& life) {
  const std::string ns = std::to_string(life.slot);
  const KvrocksSubPrefix prefix{.ns = ns, .key = life.name, .version = life.version};
  const Bytes subs = encode(RedisSubKey{tenant.id(), {.prefix = prefix, .sub = {}}});
  const Bytes scores = redis_scores_prefix(tenant.id(), life.slot, life.name, life.version);
  const Bytes note_key = encode(GarbageKey{tenant.id(), note.due_ms, Model::redis, note.target});
  Scope scope = Scope::in(tenant.id());
  scope.exclusive(redis_metadata_key(tenant.id(), life.slot, life.name)).exclusive(note_key);
  Bytes& from = removed_to(tenant, note.target);
  std::optional<Bytes> resume;
  TRY(tenant.collect(Model::redis, scope, [&](CountedView& view) -> Status {
    resume.reset();
    Value noted;
    TRY(view.get(note_key, noted));
    if (!noted.found()) return {};  // of a life that was staged, and is one now
    TRY_ASSIGN(resume, remove_some(view, std::max(subs, from), prefix_end(subs)));
    if (!resume) {
      TRY_ASSIGN(resume, remove_some(view, std::max(scores, from), prefix_end(scores)));
    }
    if (!resume) view.forget_garbage(note.due_ms, note.target);
    return {};
  }));
  if (resume)
    from = std::move(*resume);
  else
    removed_to_.erase({tenant.id().value, note.target});
  return !resume;
}

// A part of it at a time.
Result<bool> RedisGarbageOwner::remove_slot(Tenant& tenant, const Garbage& note, uint16_t slot) {
  Bytes& from = removed_to(tenant, note.target);
  bool gone = false;
  for (size_t i = 0; i < flushed_pages_max && !gone; i++) {
    TRY_ASSIGN(FlushedPage page, read_flushed(tenant, slot, from));
    if (page.keys.empty() && !from.empty()) {
      from.clear();  // from the start again, to be sure
      continue;
    }
    TRY_ASSIGN(gone, remove_flushed_page(tenant, note, slot, page));
    if (!page.keys.empty()) from = std::move(page.keys.back());
  }
  if (gone) removed_to_.erase({tenant.id().value, note.target});
  return gone;
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
    Keys keys(view, tenant.id(), server_.versions(), nobody_, {}, tenant.map().clock.unix_ms());
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
  return garbage && garbage->kind != RedisGarbage::Kind::life;
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
    } else {
      TRY_ASSIGN(is_gone, remove_life(tenant, notes[i], all[i]));
    }
    gone += is_gone ? count : 0;
    i += count;
  }
  return gone;
}

}  // namespace trellis
