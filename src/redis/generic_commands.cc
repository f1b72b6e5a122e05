#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "redis/call.h"
#include "redis/expire_time.h"
#include "redis/generic_handlers.h"
#include "redis/server.h"

namespace trellis {
namespace {

using namespace command_flag;

Status del(Call& call) {
  int64_t removed = 0;
  for (size_t i = 1; i < call.count(); i++) {
    TRY_ASSIGN(Key* const key, call.open_whole(i));
    if (!key->exists()) continue;
    key->remove();
    removed++;
  }
  call.reply.integer(removed);
  return {};
}

Status exists(Call& call) {
  int64_t found = 0;
  for (size_t i = 1; i < call.count(); i++) {
    TRY_ASSIGN(const Key* const key, call.open_whole(i));
    if (key->exists()) found++;
  }
  call.reply.integer(found);
  return {};
}

Status type(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open_whole(1));
  call.reply.simple(key->exists() ? type_name(key->type()) : "none");
  return {};
}

// --- expiry ---

struct ExpireConditions {
  bool nx = false;
  bool xx = false;
  bool gt = false;
  bool lt = false;
};

Result<ExpireConditions> parse_conditions(const Call& call) {
  ExpireConditions conditions;
  for (size_t i = 3; i < call.count(); i++) {
    if (call.is_word(i, "nx"))
      conditions.nx = true;
    else if (call.is_word(i, "xx"))
      conditions.xx = true;
    else if (call.is_word(i, "gt"))
      conditions.gt = true;
    else if (call.is_word(i, "lt"))
      conditions.lt = true;
    else
      return reply_with(fmt::format("ERR Unsupported option {}", shown(call.arg(i))));
  }
  if (conditions.nx && (conditions.xx || conditions.gt || conditions.lt))
    return reply_with("ERR NX and XX, GT or LT options at the same time are not compatible");
  if (conditions.gt && conditions.lt)
    return reply_with("ERR GT and LT options at the same time are not compatible");
  return conditions;
}

// Unlike those of SET, these may lie in the past: then the key goes.
Result<int64_t> when_ms(const Call& call, TimeUnit unit, TimeBase base) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  TRY_ASSIGN(int64_t time, call.integer(2));
  if (unit == TimeUnit::seconds) {
    if (time > most / 1'000 || time < std::numeric_limits<int64_t>::min() / 1'000)
      return invalid_expire(call);
    time *= 1'000;
  }
  if (base == TimeBase::now) {
    const auto now = static_cast<int64_t>(call.now_ms());
    if (time > most - now) return invalid_expire(call);
    time += now;
  }
  return time;
}

Status set_expiry(Call& call, TimeUnit unit, TimeBase base) {
  TRY_ASSIGN(const ExpireConditions conditions, parse_conditions(call));
  TRY_ASSIGN(const int64_t when, when_ms(call, unit, base));
  TRY_ASSIGN(Key* const key, call.open_whole(1));
  if (!key->exists()) {
    call.reply.integer(0);
    return {};
  }
  const uint64_t now_is = key->expire_ms();  // 0: never, which is later than any time
  const bool refused = (conditions.nx && now_is != 0) || (conditions.xx && now_is == 0) ||
                       (conditions.gt && (now_is == 0 || when <= static_cast<int64_t>(now_is))) ||
                       (conditions.lt && now_is != 0 && when >= static_cast<int64_t>(now_is));
  if (!refused) call.expire(*key, static_cast<uint64_t>(std::max<int64_t>(when, 1)));
  call.reply.integer(refused ? 0 : 1);
  return {};
}

Status expire(Call& call) { return set_expiry(call, TimeUnit::seconds, TimeBase::now); }
Status pexpire(Call& call) { return set_expiry(call, TimeUnit::milliseconds, TimeBase::now); }
Status expireat(Call& call) { return set_expiry(call, TimeUnit::seconds, TimeBase::epoch); }
Status pexpireat(Call& call) { return set_expiry(call, TimeUnit::milliseconds, TimeBase::epoch); }

Status persist(Call& call) {
  TRY_ASSIGN(Key* const key, call.open_whole(1));
  const bool expires = key->exists() && key->expire_ms() != 0;
  if (expires) key->set_expire(0);
  call.reply.integer(expires ? 1 : 0);
  return {};
}

Status reply_expiry(Call& call, TimeUnit unit, TimeBase base) {
  TRY_ASSIGN(const Key* const key, call.open_whole(1));
  if (!key->exists() || key->expire_ms() == 0) {
    call.reply.integer(key->exists() ? -1 : -2);
    return {};
  }
  uint64_t time = key->expire_ms();
  if (base == TimeBase::now) time -= call.now_ms();
  // The nearest second, as Redis has it.
  if (unit == TimeUnit::seconds) time = (time + (base == TimeBase::now ? 500 : 0)) / 1'000;
  call.reply.integer(static_cast<int64_t>(time));
  return {};
}

Status ttl(Call& call) { return reply_expiry(call, TimeUnit::seconds, TimeBase::now); }
Status pttl(Call& call) { return reply_expiry(call, TimeUnit::milliseconds, TimeBase::now); }
Status expiretime(Call& call) { return reply_expiry(call, TimeUnit::seconds, TimeBase::epoch); }
Status pexpiretime(Call& call) {
  return reply_expiry(call, TimeUnit::milliseconds, TimeBase::epoch);
}

// There are no replicas to wait for.
Status wait(AloneCall& call) {
  TRY(call.integer(1));
  const auto timeout = call.integer(2);
  if (!timeout) return reply_with("ERR timeout is not an integer or out of range");
  if (*timeout < 0) return reply_with("ERR timeout is negative");
  call.reply.integer(0);
  return {};
}

// WAITAOF numlocal numreplicas timeout. A sync takes as long as it takes: there is nothing to wait
// for that could fail to come.
Status wait_for_log(AloneCall& call) {
  TRY_ASSIGN(const int64_t local, call.integer(1));
  if (local < 0 || local > 1)
    return reply_with("ERR value is out of range, must be between 0 and 1");
  TRY_ASSIGN(const int64_t replicas, call.integer(2));
  if (replicas < 0) return reply_with("ERR value is out of range, must be positive");
  const auto timeout = call.integer(3);
  if (!timeout) return reply_with("ERR timeout is not an integer or out of range");
  if (*timeout < 0) return reply_with("ERR timeout is negative");
  Engine& engine = call.server.map().engine;
  if (local == 1) TRY(engine.wait_durable(engine.last_ticket()));
  call.reply.array(2);
  call.reply.integer(local);
  call.reply.integer(0);
  return {};
}

namespace generic_table {

constexpr KeyPositions one{1, 1, 1};
constexpr KeyPositions two{1, 2, 1};
constexpr KeyPositions all{1, -1, 1};

const Command table[] = {
    {"copy", -3, write | denyoom | joins_exec, two, copy_key, "6.2.0", "Copies a key."},
    {"del", -2, write, all, del, "1.0.0", "Deletes keys."},
    {"dump", 2, readonly, one, dump, "2.6.0", "The value of a key as bytes for RESTORE."},
    {"exists", -2, readonly | fast, all, exists, "1.0.0", "How many of the keys exist."},
    {"expire", -3, write | fast, one, expire, "1.0.0", "Lets a key expire after seconds."},
    {"expireat", -3, write | fast, one, expireat, "1.2.0", "Lets a key expire at a second."},
    {"expiretime", 2, readonly | fast, one, expiretime, "7.0.0",
     "The second that a key expires at."},
    {.name = "migrate",
     .arity = -6,
     .flags = write | movablekeys | for_server_admin,
     .keys = {3, 3, 1},
     .handler = migrate,
     .since = "2.6.0",
     .summary = "Moves keys to another server.",
     .find_keys = find_migrated_keys},
    {"move", 3, write | fast | joins_exec, one, move_key, "1.0.0",
     "Moves a key to another database."},
    {.name = "object",
     .arity = -2,
     .since = "2.2.3",
     .summary = "About how values are kept.",
     .subcommands = object_commands()},
    {"persist", 2, write | fast, one, persist, "2.2.0", "Takes the expiry from a key."},
    {"pexpire", -3, write | fast, one, pexpire, "2.6.0", "Lets a key expire after milliseconds."},
    {"pexpireat", -3, write | fast, one, pexpireat, "2.6.0", "Lets a key expire at a millisecond."},
    {"pexpiretime", 2, readonly | fast, one, pexpiretime, "7.0.0",
     "The millisecond that a key expires at."},
    {"pttl", 2, readonly | fast, one, pttl, "2.6.0", "Milliseconds until a key expires."},
    {"randomkey", 1, readonly | joins_exec, {}, random_key, "1.0.0", "The name of some key."},
    {"rename", 3, write, two, rename_key, "1.0.0", "Gives a key another name."},
    {"renamenx", 3, write | fast, two, rename_key_if_new, "1.0.0",
     "Gives a key a name that no other has."},
    {"restore", -4, write | denyoom, one, restore, "2.6.0", "Makes a key of what DUMP gave."},
    {"scan",
     -2,
     readonly | joins_exec,
     {},
     scan_keys,
     "2.8.0",
     "Goes through the keys, some at a time."},
    {.name = "sort",
     .arity = -2,
     .flags = write | denyoom | movablekeys | joins_exec,
     .keys = one,
     .handler = sort,
     .since = "1.0.0",
     .summary = "Sorts a list, a set or a sorted set.",
     .find_keys = find_sort_keys},
    {"sort_ro", -2, readonly | movablekeys | joins_exec, one, sort_read_only, "7.0.0",
     "Sorts a list, a set or a sorted set, and stores nothing."},
    {"touch", -2, readonly | fast, all, exists, "3.2.1", "How many of the keys exist, as if used."},
    {"ttl", 2, readonly | fast, one, ttl, "1.0.0", "Seconds until a key expires."},
    {"type", 2, readonly | fast, one, type, "1.0.0", "The type of a key."},
    {"unlink", -2, write | fast, all, del, "4.0.0", "Deletes keys."},
    {"wait", 3, noscript, {}, wait, "3.0.0", "How many replicas have what was written: none."},
    {"waitaof",
     4,
     noscript,
     {},
     wait_for_log,
     "7.2.0",
     "Waits until what was written is on the disk."},
};

}  // namespace generic_table

}  // namespace

std::string_view type_name(RedisType type) {
  switch (type) {
    case RedisType::string:
    case RedisType::bitmap: return "string";
    default: return to_string(type);
  }
}

std::span<const Command> generic_commands() { return generic_table::table; }

}  // namespace trellis
