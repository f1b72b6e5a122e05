// Fields of hashes that expire, as Redis 7.4 and 8.0 have them.
#include <fmt/format.h>

#include <algorithm>

#include "redis/call.h"
#include "redis/expire_time.h"
#include "redis/field_expiry.h"
#include "redis/number_text.h"

namespace trellis {
namespace {
namespace hash_expiry_table {

using namespace command_flag;

// The latest time that Redis has for a field.
constexpr int64_t field_ms_max = (int64_t{1} << 46) - 1;

enum Outcome : int64_t { no_field = -2, no_expiry = -1, not_met = 0, done = 1, removed = 2 };

// --- arguments ---

struct TimeForm {
  TimeUnit unit;
  TimeBase base;
};

Result<uint64_t> parse_time(const Call& call, size_t i, TimeForm form) {
  TRY_ASSIGN(int64_t time, call.integer(i));
  if (time < 0) return reply_with("ERR invalid expire time, must be >= 0");
  const int64_t factor = form.unit == TimeUnit::seconds ? 1'000 : 1;
  if (time > field_ms_max / factor) return invalid_expire(call);
  time *= factor;
  // 0 stands for none.
  if (form.base == TimeBase::epoch) return static_cast<uint64_t>(std::max<int64_t>(time, 1));
  const auto now = static_cast<int64_t>(call.now_ms());
  if (time > field_ms_max - now) return invalid_expire(call);
  return static_cast<uint64_t>(time + now);
}

// FIELDS count field ..., where argument `at` has to be the first of it and nothing follows.
Result<Args> parse_fields(const Call& call, size_t at, const char* bad_count) {
  if (at >= call.count() || !call.is_word(at, "fields"))
    return reply_with("ERR Mandatory argument FIELDS is missing or not at the right position");
  const auto count = at + 1 < call.count() ? parse_integer(call.arg(at + 1)) : std::nullopt;
  if (!count || *count < 1) return reply_with(bad_count);
  if (static_cast<uint64_t>(*count) != call.count() - at - 2)
    return reply_with("ERR The `numfields` parameter must match the number of arguments");
  return call.args.subspan(at + 2);
}
constexpr const char* not_positive = "ERR Number of fields must be a positive integer";

// --- one field ---

struct Field {
  Value value;
  uint64_t expire_ms = 0;
};

Status read(Call& call, Key& key, ByteView name, Field& field) {
  if (!key.exists()) return {};
  TRY(call.keys.get_sub(key, name, field.value));
  if (!field.value.found()) return {};
  TRY_ASSIGN(const auto times, FieldExpiry(call.keys, key).times({&name, 1}));
  field.expire_ms = times[0];
  return {};
}

// REQUIRES: it is there.
void remove(Call& call, Key& key, ByteView name, const Field& field) {
  FieldExpiry(call.keys, key).set(name, 0, field.expire_ms);
  call.keys.remove_sub(key, name, field.value);
  key.set_size(key.size() - 1);
}

// At a time that has come it goes. REQUIRES: it is there.
Outcome expire(Call& call, Key& key, ByteView name, const Field& field, uint64_t expire_ms) {
  if (expire_ms != 0 && expire_ms <= call.now_ms()) {
    remove(call, key, name, field);
    return removed;
  }
  FieldExpiry(call.keys, key).set(name, expire_ms, field.expire_ms);
  key.set_size(key.size());  // it was changed
  return done;
}

// --- HEXPIRE and its kin ---

enum class Condition : uint8_t { none, nx, xx, gt, lt };

bool is_met(Condition condition, uint64_t was, uint64_t expire_ms) {
  switch (condition) {
    case Condition::none: return true;
    case Condition::nx: return was == 0;
    case Condition::xx: return was != 0;
    case Condition::gt: return was != 0 && expire_ms > was;
    case Condition::lt: return was == 0 || expire_ms < was;
  }
  return false;
}

Condition parse_condition(const Call& call, size_t i) {
  if (call.is_word(i, "nx")) return Condition::nx;
  if (call.is_word(i, "xx")) return Condition::xx;
  if (call.is_word(i, "gt")) return Condition::gt;
  return call.is_word(i, "lt") ? Condition::lt : Condition::none;
}

Status expire_fields(Call& call, TimeForm form) {
  TRY_ASSIGN(Key* const key, call.open_by_field());
  TRY_ASSIGN(const uint64_t expire_ms, parse_time(call, 2, form));
  const Condition condition = parse_condition(call, 3);
  TRY_ASSIGN(const Args fields, parse_fields(call, condition == Condition::none ? 3 : 4,
                                             "ERR Parameter `numFields` should be greater than 0"));
  call.reply.array(fields.size());
  for (const ByteView name : fields) {
    Field field;
    TRY(read(call, *key, name, field));
    Outcome outcome = field.value.found() ? not_met : no_field;
    if (field.value.found() && is_met(condition, field.expire_ms, expire_ms))
      outcome = expire(call, *key, name, field, expire_ms);
    call.reply.integer(outcome);
  }
  return {};
}

Status hexpire(Call& call) { return expire_fields(call, {TimeUnit::seconds, TimeBase::now}); }
Status hpexpire(Call& call) { return expire_fields(call, {TimeUnit::milliseconds, TimeBase::now}); }
Status hexpireat(Call& call) { return expire_fields(call, {TimeUnit::seconds, TimeBase::epoch}); }
Status hpexpireat(Call& call) {
  return expire_fields(call, {TimeUnit::milliseconds, TimeBase::epoch});
}

// --- HTTL and its kin ---

Status reply_times(Call& call, TimeForm form) {
  TRY_ASSIGN(Key* const key, call.open_by_field());
  TRY_ASSIGN(const Args fields, parse_fields(call, 2, not_positive));
  call.reply.array(fields.size());
  for (const ByteView name : fields) {
    Field field;
    TRY(read(call, *key, name, field));
    auto time = static_cast<int64_t>(field.expire_ms);
    if (form.base == TimeBase::now) time -= static_cast<int64_t>(call.now_ms());
    if (form.unit == TimeUnit::seconds) time = (time + 999) / 1'000;
    if (field.expire_ms == 0) time = field.value.found() ? no_expiry : no_field;
    call.reply.integer(time);
  }
  return {};
}

Status httl(Call& call) { return reply_times(call, {TimeUnit::seconds, TimeBase::now}); }
Status hpttl(Call& call) { return reply_times(call, {TimeUnit::milliseconds, TimeBase::now}); }
Status hexpiretime(Call& call) { return reply_times(call, {TimeUnit::seconds, TimeBase::epoch}); }
Status hpexpiretime(Call& call) {
  return reply_times(call, {TimeUnit::milliseconds, TimeBase::epoch});
}

Status hpersist(Call& call) {
  TRY_ASSIGN(Key* const key, call.open_by_field());
  TRY_ASSIGN(const Args fields, parse_fields(call, 2, not_positive));
  call.reply.array(fields.size());
  for (const ByteView name : fields) {
    Field field;
    TRY(read(call, *key, name, field));
    Outcome outcome = field.value.found() ? no_expiry : no_field;
    if (field.expire_ms != 0) outcome = expire(call, *key, name, field, 0);
    call.reply.integer(outcome);
  }
  return {};
}

// --- HGETEX, HSETEX, HGETDEL ---

// What stands before FIELDS in HSETEX.
struct Options {
  std::optional<uint64_t> expire_ms;
  bool keeps = false;     // KEEPTTL
  bool only_new = false;  // FNX
  bool only_old = false;  // FXX
  size_t fields_at = 0;
};

std::optional<TimeForm> time_form(const Call& call, size_t i) {
  if (call.is_word(i, "ex")) return TimeForm{TimeUnit::seconds, TimeBase::now};
  if (call.is_word(i, "px")) return TimeForm{TimeUnit::milliseconds, TimeBase::now};
  if (call.is_word(i, "exat")) return TimeForm{TimeUnit::seconds, TimeBase::epoch};
  if (call.is_word(i, "pxat")) return TimeForm{TimeUnit::milliseconds, TimeBase::epoch};
  return std::nullopt;
}

Status take_option(const Call& call, size_t& i, Options& options) {
  const auto form = time_form(call, i);
  if (form || call.is_word(i, "keepttl")) {
    if (options.expire_ms || options.keeps)
      return reply_with("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");
    options.keeps = !form;
    if (!form) return {};
    if (++i == call.count()) return reply_with("ERR missing expire time");
    TRY_ASSIGN(options.expire_ms, parse_time(call, i, *form));
    return {};
  }
  if (call.is_word(i, "fnx") || call.is_word(i, "fxx")) {
    if (options.only_new || options.only_old)
      return reply_with("ERR Only one of FXX or FNX arguments can be specified");
    (call.is_word(i, "fnx") ? options.only_new : options.only_old) = true;
    return {};
  }
  return reply_with(fmt::format("ERR unknown argument: {}", shown(call.arg(i))));
}

Result<Options> parse_options(const Call& call) {
  Options options;
  size_t i = 2;
  for (; i < call.count() && !call.is_word(i, "fields"); i++) TRY(take_option(call, i, options));
  if (i == call.count()) return reply_with("ERR missing FIELDS argument");
  const auto count = i + 1 < call.count() ? parse_integer(call.arg(i + 1)) : std::nullopt;
  if (!count || *count < 1) return reply_with("ERR invalid number of fields");
  const size_t left = call.count() - i - 2;
  if (left % 2 != 0 || static_cast<uint64_t>(*count) != left / 2)
    return wrong_arity(call.command.name);
  options.fields_at = i + 2;
  return options;
}

void reply_value(Call& call, const Field& field) {
  if (field.value.found())
    call.reply.bulk(field.value.bytes());
  else
    call.reply.null();
}

Status hgetex(Call& call) {
  TRY_ASSIGN(Key* const key, call.open_by_field());
  std::optional<uint64_t> expire_ms;  // 0: PERSIST
  size_t fields_at = 2;
  if (const auto form = time_form(call, 2)) {
    TRY_ASSIGN(expire_ms, parse_time(call, 3, *form));
    fields_at = 4;
  } else if (call.is_word(2, "persist")) {
    expire_ms = 0;
    fields_at = 3;
  }
  TRY_ASSIGN(const Args fields, parse_fields(call, fields_at, not_positive));
  call.reply.array(fields.size());
  for (const ByteView name : fields) {
    Field field;
    TRY(read(call, *key, name, field));
    reply_value(call, field);
    if (!field.value.found() || !expire_ms) continue;
    if (*expire_ms != 0 || field.expire_ms != 0) expire(call, *key, name, field, *expire_ms);
  }
  return {};
}

Status hsetex(Call& call) {
  TRY_ASSIGN(Key* const key, call.open_to_add_fields());
  TRY_ASSIGN(const Options options, parse_options(call));
  const Args pairs = call.args.subspan(options.fields_at);
  for (size_t i = 0; i < pairs.size() && (options.only_new || options.only_old); i += 2) {
    Field field;
    TRY(read(call, *key, pairs[i], field));
    if (field.value.found() == options.only_old) continue;
    call.reply.integer(0);
    return {};
  }
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const ByteView name = pairs[i];
    Field field;
    if (!key->exists()) key->create(RedisType::hash, call.keys.new_version());
    FieldExpiry expiry(call.keys, *key);
    TRY(expiry.remove_over({&name, 1}));
    TRY(read(call, *key, name, field));
    call.keys.put_sub(*key, name, pairs[i + 1], field.value);
    key->set_size(key->size() + (field.value.found() ? 0 : 1));
    if (options.keeps) continue;
    Field written{.value = {}, .expire_ms = field.expire_ms};
    written.value.set_borrowed(pairs[i + 1]);
    expire(call, *key, name, written, options.expire_ms.value_or(0));
  }
  call.reply.integer(1);
  return {};
}

Status hgetdel(Call& call) {
  TRY_ASSIGN(Key* const key, call.open_by_field());
  TRY_ASSIGN(const Args fields, parse_fields(call, 2, not_positive));
  call.reply.array(fields.size());
  for (const ByteView name : fields) {
    Field field;
    TRY(read(call, *key, name, field));
    reply_value(call, field);
    if (field.value.found()) remove(call, *key, name, field);
  }
  return {};
}

constexpr KeyPositions one{1, 1, 1};
constexpr uint32_t change = write | denyoom | fast;
constexpr uint32_t look = readonly | fast;

const Command table[] = {
    {"hexpire", -6, change, one, hexpire, "7.4.0", "Lets fields expire in so many seconds."},
    {"hexpireat", -6, change, one, hexpireat, "7.4.0", "Lets fields expire at a unix time."},
    {"hexpiretime", -5, look, one, hexpiretime, "7.4.0", "When fields expire, in unix seconds."},
    {"hgetdel", -5, write | fast, one, hgetdel, "8.0.0", "Takes fields out of a hash."},
    {"hgetex", -5, write | fast, one, hgetex, "8.0.0", "Values of fields, which then expire."},
    {"hpersist", -5, write | fast, one, hpersist, "7.4.0", "Lets fields not expire any more."},
    {"hpexpire", -6, change, one, hpexpire, "7.4.0", "Lets fields expire in so many milliseconds."},
    {"hpexpireat", -6, change, one, hpexpireat, "7.4.0",
     "Lets fields expire at a unix time in milliseconds."},
    {"hpexpiretime", -5, look, one, hpexpiretime, "7.4.0",
     "When fields expire, in unix milliseconds."},
    {"hpttl", -5, look, one, hpttl, "7.4.0", "In how many milliseconds fields expire."},
    {"hsetex", -6, change, one, hsetex, "8.0.0", "Sets fields, which then expire."},
    {"httl", -5, look, one, httl, "7.4.0", "In how many seconds fields expire."},
};

}  // namespace hash_expiry_table
}  // namespace

std::span<const Command> hash_expiry_commands() { return hash_expiry_table::table; }

}  // namespace trellis
