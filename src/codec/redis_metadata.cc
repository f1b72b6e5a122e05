#include "codec/redis_metadata.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"

namespace trellis {
namespace {

constexpr uint8_t wide_flag = 0x80;
constexpr uint8_t fields_flag = 0x40;
constexpr uint8_t fences_flag = 0x20;
constexpr uint8_t bytes_flag = 0x10;

uint64_t seconds_rounded(uint64_t ms) {
  if (ms == 0) return 0;
  return std::max<uint64_t>(ms / 1000 + (ms % 1000 + 499) / 1000, 1);
}

// Numbers off the front of the value; the first one missing is remembered.
struct Numbers {
  ByteView in;
  size_t offset = 0;
  bool ok = true;
  std::string_view missing = {};

  uint64_t take(size_t width, std::string_view name) {
    if (!ok || in.size() - offset < width) {
      if (ok) missing = name;
      ok = false;
      return 0;
    }
    const uint64_t value = load_be(in.data() + offset, width);
    offset += width;
    return value;
  }
  StreamId take_id(std::string_view name) { return {take(8, name), take(8, name)}; }
  bool at_end() const { return offset == in.size(); }
};

void append_id(Bytes& out, const StreamId& id) {
  append_be64(out, id.ms);
  append_be64(out, id.seq);
}

}  // namespace

std::string_view to_string(RedisType type) {
  constexpr std::string_view names[] = {"",     "string", "hash",      "list",  "set",
                                        "zset", "bitmap", "sortedint", "stream"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(names) ? names[index] : "unknown";
}

bool may_know_bytes(RedisType type) {
  return type != RedisType::string && type != RedisType::stream;
}

bool may_have_fences(RedisType type) {
  return type == RedisType::hash || type == RedisType::set || type == RedisType::zset ||
         type == RedisType::sortedint;
}

void append_redis_metadata(Bytes& out, const RedisMetadata& metadata) {
  ASSERT(metadata.encoding <= 1);
  const bool wide = metadata.encoding == 1;
  out.push_back(static_cast<char>(
      (wide ? wide_flag : 0) | (metadata.next_field_ms != 0 ? fields_flag : 0) |
      (metadata.has_fences ? fences_flag : 0) | (metadata.record_bytes ? bytes_flag : 0) |
      static_cast<uint8_t>(metadata.type)));
  if (wide) {
    append_be64(out, metadata.expire_ms);
  } else {
    const uint64_t seconds = seconds_rounded(metadata.expire_ms);
    ASSERT(seconds <= UINT32_MAX);
    append_be32(out, static_cast<uint32_t>(seconds));
  }
  if (metadata.type == RedisType::string) {
    out.append(metadata.payload);
    return;
  }
  append_be64(out, metadata.version);
  if (wide) {
    append_be64(out, metadata.size);
  } else {
    ASSERT(metadata.size <= UINT32_MAX);
    append_be32(out, static_cast<uint32_t>(metadata.size));
  }
  if (metadata.record_bytes) append_be64(out, *metadata.record_bytes);
  if (metadata.next_field_ms != 0) append_be64(out, metadata.next_field_ms);
  if (metadata.type == RedisType::list) {
    append_be64(out, metadata.head);
    append_be64(out, metadata.tail);
  } else if (metadata.type == RedisType::stream) {
    const RedisMetadata::Stream& stream = metadata.stream;
    for (const StreamId& id : {stream.last_generated, stream.recorded_first, stream.max_deleted,
                               stream.first, stream.last})
      append_id(out, id);
    append_be64(out, stream.entries_added);
    append_be64(out, stream.groups);
  }
}

Result<RedisMetadata> decode_redis_metadata(ByteView in) {
  if (in.empty()) return Error{Code::corrupt, "offset 0: flags: too short"};
  const auto flags = static_cast<uint8_t>(in[0]);
  RedisMetadata metadata;
  metadata.type = static_cast<RedisType>(flags & 0x0f);
  metadata.encoding = (flags & wide_flag) != 0 ? 1 : 0;
  metadata.has_fences = (flags & fences_flag) != 0;
  if (metadata.type < RedisType::string || metadata.type > RedisType::stream)
    return Error{Code::corrupt, fmt::format("offset 0: flags: unknown type {}", flags & 0x0f)};

  if (metadata.has_fences && !may_have_fences(metadata.type))
    return Error{Code::corrupt,
                 fmt::format("offset 0: flags: fences of a {}", to_string(metadata.type))};

  const bool fields_expire = (flags & fields_flag) != 0;
  if (fields_expire && metadata.type != RedisType::hash)
    return Error{Code::corrupt,
                 fmt::format("offset 0: flags: fields of a {}", to_string(metadata.type))};

  const bool bytes_are_known = (flags & bytes_flag) != 0;
  if (bytes_are_known && !may_know_bytes(metadata.type))
    return Error{Code::corrupt,
                 fmt::format("offset 0: flags: bytes of a {}", to_string(metadata.type))};

  const size_t width = metadata.encoding == 1 ? 8 : 4;
  Numbers numbers{.in = in, .offset = 1};
  metadata.expire_ms = numbers.take(width, "expire") * (width == 8 ? 1 : 1000);
  if (metadata.type == RedisType::string) {
    if (numbers.ok) metadata.payload = in.substr(numbers.offset);
  } else {
    metadata.version = numbers.take(8, "version");
    metadata.size = numbers.take(width, "size");
  }
  if (bytes_are_known) metadata.record_bytes = numbers.take(8, "record bytes");
  if (fields_expire) {
    metadata.next_field_ms = numbers.take(8, "next expiry");
    if (numbers.ok && metadata.next_field_ms == 0)
      return Error{Code::corrupt, "next expiry: 0 stands for none"};
  }
  if (metadata.type == RedisType::list) {
    metadata.head = numbers.take(8, "head");
    metadata.tail = numbers.take(8, "tail");
  } else if (metadata.type == RedisType::stream) {
    RedisMetadata::Stream& stream = metadata.stream;
    stream.last_generated = numbers.take_id("last generated id");
    stream.recorded_first = numbers.take_id("recorded first id");
    stream.max_deleted = numbers.take_id("max deleted id");
    stream.first = numbers.take_id("first id");
    stream.last = numbers.take_id("last id");
    stream.entries_added = numbers.take(8, "entries added");
    if (!numbers.at_end()) stream.groups = numbers.take(8, "groups");
  }
  if (!numbers.ok)
    return Error{Code::corrupt,
                 fmt::format("offset {}: {}: too short", in.size(), numbers.missing)};
  if (metadata.type != RedisType::string && !numbers.at_end())
    return Error{Code::corrupt, fmt::format("offset {}: bytes follow where the metadata of a {} "
                                            "should end",
                                            numbers.offset, to_string(metadata.type))};
  return metadata;
}

}  // namespace trellis
