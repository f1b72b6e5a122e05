// OBJECT: how Redis would keep a value of that size, as far as it can be told from the value.
#include "redis/generic_handlers.h"
#include "redis/help.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

using namespace command_flag;

// Redis's limits for what it packs, by default.
constexpr uint64_t packed_entries_max = 128;
constexpr uint64_t intset_entries_max = 512;
constexpr size_t packed_item_bytes_max = 64;
constexpr size_t packed_list_bytes_max = 8 * 1024;
constexpr size_t embedded_bytes_max = 44;

struct Shape {
  bool all_numbers = true;
  size_t longest_bytes = 0;
  size_t bytes = 0;
};

// Of a collection; looks no further than what decides.
Result<Shape> shape_of(Call& call, const Key& key) {
  Shape shape;
  uint64_t left = intset_entries_max;
  TRY(call.keys.scan_subs(key, {}, [&](ByteView sub, ByteView value) {
    const ByteView item = key.type() == RedisType::list ? value : sub;
    shape.all_numbers = shape.all_numbers && parse_integer(item).has_value();
    shape.longest_bytes = std::max(shape.longest_bytes, item.size());
    if (key.type() == RedisType::hash)
      shape.longest_bytes = std::max(shape.longest_bytes, value.size());
    shape.bytes += item.size() + 2;
    if (key.type() == RedisType::list)
      return shape.bytes > packed_list_bytes_max ? Visit::stop : Visit::go_on;
    return --left == 0 ? Visit::stop : Visit::go_on;
  }));
  return shape;
}

}  // namespace

Result<std::string_view> encoding_of(Call& call, const Key& key) {
  if (key.type() == RedisType::string) {
    if (parse_integer(key.text())) return "int";
    return key.text().size() <= embedded_bytes_max ? "embstr" : "raw";
  }
  TRY_ASSIGN(const Shape shape, shape_of(call, key));
  const bool packs =
      key.size() <= packed_entries_max && shape.longest_bytes <= packed_item_bytes_max;
  switch (key.type()) {
    case RedisType::list: return shape.bytes <= packed_list_bytes_max ? "listpack" : "quicklist";
    case RedisType::set:
      if (shape.all_numbers && key.size() <= intset_entries_max) return "intset";
      return packs ? "listpack" : "hashtable";
    case RedisType::hash: return packs ? "listpack" : "hashtable";
    case RedisType::zset: return packs ? "listpack" : "skiplist";
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

Status frequency(Call& call) {
  TRY_ASSIGN(const Key* const key, open_object(call));
  if (!key->exists()) return {};
  return reply_with(
      "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
      "when switching between policies at runtime LRU and LFU data will take some time to adjust.");
}

// Not kept: as if it was just used.
Status idle_time(Call& call) {
  TRY_ASSIGN(const Key* const key, open_object(call));
  if (key->exists()) call.reply.integer(0);
  return {};
}

Status references(Call& call) {
  TRY_ASSIGN(const Key* const key, open_object(call));
  if (key->exists()) call.reply.integer(1);
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

const Command table[] = {
    about_key("encoding", encoding, "How Redis would keep the value of a key."),
    about_key("freq", frequency, "How often a key is used, which is not kept."),
    help_entry("object", "6.2.0"),
    about_key("idletime", idle_time, "Seconds since a key was used, which are not kept."),
    about_key("refcount", references, "How many references the value of a key has: one."),
};

}  // namespace

std::span<const Command> object_commands() { return table; }

}  // namespace trellis
