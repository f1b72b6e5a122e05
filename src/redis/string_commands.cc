#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "redis/bitmap.h"
#include "redis/call.h"
#include "redis/expire_time.h"
#include "redis/lcs_command.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

using namespace command_flag;

Status reply_text(Call& call, const Key& key) {
  if (key.exists())
    call.reply.bulk(key.text());
  else
    call.reply.null();
  return {};
}

// A new value, and no expiry.
void replace(Key& key, ByteView value) {
  key.set_text(Bytes(value));
  key.set_expire(0);
}

// --- SET and GETEX: one parser for their options, as in Redis ---

struct StringOptions {
  bool nx = false;
  bool xx = false;
  bool get = false;
  bool keep_ttl = false;
  bool persist = false;
  size_t time_at = 0;  // which argument; 0: none
  TimeUnit unit = TimeUnit::seconds;
  TimeBase base = TimeBase::now;
};

struct TimeOption {
  std::string_view word;
  TimeUnit unit;
  TimeBase base;
};
constexpr TimeOption time_options[] = {
    {"ex", TimeUnit::seconds, TimeBase::now},
    {"px", TimeUnit::milliseconds, TimeBase::now},
    {"exat", TimeUnit::seconds, TimeBase::epoch},
    {"pxat", TimeUnit::milliseconds, TimeBase::epoch},
};

bool take_time_option(const Call& call, size_t& i, StringOptions& options) {
  for (const TimeOption& option : time_options) {
    if (!call.is_word(i, option.word)) continue;
    const bool same =
        options.time_at == 0 || (options.unit == option.unit && options.base == option.base);
    if (options.keep_ttl || options.persist || !same || i + 1 >= call.count()) return false;
    options.unit = option.unit;
    options.base = option.base;
    options.time_at = ++i;
    return true;
  }
  return false;
}

Result<StringOptions> parse_options(const Call& call, size_t first, bool is_set) {
  StringOptions options;
  for (size_t i = first; i < call.count(); i++) {
    if (is_set && call.is_word(i, "nx") && !options.xx) {
      options.nx = true;
    } else if (is_set && call.is_word(i, "xx") && !options.nx) {
      options.xx = true;
    } else if (is_set && call.is_word(i, "get")) {
      options.get = true;
    } else if (is_set && call.is_word(i, "keepttl") && options.time_at == 0) {
      options.keep_ttl = true;
    } else if (!is_set && call.is_word(i, "persist") && options.time_at == 0) {
      options.persist = true;
    } else if (!take_time_option(call, i, options)) {
      return syntax_error();
    }
  }
  return options;
}

Status set(Call& call) {
  TRY_ASSIGN(const StringOptions options, parse_options(call, 3, true));
  uint64_t expire_ms = 0;
  if (options.time_at != 0) {
    TRY_ASSIGN(expire_ms, expire_time_ms(call, options.time_at, options.unit, options.base));
  }
  TRY_ASSIGN(Key* const key, call.open(1));
  if (options.get) {
    TRY(call.open(1, RedisType::string));
    TRY(reply_text(call, *key));
  }
  if ((options.nx && key->exists()) || (options.xx && !key->exists())) {
    if (!options.get) call.reply.null();
    return {};
  }
  const uint64_t kept_ms = options.keep_ttl && key->exists() ? key->expire_ms() : 0;
  key->set_text(Bytes(call.arg(2)));
  call.expire(*key, options.time_at != 0 ? expire_ms : kept_ms);
  if (!options.get) call.reply.ok();
  return {};
}

Status setnx(Call& call) {
  TRY_ASSIGN(Key* const key, call.open(1));
  const bool is_new = !key->exists();
  if (is_new) replace(*key, call.arg(2));
  call.reply.integer(is_new ? 1 : 0);
  return {};
}

Status set_with_time(Call& call, TimeUnit unit) {
  TRY_ASSIGN(const uint64_t expire_ms, expire_time_ms(call, 2, unit, TimeBase::now));
  TRY_ASSIGN(Key* const key, call.open(1));
  key->set_text(Bytes(call.arg(3)));
  call.expire(*key, expire_ms);
  call.reply.ok();
  return {};
}
Status setex(Call& call) { return set_with_time(call, TimeUnit::seconds); }
Status psetex(Call& call) { return set_with_time(call, TimeUnit::milliseconds); }

// --- reading ---

Status get(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::string));
  return reply_text(call, *key);
}

Status getset(Call& call) {
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::string));
  TRY(reply_text(call, *key));
  replace(*key, call.arg(2));
  return {};
}

Status getdel(Call& call) {
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::string));
  TRY(reply_text(call, *key));
  key->remove();
  return {};
}

Status getex(Call& call) {
  TRY_ASSIGN(const StringOptions options, parse_options(call, 2, false));
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::string));
  if (!key->exists()) return reply_text(call, *key);
  uint64_t expire_ms = 0;
  if (options.time_at != 0) {
    TRY_ASSIGN(expire_ms, expire_time_ms(call, options.time_at, options.unit, options.base));
  }
  TRY(reply_text(call, *key));
  if (options.time_at != 0 || options.persist) call.expire(*key, expire_ms);
  return {};
}

Status strlen(Call& call) {
  TRY_ASSIGN(const Key* const key, open_text(call, 1));
  call.reply.integer(static_cast<int64_t>(text_bytes(*key)));
  return {};
}

Status getrange(Call& call) {
  TRY_ASSIGN(int64_t start, call.integer(2));
  TRY_ASSIGN(int64_t end, call.integer(3));
  TRY_ASSIGN(const Key* const key, open_text(call, 1));
  const auto size = static_cast<int64_t>(text_bytes(*key));
  if (start < 0 && end < 0 && start > end) start = end = size;  // nothing
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (end < 0) end = std::max<int64_t>(end + size, 0);
  end = std::min(end, size - 1);
  Bytes part;
  if (start <= end && size != 0) {
    if (end - start >= static_cast<int64_t>(reply_bytes_max)) return part_too_long();
    TRY(read_text(call.keys, *key, static_cast<uint64_t>(start), static_cast<uint64_t>(end) + 1,
                  part));
  }
  call.reply.bulk(part);
  return {};
}

Status mget(Call& call) {
  call.reply.array(call.count() - 1);
  for (size_t i = 1; i < call.count() && call.reply.mark() <= reply_bytes_max; i++) {
    TRY_ASSIGN(Key* const key, call.open(i));
    TRY(load_text(call.keys, *key));
    if (key->exists() && is_text(key->type()))
      call.reply.bulk(key->text());
    else
      call.reply.null();
  }
  return {};
}

// --- writing several ---

Status set_pairs(Call& call) {
  for (size_t i = 1; i < call.count(); i += 2) {
    TRY_ASSIGN(Key* const key, call.open(i));
    replace(*key, call.arg(i + 1));
  }
  return {};
}

Status mset(Call& call) {
  if (call.count() % 2 == 0) return wrong_arity(call.command.name);
  TRY(set_pairs(call));
  call.reply.ok();
  return {};
}

Status msetnx(Call& call) {
  if (call.count() % 2 == 0) return wrong_arity(call.command.name);
  for (size_t i = 1; i < call.count(); i += 2) {
    TRY_ASSIGN(const Key* const key, call.open(i));
    if (!key->exists()) continue;
    call.reply.integer(0);
    return {};
  }
  TRY(set_pairs(call));
  call.reply.integer(1);
  return {};
}

// --- changing in place ---

// Overwrites a part, which may lie behind the end.
Status write_part(Call& call, Key& key, uint64_t offset, ByteView bytes) {
  const bool is_bitmap = key.exists() && key.type() == RedisType::bitmap;
  const uint64_t size = std::max(text_bytes(key), offset + bytes.size());
  if (size > (is_bitmap ? bitmap_bytes_max : string_bytes_max)) return string_too_long();
  call.reply.integer(static_cast<int64_t>(size));
  if (is_bitmap) {
    TRY(grow_text(call.keys, key, size));
    return write_text(call.keys, key, offset, bytes);
  }
  Bytes text = key.exists() ? Bytes(key.text()) : Bytes();
  text.resize(size, '\0');
  text.replace(offset, bytes.size(), bytes);
  key.set_text(std::move(text));
  return {};
}

Status append_text(Call& call) {
  TRY_ASSIGN(Key* const key, open_text(call, 1));
  return write_part(call, *key, text_bytes(*key), call.arg(2));
}

Status setrange(Call& call) {
  TRY_ASSIGN(const int64_t offset, call.integer(2));
  if (offset < 0) return reply_with("ERR offset is out of range");
  TRY_ASSIGN(Key* const key, open_text(call, 1));
  if (call.arg(3).empty()) {
    call.reply.integer(static_cast<int64_t>(text_bytes(*key)));
    return {};
  }
  return write_part(call, *key, static_cast<uint64_t>(offset), call.arg(3));
}

// A string or a bitmap, all of it, if a number may be so long.
Result<Key*> open_number(Call& call, size_t digits_max, Error (*not_a_number)()) {
  TRY_ASSIGN(Key* const key, open_text(call, 1));
  if (text_bytes(*key) > digits_max) return not_a_number();
  TRY(load_text(call.keys, *key));
  return key;
}

Status increment(Call& call, int64_t by) {
  constexpr size_t digits_max = 20;
  TRY_ASSIGN(Key* const key, open_number(call, digits_max, not_an_integer));
  int64_t number = 0;
  if (key->exists()) {
    const auto stored = parse_integer(key->text());
    if (!stored) return not_an_integer();
    number = *stored;
  }
  if (__builtin_add_overflow(number, by, &number))
    return reply_with("ERR increment or decrement would overflow");
  key->set_text(std::to_string(number));
  call.reply.integer(number);
  return {};
}

Status incr(Call& call) { return increment(call, 1); }
Status decr(Call& call) { return increment(call, -1); }
Status incrby(Call& call) {
  TRY_ASSIGN(const int64_t by, call.integer(2));
  return increment(call, by);
}
Status decrby(Call& call) {
  TRY_ASSIGN(const int64_t by, call.integer(2));
  if (by == INT64_MIN) return reply_with("ERR decrement would overflow");
  return increment(call, -by);
}

Status incrbyfloat(Call& call) {
  constexpr size_t digits_max = 5 * 1024 - 1;
  TRY_ASSIGN(Key* const key, open_number(call, digits_max, not_a_float));
  long double number = 0;
  if (key->exists()) {
    const auto stored = parse_long_double(key->text());
    if (!stored) return not_a_float();
    number = *stored;
  }
  const auto by = parse_long_double(call.arg(2));
  if (!by) return not_a_float();
  number += *by;
  if (std::isnan(number) || std::isinf(number))
    return reply_with("ERR increment would produce NaN or Infinity");
  const std::string text = long_double_text(number);
  call.reply.bulk(text);
  key->set_text(text);
  return {};
}

namespace string_table {

constexpr KeyPositions one{1, 1, 1};
constexpr uint32_t change = write | denyoom;

const Command table[] = {
    {"append", 3, change | fast, one, append_text, "2.0.0", "Adds to the end of a string."},
    {"decr", 2, change | fast, one, decr, "1.0.0", "Takes one from a number."},
    {"decrby", 3, change | fast, one, decrby, "1.0.0", "Takes a number from a number."},
    {"get", 2, readonly | fast, one, get, "1.0.0", "The value of a string."},
    {"getdel", 2, write | fast, one, getdel, "6.2.0", "The value of a string, which is deleted."},
    {"getex", -2, write | fast, one, getex, "6.2.0", "The value of a string, whose expiry is set."},
    {"getrange", 4, readonly, one, getrange, "2.4.0", "A part of a string."},
    {"getset", 3, change | fast, one, getset, "1.0.0", "Sets a string, and gives what it was."},
    {"incr", 2, change | fast, one, incr, "1.0.0", "Adds one to a number."},
    {"incrby", 3, change | fast, one, incrby, "1.0.0", "Adds to a number."},
    {"incrbyfloat", 3, change | fast, one, incrbyfloat, "2.6.0",
     "Adds to a floating point number."},
    {"lcs", -3, readonly, {1, 2, 1}, lcs, "7.0.0", "What two strings have in common, in order."},
    {"mget", -2, readonly | fast, {1, -1, 1}, mget, "1.0.0", "The values of several strings."},
    {"mset", -3, change, {1, -1, 2}, mset, "1.0.1", "Sets several strings at once."},
    {"msetnx",
     -3,
     change,
     {1, -1, 2},
     msetnx,
     "1.0.1",
     "Sets several strings if none of their keys exists."},
    {"psetex", 4, change, one, psetex, "2.6.0", "Sets a string that expires after milliseconds."},
    {"set", -3, change, one, set, "1.0.0", "Sets a string, whatever the key was."},
    {"setex", 4, change, one, setex, "2.0.0", "Sets a string that expires after seconds."},
    {"setnx", 3, change | fast, one, setnx, "1.0.0", "Sets a string if its key does not exist."},
    {"setrange", 4, change, one, setrange, "2.2.0", "Overwrites a part of a string."},
    {"strlen", 2, readonly | fast, one, strlen, "2.2.0", "The length of a string."},
    {"substr", 4, readonly, one, getrange, "1.0.0", "A part of a string; an old name of GETRANGE."},
};

}  // namespace string_table

}  // namespace

std::span<const Command> string_commands() { return string_table::table; }

}  // namespace trellis
