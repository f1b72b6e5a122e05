#include "redis/call.h"

#include <fmt/format.h>

#include <algorithm>

#include "redis/bitmap.h"
#include "redis/number_text.h"

namespace trellis {

Error reply_with(std::string message) { return {Code::invalid, std::move(message), reply_error}; }
Error wrong_type() {
  return reply_with("WRONGTYPE Operation against a key holding the wrong kind of value");
}
Error syntax_error() { return reply_with("ERR syntax error"); }
Error not_an_integer() { return reply_with("ERR value is not an integer or out of range"); }
Error not_a_float() { return reply_with("ERR value is not a valid float"); }
Error no_such_key() { return reply_with("ERR no such key"); }
Error wrong_arity(std::string_view command) {
  return reply_with(fmt::format("ERR wrong number of arguments for '{}' command", command));
}

Error string_too_long() {
  return reply_with("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
}

std::string_view shown(ByteView text, size_t bytes_max) {
  return text.substr(0, std::min(text.find('\0'), bytes_max));
}

bool equals_word(ByteView text, std::string_view word) {
  return text.size() == word.size() &&
         std::equal(text.begin(), text.end(), word.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b;
         });
}

bool Call::is_word(size_t i, std::string_view word) const { return equals_word(arg(i), word); }

Result<int64_t> Call::integer(size_t i) const {
  const auto number = parse_integer(arg(i));
  if (!number) return not_an_integer();
  return *number;
}

Result<double> Call::number(size_t i) const {
  const auto number = parse_double(arg(i));
  if (!number) return not_a_float();
  return *number;
}

bool AloneCall::is_word(size_t i, std::string_view word) const { return equals_word(arg(i), word); }

Result<int64_t> AloneCall::integer(size_t i) const {
  const auto number = parse_integer(arg(i));
  if (!number) return not_an_integer();
  return *number;
}

Result<int32_t> AloneCall::index(size_t i, Error not_a_number) const {
  const auto number = parse_integer(arg(i));
  if (!number || *number != static_cast<int32_t>(*number)) return not_a_number;
  return static_cast<int32_t>(*number);
}

Result<uint32_t> database_at(int64_t index) {
  if (index < 0 || index >= databases_max) return reply_with("ERR DB index is out of range");
  return static_cast<uint32_t>(index);
}

Result<Key*> Call::open(size_t i) {
  TRY_ASSIGN(Key* const key, keys.open(session.database, arg(i)));
  count_lookup(*key);
  return key;
}

Result<Key*> Call::open_whole(size_t i) {
  TRY_ASSIGN(Key* const key, keys.open_whole(session.database, arg(i)));
  count_lookup(*key);
  return key;
}

Result<Key*> Call::open_by_field() {
  TRY_ASSIGN(Key* const key, keys.open_by_field(session.database, arg(1)));
  count_lookup(*key);
  if (key->exists() && key->type() != RedisType::hash) return wrong_type();
  return key;
}

Result<Key*> Call::open_to_add_fields() {
  TRY_ASSIGN(Key* const key, open_by_field());
  if (key->exists() && key->expire_ms() != 0) return keys.open_whole(session.database, arg(1));
  return key;
}

void Call::count_lookup(const Key& key) const {
  if (command.has(command_flag::readonly)) (key.exists() ? lookups.hits : lookups.misses)++;
}

Result<Key*> Call::open(size_t i, RedisType type) {
  TRY_ASSIGN(Key* const key, open(i));
  if (!key->exists() || key->type() == type) return key;
  if (type != RedisType::string || key->type() != RedisType::bitmap) return wrong_type();
  TRY(load_text(keys, *key));
  return key;
}

void Call::expire(Key& key, uint64_t expire_ms) const {
  if (expire_ms != 0 && expire_ms <= now_ms())
    key.remove();
  else
    key.set_expire(expire_ms);
}

}  // namespace trellis
