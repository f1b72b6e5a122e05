// MEMORY: what keys take. Values are on disk: what is told is what they have there, and what of
// that is in memory is the cache's matter, which all keyspaces share.
#include <fmt/format.h>

#include "codec/redis_keys.h"
#include "redis/call.h"
#include "redis/help.h"
#include "redis/process_facts.h"
#include "redis/server.h"

namespace trellis {
namespace {

using namespace command_flag;

// Of a key as it is stored in a database that was never flushed: what that had been called since is
// none of the client's business.
uint64_t key_bytes(const Key& key) {
  constexpr uint64_t front_bytes = 8;
  return front_bytes + key.name().size();
}

// Of a collection: its records, as large on average as the first of them.
Result<uint64_t> record_bytes(Call& call, const Key& key, uint64_t samples) {
  constexpr uint64_t version_and_length_bytes = 12;
  const uint64_t front_bytes = key_bytes(key) + version_and_length_bytes;
  const uint64_t copies = key.type() == RedisType::zset ? 2 : 1;  // by member and by score
  uint64_t seen = 0;
  uint64_t bytes = 0;
  TRY(call.keys.scan_subs(key, {}, [&](ByteView sub, ByteView value) {
    bytes += (front_bytes + sub.size() + value.size()) * copies;
    return ++seen == samples ? Visit::stop : Visit::go_on;
  }));
  if (seen == 0) return 0;
  // Of a bitmap it is not known how many are stored, but for those that are.
  if (key.type() == RedisType::bitmap && seen != samples) return bytes;
  const uint64_t records =
      key.type() == RedisType::bitmap ? key.size() / redis_bitmap_fragment_bytes + 1 : key.size();
  return static_cast<uint64_t>(static_cast<double>(bytes) / static_cast<double>(seen) *
                               static_cast<double>(std::max(seen, records)));
}

// Of the record of the key itself, without a string's text.
uint64_t head_bytes(RedisType type) {
  constexpr uint64_t flags_and_expiry_bytes = 9;
  constexpr uint64_t version_and_size_bytes = 16;
  constexpr uint64_t ends_bytes = 16;
  if (type == RedisType::string) return flags_and_expiry_bytes;
  return flags_and_expiry_bytes + version_and_size_bytes +
         (type == RedisType::list ? ends_bytes : 0);
}

Status memory_usage(Call& call) {
  constexpr uint64_t samples_by_default = 5;
  uint64_t samples = samples_by_default;
  for (size_t i = 3; i < call.count(); i += 2) {
    if (!call.is_word(i, "samples") || i + 1 == call.count()) return syntax_error();
    TRY_ASSIGN(const int64_t given, call.integer(i + 1));
    if (given < 0) return syntax_error();
    samples = static_cast<uint64_t>(given);  // 0: all of them
  }
  TRY_ASSIGN(const Key* const key, call.keys.open(call.session.database, call.arg(2)));
  if (!key->exists()) {
    call.reply.null();
    return {};
  }
  uint64_t bytes = key_bytes(*key) + head_bytes(key->type());
  if (key->type() == RedisType::string) {
    bytes += key->text().size();
  } else {
    TRY_ASSIGN(const uint64_t records, record_bytes(call, *key, samples));
    bytes += records;
  }
  call.reply.integer(static_cast<int64_t>(bytes));
  return {};
}

Status memory_doctor(AloneCall& call) {
  TRY_ASSIGN(const Figures figures, call.session.tenant->figures());
  call.reply.verbatim(
      fmt::format("The keyspace has {} keys in {} bytes on disk. Memory is a cache of the whole "
                  "server, bounded by its settings: nothing to cure here.\n",
                  figures.keys, figures.bytes));
  return {};
}

Status memory_malloc_stats(AloneCall& call) {
  call.reply.verbatim("Stats not supported for the current allocator");
  return {};
}

Status memory_purge(AloneCall& call) {
  call.reply.ok();
  return {};
}

Status memory_stats(AloneCall& call) {
  TRY_ASSIGN(const Figures figures, call.session.tenant->figures());
  const int64_t rss = static_cast<int64_t>(process_rss_bytes());
  const std::pair<std::string_view, int64_t> numbers[] = {
      {"peak.allocated", figures.bytes},
      {"total.allocated", figures.bytes},
      {"startup.allocated", 0},
      {"replication.backlog", 0},
      {"clients.slaves", 0},
      {"clients.normal", 0},
      {"cluster.links", 0},
      {"aof.buffer", 0},
      {"lua.caches", 0},
      {"functions.caches", 0},
      {"overhead.total", 0},
      {"keys.count", figures.keys},
      {"keys.bytes-per-key", figures.keys == 0 ? 0 : figures.bytes / figures.keys},
      {"dataset.bytes", figures.bytes},
      {"allocator.resident", rss},
  };
  call.reply.map(std::size(numbers) + 2);
  for (const auto& [name, number] : numbers) {
    call.reply.bulk(name);
    call.reply.integer(number);
  }
  for (const std::string_view name : {"dataset.percentage", "peak.percentage"}) {
    call.reply.bulk(name);
    call.reply.number(100);
  }
  return {};
}

constexpr Command memory_entry(std::string_view name, Status (*handler)(AloneCall&),
                               std::string_view summary) {
  return {.name = name,
          .arity = 2,
          .handler = handler,
          .since = "4.0.0",
          .summary = summary,
          .container = "memory"};
}

const Command memory_subcommands[] = {
    memory_entry("doctor", memory_doctor, "A report on the use of memory."),
    help_entry("memory", "4.0.0"),
    memory_entry("malloc-stats", memory_malloc_stats, "What the allocator tells of itself."),
    memory_entry("purge", memory_purge, "Asks the allocator to give memory back."),
    memory_entry("stats", memory_stats, "Figures of the use of memory."),
    {.name = "usage",
     .arity = -3,
     .flags = readonly,
     .keys = {2, 2, 1},
     .handler = memory_usage,
     .since = "4.0.0",
     .summary = "About how many bytes a key takes, of its records so many looked at, 0 for all.",
     .container = "memory",
     .syntax = "<key> [SAMPLES <count>]"},
};

namespace memory_table {

const Command table[] = {
    {.name = "memory",
     .arity = -2,
     .since = "4.0.0",
     .summary = "About the use of memory.",
     .subcommands = memory_subcommands},
};

}  // namespace memory_table

}  // namespace

std::span<const Command> memory_commands() { return memory_table::table; }

}  // namespace trellis
