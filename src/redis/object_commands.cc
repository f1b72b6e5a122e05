// OBJECT: how redis-server 7.0 would keep a value of that size, as far as it can be told from it.
#include <fmt/format.h>

#include "redis/generic_handlers.h"
#include "redis/help.h"
#include "redis/number_text.h"
#include "redis/server.h"

namespace trellis {
namespace {

using namespace command_flag;

constexpr size_t embedded_bytes_max = 44;
constexpr int64_t shared_numbers = 10'000;  // Redis has one object for each of the smallest

// What Redis packs, by the settings of the keyspace.
struct Limits {
  uint64_t entries = 0;
  size_t item_bytes = 0;
};

Limits limits_of(Call& call, std::string_view type) {
  const auto setting = [&](std::string_view name) {
    return static_cast<uint64_t>(call.server.config().number(
        call.session.tenant->id(), fmt::format("{}-max-listpack-{}", type, name)));
  };
  return {.entries = setting("entries"), .item_bytes = setting("value")};
}

struct Shape {
  bool all_numbers = true;
  size_t longest_bytes = 0;
};

// Of a collection; looks no further than what decides, and not at more than some thousand entries.
Result<Shape> shape_of(Call& call, const Key& key, size_t item_bytes_max) {
  constexpr uint64_t entries_max = 16'384;
  Shape shape;
  uint64_t left = entries_max;
  TRY(call.keys.scan_subs(key, {}, [&](ByteView sub, ByteView value) {
    shape.all_numbers = shape.all_numbers && parse_integer(sub).has_value();
    shape.longest_bytes = std::max(shape.longest_bytes, sub.size());
    if (key.type() == RedisType::hash)
      shape.longest_bytes = std::max(shape.longest_bytes, value.size());
    const bool is_decided = !shape.all_numbers && shape.longest_bytes > item_bytes_max;
    return is_decided || --left == 0 ? Visit::stop : Visit::go_on;
  }));
  return shape;
}

Result<bool> packs(Call& call, const Key& key, const Limits& limits) {
  if (key.size() > limits.entries) return false;
  TRY_ASSIGN(const Shape shape, shape_of(call, key, limits.item_bytes));
  return shape.longest_bytes <= limits.item_bytes;
}

Result<std::string_view> set_encoding(Call& call, const Key& key) {
  const auto numbers_max = static_cast<uint64_t>(
      call.server.config().number(call.session.tenant->id(), "set-max-intset-entries"));
  if (key.size() > numbers_max) return "hashtable";
  TRY_ASSIGN(const Shape shape, shape_of(call, key, 0));
  return shape.all_numbers ? "intset" : "hashtable";
}

}  // namespace

Result<std::string_view> encoding_of(Call& call, const Key& key) {
  if (key.type() == RedisType::string) {
    if (parse_integer(key.text())) return "int";
    return key.text().size() <= embedded_bytes_max ? "embstr" : "raw";
  }
  bool is_packed = false;
  switch (key.type()) {
    case RedisType::list: return "quicklist";
    case RedisType::set: return set_encoding(call, key);
    case RedisType::hash: {
      TRY_ASSIGN(is_packed, packs(call, key, limits_of(call, "hash")));
      return is_packed ? "listpack" : "hashtable";
    }
    case RedisType::zset: {
      TRY_ASSIGN(is_packed, packs(call, key, limits_of(call, "zset")));
      return is_packed ? "listpack" : "skiplist";
    }
    case RedisType::stream: return "stream";
    default: return "raw";
  }
}

namespace {

// A key that does not exist has no answer.
Result<const Key*> open_object(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(2));
  if (!key->exists()) call.reply.null();
  return key;
}

Status encoding(Call& call) {
  TRY_ASSIGN(const Key* const key, open_object(call));
  if (!key->exists()) return {};
  TRY_ASSIGN(const std::string_view name, encoding_of(call, *key));
  call.reply.bulk(name);
  return {};
}

// Redis keeps either, by its policy, and refuses to tell the other. Here neither is kept: a key is
// as one that is new.
Status use_of_key(Call& call, bool by_frequency) {
  TRY_ASSIGN(const Key* const key, open_object(call));
  if (!key->exists()) return {};
  const bool keeps_frequency =
      call.server.config().value(call.session.tenant->id(), "maxmemory-policy").ends_with("-lfu");
  if (by_frequency != keeps_frequency)
    return reply_with(fmt::format(
        "ERR An LFU maxmemory policy is {} not tracked. Please note that when switching between "
        "policies at runtime LRU and LFU data will take some time to adjust.",
        by_frequency ? "not selected, access frequency" : "selected, idle time"));
  call.reply.integer(0);
  return {};
}
Status frequency(Call& call) { return use_of_key(call, true); }
Status idle_time(Call& call) { return use_of_key(call, false); }

Status references(Call& call) {
  TRY_ASSIGN(const Key* const key, open_object(call));
  if (!key->exists()) return {};
  const auto number =
      key->type() == RedisType::string ? parse_integer(key->text()) : std::optional<int64_t>();
  call.reply.integer(number && *number >= 0 && *number < shared_numbers ? INT32_MAX : 1);
  return {};
}

constexpr Command about_key(std::string_view name, Status (*handler)(Call&),
                            std::string_view summary) {
  return {.name = name,
          .arity = 3,
          .flags = readonly,
          .keys = {2, 2, 1},
          .handler = handler,
          .since = "2.2.3",
          .summary = summary,
          .container = "object",
          .syntax = "<key>"};
}

namespace object_table {

const Command table[] = {
    about_key("encoding", encoding, "How Redis would keep the value of a key."),
    about_key("freq", frequency, "How often a key is used, which is not kept."),
    help_entry("object", "6.2.0"),
    about_key("idletime", idle_time, "Seconds since a key was used, which are not kept."),
    about_key("refcount", references,
              "How many references Redis would have to the value of a key."),
};

}  // namespace object_table

}  // namespace

std::span<const Command> object_commands() { return object_table::table; }

}  // namespace trellis
