#include "redis/garbage.h"

#include "codec/address.h"
#include "codec/redis_keys.h"
#include "redis/key.h"

namespace trellis {
namespace {

constexpr size_t life_entries_max = 1'000;  // in one transaction
constexpr size_t life_bytes_max = 1024 * 1024;
constexpr size_t flushed_keys_max = 32;  // in one transaction

// Removes up to so many entries of an interval; true if none is left.
Result<bool> remove_some(CountedView& view, ByteView begin, ByteView end) {
  std::vector<std::pair<Bytes, size_t>> found;
  TRY_ASSIGN(const ScanPage page, view.scan({.begin = begin,
                                             .end = end,
                                             .entries_max = life_entries_max,
                                             .bytes_max = life_bytes_max},
                                            [&](ByteView key, ByteView value) {
                                              found.emplace_back(key, value.size());
                                              return Visit::go_on;
                                            }));
  for (const auto& [key, value_bytes] : found) view.remove_found(key, value_bytes);
  return !page.resume;
}

// The records of one life, in both tables. A part of them at a time; true if the note is gone.
Result<bool> remove_life(Tenant& tenant, const Garbage& note, const RedisGarbage& life) {
  const std::string ns = std::to_string(life.slot);
  const KvrocksSubPrefix prefix{.ns = ns, .key = life.name, .version = life.version};
  const Bytes subs = encode(RedisSubKey{tenant.id(), {.prefix = prefix, .sub = {}}});
  const Bytes any_score =
      encode(RedisScoreKey{tenant.id(), {.prefix = prefix, .score = 0, .member = {}}});
  const Bytes scores = any_score.substr(0, any_score.size() - sizeof(double));
  const Bytes note_key = encode(GarbageKey{tenant.id(), note.due_ms, Model::redis, note.target});
  Scope scope = Scope::in(tenant.id());
  scope.exclusive(redis_metadata_key(tenant.id(), life.slot, life.name)).exclusive(note_key);
  bool gone = false;
  TRY(tenant.collect(Model::redis, scope, [&](CountedView& view) -> Status {
    gone = false;
    Value noted;
    TRY(view.get(note_key, noted));
    TRY_ASSIGN(const bool no_subs, remove_some(view, subs, prefix_end(subs)));
    TRY_ASSIGN(const bool no_scores, remove_some(view, scores, prefix_end(scores)));
    gone = no_subs && no_scores;
    if (gone && noted.found()) view.forget_garbage(note.due_ms, note.target);
    return {};
  }));
  return gone;
}

// Some entries of a table that one transaction may remove: of few keys, because each is latched.
struct FlushedPage {
  std::vector<Bytes> keys;
  std::vector<Bytes> granules;
};

Result<FlushedPage> read_flushed(Tenant& tenant, uint16_t slot) {
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
  // The records of keys first: as soon as they are gone so are the counts.
  for (const char table : {'m', 's', 'z', 't'}) {
    const Bytes prefix = redis_slot_prefix(tenant.id(), table, slot);
    TRY(tenant.map().engine.scan({.begin = prefix,
                                  .end = prefix_end(prefix),
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

// What was in a database that was flushed. A part of it at a time; true if the note is gone.
Result<bool> remove_slot(Tenant& tenant, const Garbage& note, uint16_t slot) {
  TRY_ASSIGN(const FlushedPage page, read_flushed(tenant, slot));
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

}  // namespace

Status RedisGarbageOwner::expire(Tenant& tenant, const Garbage& note, uint16_t slot,
                                 ByteView name) {
  const Bytes note_key = encode(GarbageKey{tenant.id(), note.due_ms, Model::redis, note.target});
  Scope scope = Scope::in(tenant.id());
  scope.exclusive(redis_metadata_key(tenant.id(), slot, name)).exclusive(note_key);
  TRY(server_.versions().prepare());
  bool expired = false;
  TRY(tenant.collect(Model::redis, scope, [&](CountedView& view) -> Status {
    Value noted;
    TRY(view.get(note_key, noted));
    expired = false;
    if (!noted.found()) return {};
    Keys keys(view, tenant.id(), server_.versions(), nobody_, {}, tenant.map().clock.unix_ms());
    TRY_ASSIGN(Key* const key, keys.open_in(slot, name));
    expired = key->stored_expire_ms() == note.due_ms && !key->exists();
    if (key->stored_expire_ms() != note.due_ms)
      view.forget_garbage(note.due_ms, note.target);  // of no key: cannot be, and does no harm
    else if (expired)
      key->drop();  // takes the note back too
    return keys.finish();
  }));
  if (expired) server_.usage(tenant.id())->count([](UsageFigures& figures) { figures.expired++; });
  return {};
}

Result<size_t> RedisGarbageOwner::collect(Tenant& tenant, std::span<const Garbage> notes) {
  size_t gone = 0;
  for (const Garbage& note : notes) {
    const auto garbage = decode_redis_garbage(note.target);
    if (!garbage) return Error{Code::corrupt, "a note of Redis does not make sense"};
    bool is_gone = true;
    switch (garbage->kind) {
      case RedisGarbage::Kind::expiry:
        TRY(expire(tenant, note, garbage->slot, garbage->name));
        break;
      case RedisGarbage::Kind::flush: {
        TRY_ASSIGN(is_gone, remove_slot(tenant, note, garbage->slot));
        break;
      }
      case RedisGarbage::Kind::life: {
        TRY_ASSIGN(is_gone, remove_life(tenant, note, *garbage));
        break;
      }
    }
    gone += is_gone ? 1 : 0;
  }
  return gone;
}

}  // namespace trellis
