// What is about a database or the server as a whole.
#include <fmt/format.h>

#include <algorithm>

#include "codec/counter_value.h"
#include "codec/redis_keys.h"
#include "redis/call.h"
#include "redis/executor.h"
#include "redis/glob.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

using namespace command_flag;

constexpr size_t flush_page_keys = 2'000;

Bytes database_prefix(KeyspaceId keyspace, uint32_t database) {
  return redis_metadata_key(keyspace, database, {});
}

bool is_visible(ByteView record, uint64_t now_ms) {
  const auto metadata = decode_redis_metadata(record);
  if (!metadata) return false;
  return is_visible(*metadata, now_ms);
}

Status admit(AloneCall& call, Access access) {
  return call.session.tenant->admit(call.session.caller, access);
}

// Keys whose time has come and which the collector has not removed yet: their notes are the first.
Result<int64_t> count_expired(AloneCall& call) {
  const KeyspaceId keyspace = call.session.tenant->id();
  Bytes begin = encode(GarbageKey{keyspace, 0, Model::catalog, {}});
  const Bytes end = encode(GarbageKey{keyspace, call.now_ms + 1, Model::catalog, {}});
  int64_t expired = 0;
  for (;;) {
    TRY_ASSIGN(
        ScanPage page,
        call.server.map().engine.scan(
            {.begin = begin, .end = end, .entries_max = 4'096}, [&](ByteView key, ByteView) {
              const auto note = decode<GarbageKey>(key);
              if (!note || note->model != Model::redis) return Visit::go_on;
              const auto garbage = decode_redis_garbage(note->target);
              if (garbage && garbage->is_expiry && garbage->database == call.session.database)
                expired++;
              return Visit::go_on;
            }));
    if (!page.resume) return expired;
    begin = std::move(*page.resume);
  }
}

Status dbsize(AloneCall& call) {
  TRY(admit(call, Access::read));
  const Bytes key = encode(CounterKey{call.session.tenant->id(), Model::redis, CounterName::keys,
                                      static_cast<uint16_t>(call.session.database)});
  Value value;
  TRY(call.server.map().engine.get(key, value));
  const auto keys = value.found() ? decode_counter_value(value.bytes()) : std::optional<int64_t>(0);
  if (!keys) return Error{Code::corrupt, "the counter of keys does not make sense"};
  TRY_ASSIGN(const int64_t expired, count_expired(call));
  call.reply.integer(std::max<int64_t>(*keys - expired, 0));
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
             call.server.map().engine.scan(
                 {.begin = from, .end = prefix_end(prefix), .entries_max = limit}, take));
  return std::move(page.resume);
}

Status keys(AloneCall& call) {
  TRY(admit(call, Access::read));
  const Bytes prefix = database_prefix(call.session.tenant->id(), call.session.database);
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

Status flush_database(AloneCall& call, uint32_t database) {
  Tenant& tenant = *call.session.tenant;
  const Bytes prefix = database_prefix(tenant.id(), database);
  for (bool more = true; more;) {
    TRY(call.server.versions().prepare());
    TRY(tenant.write(call.session.caller, Model::redis, Scope::all_of(tenant.id()),
                     [&](CountedView& view) -> Status {
                       std::vector<Bytes> names;
                       TRY_ASSIGN(const ScanPage page,
                                  view.scan({.begin = prefix,
                                             .end = prefix_end(prefix),
                                             .entries_max = flush_page_keys},
                                            [&](ByteView key, ByteView) {
                                              names.emplace_back(key.substr(prefix.size()));
                                              return Visit::go_on;
                                            }));
                       more = page.resume.has_value();
                       Keys open_keys(view, tenant.id(), call.server.versions(), call.now_ms);
                       for (const Bytes& name : names) {
                         TRY_ASSIGN(Key* const key, open_keys.open(database, name));
                         key->drop();
                       }
                       return open_keys.finish(
                           [&](const Key& key) { call.server.watches().touch(key.stored_key()); });
                     }));
  }
  return {};
}

Status check_flush_mode(const AloneCall& call) {
  if (call.count() == 1) return {};
  if (call.count() == 2 && (call.is_word(1, "sync") || call.is_word(1, "async"))) return {};
  return syntax_error();
}

Status flushdb(AloneCall& call) {
  TRY(check_flush_mode(call));
  TRY(flush_database(call, call.session.database));
  call.reply.ok();
  return {};
}

Status flushall(AloneCall& call) {
  TRY(check_flush_mode(call));
  for (uint32_t database = 0; database < databases_max; database++)
    TRY(flush_database(call, database));
  call.reply.ok();
  return {};
}

Status time(AloneCall& call) {
  call.reply.array(2);
  call.reply.bulk_integer(static_cast<int64_t>(call.now_ms / 1'000));
  call.reply.bulk_integer(static_cast<int64_t>(call.now_ms % 1'000 * 1'000));
  return {};
}

const Command table[] = {
    {"dbsize", 1, readonly | fast, {}, dbsize, "1.0.0", "How many keys the database has."},
    {"flushall", -1, write, {}, flushall, "1.0.0", "Deletes the keys of all databases."},
    {"flushdb", -1, write, {}, flushdb, "1.0.0", "Deletes the keys of the database."},
    {"time", 1, loading | stale | fast, {}, time, "2.6.0", "The time of the server."},
};

const Command keys_table[] = {
    {"keys", 2, readonly, {}, keys, "1.0.0", "The keys that match a pattern."},
};

}  // namespace

std::span<const Command> keys_commands() { return keys_table; }
std::span<const Command> server_commands() { return table; }

}  // namespace trellis
