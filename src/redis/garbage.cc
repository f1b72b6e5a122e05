#include "redis/garbage.h"

#include "codec/redis_keys.h"
#include "redis/key.h"

namespace trellis {
namespace {

constexpr size_t life_entries_max = 1'000;  // in one transaction
constexpr size_t life_bytes_max = 1024 * 1024;

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
  const std::string ns = std::to_string(life.database);
  const KvrocksSubPrefix prefix{.ns = ns, .key = life.name, .version = life.version};
  const Bytes subs = encode(RedisSubKey{tenant.id(), {.prefix = prefix, .sub = {}}});
  const Bytes any_score =
      encode(RedisScoreKey{tenant.id(), {.prefix = prefix, .score = 0, .member = {}}});
  const Bytes scores = any_score.substr(0, any_score.size() - sizeof(double));
  const Bytes note_key = encode(GarbageKey{tenant.id(), note.due_ms, Model::redis, note.target});
  Scope scope = Scope::in(tenant.id());
  scope.exclusive(redis_metadata_key(tenant.id(), life.database, life.name)).exclusive(note_key);
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

}  // namespace

Status RedisGarbageOwner::expire(Tenant& tenant, const Garbage& note, uint32_t database,
                                 ByteView name) {
  const Bytes note_key = encode(GarbageKey{tenant.id(), note.due_ms, Model::redis, note.target});
  Scope scope = Scope::in(tenant.id());
  scope.exclusive(redis_metadata_key(tenant.id(), database, name)).exclusive(note_key);
  TRY(server_.versions().prepare());
  return tenant.collect(Model::redis, scope, [&](CountedView& view) -> Status {
    Value noted;
    TRY(view.get(note_key, noted));
    if (!noted.found()) return {};
    Keys keys(view, tenant.id(), server_.versions(), tenant.map().clock.unix_ms());
    TRY_ASSIGN(Key* const key, keys.open(database, name));
    if (key->stored_expire_ms() != note.due_ms)
      view.forget_garbage(note.due_ms, note.target);  // of no key: cannot be, and does no harm
    else if (!key->exists())
      key->drop();  // takes the note back too
    return keys.finish([&](const Key& dropped) { server_.watches().touch(dropped.stored_key()); });
  });
}

Result<size_t> RedisGarbageOwner::collect(Tenant& tenant, std::span<const Garbage> notes) {
  size_t gone = 0;
  for (const Garbage& note : notes) {
    const auto garbage = decode_redis_garbage(note.target);
    if (!garbage) return Error{Code::corrupt, "a note of Redis does not make sense"};
    if (garbage->is_expiry) {
      TRY(expire(tenant, note, garbage->database, garbage->name));
      server_.usage(tenant.id())->count([](UsageFigures& figures) { figures.expired++; });
      gone++;
      continue;
    }
    TRY_ASSIGN(const bool life_gone, remove_life(tenant, note, *garbage));
    gone += life_gone ? 1 : 0;
  }
  return gone;
}

}  // namespace trellis
