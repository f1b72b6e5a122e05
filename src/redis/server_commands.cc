// What is about a database or the server as a whole.
#include <fmt/format.h>

#include <algorithm>

#include "codec/redis_keys.h"
#include "redis/alone_transaction.h"
#include "redis/glob.h"
#include "redis/number_text.h"
#include "redis/server.h"

namespace trellis {
namespace {

using namespace command_flag;

bool is_visible(ByteView record, uint64_t now_ms) {
  const auto metadata = decode_redis_metadata(record);
  if (!metadata) return false;
  return is_visible(*metadata, now_ms);
}

// Keys whose time has come and which the collector has not removed yet: their notes are the first.
Result<int64_t> count_expired(AloneCall& call, uint16_t slot) {
  const KeyspaceId keyspace = call.session.tenant->id();
  Bytes begin = encode(GarbageKey{keyspace, 0, Model::catalog, {}});
  const Bytes end = encode(GarbageKey{keyspace, call.now_ms + 1, Model::catalog, {}});
  int64_t expired = 0;
  for (;;) {
    TRY_ASSIGN(
        ScanPage page,
        call.scan({.begin = begin, .end = end, .entries_max = 4'096}, [&](ByteView key, ByteView) {
          const auto note = decode<GarbageKey>(key);
          if (!note || note->model != Model::redis) return Visit::go_on;
          const auto garbage = decode_redis_garbage(note->target);
          if (garbage && garbage->kind == RedisGarbage::Kind::expiry && garbage->slot == slot)
            expired++;
          return Visit::go_on;
        }));
    if (!page.resume) return expired;
    begin = std::move(*page.resume);
  }
}

Status dbsize(AloneCall& call) {
  TRY(call.admit_read());
  const uint32_t database = call.session.database;
  TRY_ASSIGN(const DatabaseSlots slots, call.slots());
  TRY_ASSIGN(int64_t keys, call.count_keys(slots, database));
  int64_t expired = 0;
  // A key that the collector removes in between would be in the one and not in the other.
  constexpr int tries_max = 10;
  for (int i = 0; i < tries_max; i++) {
    TRY_ASSIGN(expired, count_expired(call, slots.of(database)));
    const int64_t before = keys;
    TRY_ASSIGN(keys, call.count_keys(slots, database));
    if (keys == before) break;
  }
  call.reply.integer(std::max<int64_t>(keys - expired, 0));
  return {};
}

// A page of keys from `from` on, which match; true if there may be more.
Result<std::optional<Bytes>> list_keys(AloneCall& call, ByteView prefix, Bytes from, size_t limit,
                                       FunctionRef<void(ByteView name, ByteView record)> visit) {
  const auto take = [&](ByteView key, ByteView record) {
    if (is_visible(record, call.now_ms)) visit(key.substr(prefix.size()), record);
    return Visit::go_on;
  };
  TRY_ASSIGN(ScanPage page,
             call.scan({.begin = from, .end = prefix_end(prefix), .entries_max = limit}, take));
  return std::move(page.resume);
}

Status keys(AloneCall& call) {
  TRY(call.admit_read());
  TRY_ASSIGN(const DatabaseSlots slots, call.slots());
  const Bytes prefix =
      redis_metadata_key(call.session.tenant->id(), slots.of(call.session.database), {});
  const ByteView pattern = call.arg(1);
  const size_t mark = call.reply.mark();
  size_t found = 0;
  Bytes from = prefix + glob_prefix(pattern);
  for (;;) {
    TRY_ASSIGN(auto resume, list_keys(call, prefix, from, 4'096, [&](ByteView name, ByteView) {
                 if (!glob_matches(pattern, name)) return;
                 call.reply.bulk(name);
                 found++;
               }));
    if (!resume) break;
    from = std::move(*resume);
    const Bytes end = prefix_end(prefix + glob_prefix(pattern));
    if (!end.empty() && from >= end) break;
  }
  call.reply.insert_array(mark, found);
  return {};
}

Status check_flush_mode(const AloneCall& call) {
  if (call.count() == 1) return {};
  if (call.count() == 2 && (call.is_word(1, "sync") || call.is_word(1, "async"))) return {};
  return syntax_error();
}

Status flush(AloneCall& alone, uint32_t first, uint32_t last) {
  TRY(check_flush_mode(alone));
  return transact_all(alone, Access::write, [&](Call& call) -> Status {
    for (uint32_t database = first; database <= last; database++) TRY(call.keys.flush(database));
    call.reply.ok();
    return {};
  });
}

Status flushdb(AloneCall& call) {
  return flush(call, call.session.database, call.session.database);
}
Status flushall(AloneCall& call) { return flush(call, 0, databases_max - 1); }

Status swapdb(AloneCall& alone) {
  TRY_ASSIGN(const int32_t first, alone.index(1, reply_with("ERR invalid first DB index")));
  TRY_ASSIGN(const int32_t second, alone.index(2, reply_with("ERR invalid second DB index")));
  TRY_ASSIGN(const uint32_t one, database_at(first));
  TRY_ASSIGN(const uint32_t other, database_at(second));
  return transact_all(alone, Access::write, [&](Call& call) -> Status {
    TRY(call.keys.swap(one, other));
    call.reply.ok();
    return {};
  });
}

Status time(AloneCall& call) {
  constexpr int64_t us_per_s = 1'000'000;
  const int64_t now_us = call.server.map().clock.unix_ns() / 1'000;
  call.reply.array(2);
  call.reply.bulk_integer(now_us / us_per_s);
  call.reply.bulk_integer(now_us % us_per_s);
  return {};
}

namespace server_table {

const Command table[] = {
    {"dbsize",
     1,
     readonly | fast | joins_exec,
     {},
     dbsize,
     "1.0.0",
     "How many keys the database has."},
    {"flushall",
     -1,
     write | joins_exec,
     {},
     flushall,
     "1.0.0",
     "Deletes the keys of all databases."},
    {"flushdb", -1, write | joins_exec, {}, flushdb, "1.0.0", "Deletes the keys of the database."},
    {"swapdb", 3, write | fast | joins_exec, {}, swapdb, "4.0.0", "Exchanges two databases."},
    {"time", 1, loading | stale | fast, {}, time, "2.6.0", "The time of the server."},
};

}  // namespace server_table

const Command keys_table[] = {
    {"keys", 2, readonly | joins_exec, {}, keys, "1.0.0", "The keys that match a pattern."},
};

}  // namespace

std::span<const Command> keys_commands() { return keys_table; }
std::span<const Command> server_commands() { return server_table::table; }

}  // namespace trellis
