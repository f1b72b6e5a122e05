// Hashes: a record per field.
#include <cmath>
#include <limits>

#include "redis/call.h"
#include "redis/collection.h"
#include "redis/field_expiry.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

using namespace command_flag;

// --- writing ---

// Makes the key a hash if it is not there, and counts `added` fields. Also what only overwrites
// fields has changed the key.
void grow(Call& call, Key& key, uint64_t added) {
  if (!key.exists()) key.create(RedisType::hash, call.keys.new_version());
  key.set_size(key.size() + added);
}

void put_field(Call& call, Key& key, ByteView field, ByteView value, const Value& old) {
  grow(call, key, old.found() ? 0 : 1);
  call.keys.put_sub(key, field, value, old);
}

// The key in argument 1, in which these fields are to be written: what is over of them goes.
Result<Key*> open_to_write(Call& call, std::span<const ByteView> fields) {
  TRY_ASSIGN(Key* const key, call.open_to_add_fields());
  if (key->exists()) TRY(FieldExpiry(call.keys, *key).remove_over(fields));
  return key;
}

Status set_fields(Call& call, uint64_t& added) {
  if (call.count() % 2 != 0) return wrong_arity(call.command.name);
  const std::vector<size_t> positions = distinct_args(call, 2, 2);
  const std::vector<ByteView> fields = args_at(call, positions);
  TRY_ASSIGN(Key* const key, open_to_write(call, fields));
  std::vector<Value> old(positions.size());
  if (key->exists()) {
    TRY(FieldExpiry(call.keys, *key).forget(fields));
    TRY(call.keys.get_subs(*key, fields, old));
  }
  for (const Value& value : old) added += value.found() ? 0 : 1;
  grow(call, *key, added);
  for (size_t i = 0; i < positions.size(); i++)
    call.keys.put_sub(*key, call.arg(positions[i]), call.arg(positions[i] + 1), old[i]);
  return {};
}

Status hset(Call& call) {
  uint64_t added = 0;
  TRY(set_fields(call, added));
  call.reply.integer(static_cast<int64_t>(added));
  return {};
}

Status hmset(Call& call) {
  uint64_t added = 0;
  TRY(set_fields(call, added));
  call.reply.ok();
  return {};
}

Status hsetnx(Call& call) {
  TRY_ASSIGN(Key* const key, open_to_write(call, call.args.subspan(2, 1)));
  Value old;
  if (key->exists()) TRY(call.keys.get_sub(*key, call.arg(2), old));
  if (!old.found()) put_field(call, *key, call.arg(2), call.arg(3), old);
  call.reply.integer(old.found() ? 0 : 1);
  return {};
}

Status hdel(Call& call) {
  TRY_ASSIGN(Key* const key, call.open_by_field());
  if (key->exists())
    TRY(FieldExpiry(call.keys, *key).forget(args_at(call, distinct_args(call, 2))));
  TRY_ASSIGN(const uint64_t removed, remove_args(call, *key, 2));
  call.reply.integer(static_cast<int64_t>(removed));
  return {};
}

Status hincrby(Call& call) {
  TRY_ASSIGN(const int64_t by, call.integer(3));
  TRY_ASSIGN(Key* const key, open_to_write(call, call.args.subspan(2, 1)));
  Value old;
  if (key->exists()) TRY(call.keys.get_sub(*key, call.arg(2), old));
  int64_t number = 0;
  if (old.found()) {
    const auto stored = parse_integer(old.bytes());
    if (!stored) return reply_with("ERR hash value is not an integer");
    number = *stored;
  }
  if (__builtin_add_overflow(number, by, &number))
    return reply_with("ERR increment or decrement would overflow");
  put_field(call, *key, call.arg(2), std::to_string(number), old);
  call.reply.integer(number);
  return {};
}

Status hincrbyfloat(Call& call) {
  const auto by = parse_long_double(call.arg(3));
  if (!by) return not_a_float();
  if (std::isinf(*by)) return reply_with("ERR value is NaN or Infinity");
  TRY_ASSIGN(Key* const key, open_to_write(call, call.args.subspan(2, 1)));
  Value old;
  if (key->exists()) TRY(call.keys.get_sub(*key, call.arg(2), old));
  long double number = 0;
  if (old.found()) {
    const auto stored = parse_long_double(old.bytes());
    if (!stored) return reply_with("ERR hash value is not a float");
    number = *stored;
  }
  number += *by;
  if (std::isnan(number) || std::isinf(number))
    return reply_with("ERR increment would produce NaN or Infinity");
  const std::string text = long_double_text(number);
  put_field(call, *key, call.arg(2), text, old);
  call.reply.bulk(text);
  return {};
}

// --- reading ---

void reply_value(Call& call, const Value& value) {
  if (value.found())
    call.reply.bulk(value.bytes());
  else
    call.reply.null();
}

Status read_field(Call& call, Value& value) {
  TRY_ASSIGN(const Key* const key, call.open_by_field());
  return key->exists() ? call.keys.get_sub(*key, call.arg(2), value) : Status();
}

Status hget(Call& call) {
  Value value;
  TRY(read_field(call, value));
  reply_value(call, value);
  return {};
}

Status hexists(Call& call) {
  Value value;
  TRY(read_field(call, value));
  call.reply.integer(value.found() ? 1 : 0);
  return {};
}

Status hstrlen(Call& call) {
  Value value;
  TRY(read_field(call, value));
  call.reply.integer(value.found() ? static_cast<int64_t>(value.bytes().size()) : 0);
  return {};
}

Status hmget(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open_by_field());
  std::vector<Value> values(call.count() - 2);
  if (key->exists()) TRY(call.keys.get_subs(*key, call.args.subspan(2), values));
  call.reply.array(values.size());
  for (const Value& value : values) reply_value(call, value);
  return {};
}

Status hlen(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::hash));
  call.reply.integer(key->exists() ? static_cast<int64_t>(key->size()) : 0);
  return {};
}

struct Parts {
  bool field;
  bool value;
};

Status reply_all(Call& call, Parts parts) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::hash));
  const size_t mark = call.reply.mark();
  size_t found = 0;
  TRY(visit_records(call, *key, [&](ByteView field, ByteView value) {
    if (parts.field) call.reply.bulk(field);
    if (parts.value) call.reply.bulk(value);
    found++;
  }));
  if (parts.field && parts.value)
    call.reply.insert_map(mark, found);
  else
    call.reply.insert_array(mark, found);
  return {};
}
Status hgetall(Call& call) { return reply_all(call, {.field = true, .value = true}); }
Status hkeys(Call& call) { return reply_all(call, {.field = true, .value = false}); }
Status hvals(Call& call) { return reply_all(call, {.field = false, .value = true}); }

Status hscan(Call& call) {
  return reply_scan(call, RedisType::hash, 2, [&](ByteView field, ByteView value) {
    call.reply.bulk(field);
    call.reply.bulk(value);
  });
}

Status hrandfield(Call& call) {
  const bool counted = call.count() > 2;
  RandomPick pick;
  if (counted) {
    TRY_ASSIGN(pick, random_pick(call));
    pick.with_values = call.count() == 4 && call.is_word(3, "withvalues");
    if (call.count() > 3 && !pick.with_values) return syntax_error();
    constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 2);
    if (pick.with_values && pick.count > most) return reply_with("ERR value is out of range");
  }
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::hash));
  if (!key->exists() && !counted) {
    call.reply.null();
    return {};
  }
  const bool pairs = pick.with_values && call.reply.protocol() != 2;
  const size_t mark = call.reply.mark();
  size_t found = 0;
  TRY(visit_random(call, *key, pick, [&](ByteView field, ByteView value) {
    if (pairs) call.reply.array(2);
    call.reply.bulk(field);
    if (pick.with_values) call.reply.bulk(value);
    found += pick.with_values && !pairs ? 2 : 1;
  }));
  if (counted) call.reply.insert_array(mark, found);
  return {};
}

namespace hash_table {

constexpr KeyPositions one{1, 1, 1};
constexpr uint32_t change = write | denyoom | fast;

const Command table[] = {
    {"hdel", -3, write | fast, one, hdel, "2.0.0", "Deletes fields of a hash.", {2, 1}},
    {"hexists", 3, readonly | fast, one, hexists, "2.0.0", "Whether a hash has a field.", {2}},
    {"hget", 3, readonly | fast, one, hget, "2.0.0", "The value of a field.", {2}},
    {"hgetall", 2, readonly, one, hgetall, "2.0.0", "All fields of a hash and their values."},
    {"hincrby", 4, change, one, hincrby, "2.0.0", "Adds to the number in a field.", {2}},
    {"hincrbyfloat",
     4,
     change,
     one,
     hincrbyfloat,
     "2.6.0",
     "Adds to the floating point number in a field.",
     {2}},
    {"hkeys", 2, readonly, one, hkeys, "2.0.0", "All fields of a hash."},
    {"hlen", 2, readonly | fast, one, hlen, "2.0.0", "How many fields a hash has."},
    {"hmget", -3, readonly | fast, one, hmget, "2.0.0", "The values of several fields.", {2, 1}},
    {"hmset", -4, change, one, hmset, "2.0.0", "Sets fields of a hash.", {2, 2}},
    {"hrandfield", -2, readonly, one, hrandfield, "6.2.0", "Fields of a hash at random."},
    {"hscan", -3, readonly, one, hscan, "2.8.0", "A page of the fields of a hash."},
    {"hset", -4, change, one, hset, "2.0.0", "Sets fields of a hash.", {2, 2}},
    {"hsetnx", 4, change, one, hsetnx, "2.0.0", "Sets a field that the hash does not have.", {2}},
    {"hstrlen", 3, readonly | fast, one, hstrlen, "3.2.0", "The length of a field's value.", {2}},
    {"hvals", 2, readonly, one, hvals, "2.0.0", "All values of a hash."},
};

}  // namespace hash_table

}  // namespace

std::span<const Command> hash_commands() { return hash_table::table; }

}  // namespace trellis
