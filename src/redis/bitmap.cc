#include "redis/bitmap.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/assert.h"
#include "codec/redis_keys.h"

namespace trellis {
namespace {

// To look for so many times fewer fragments costs less than to scan all.
constexpr uint64_t scan_factor = 4;
constexpr size_t looked_for_together = 256;

uint64_t fragment_of(uint64_t byte) { return byte / fragment_bytes * fragment_bytes; }
uint64_t fragments_in(uint64_t begin, uint64_t end) {
  return begin >= end ? 0 : (end - 1) / fragment_bytes - begin / fragment_bytes + 1;
}

uint64_t turned(uint64_t bits) {
  bits = (bits >> 4 & 0x0f0f'0f0f'0f0f'0f0f) | (bits & 0x0f0f'0f0f'0f0f'0f0f) << 4;
  bits = (bits >> 2 & 0x3333'3333'3333'3333) | (bits & 0x3333'3333'3333'3333) << 2;
  return (bits >> 1 & 0x5555'5555'5555'5555) | (bits & 0x5555'5555'5555'5555) << 1;
}

// As much of a fragment as the bitmap has.
ByteView cut_to_size(const Key& key, uint64_t offset, ByteView stored) {
  return stored.substr(0, std::min(fragment_bytes, key.size() - offset));
}

Status scan_fragments(Keys& keys, const Key& key, uint64_t begin, uint64_t end,
                      FragmentVisitor visit) {
  Status bad;
  TRY(keys.scan_subs(key, {.reading = bitmap_reading(key.size())},
                     [&](ByteView sub, ByteView stored) {
                       const auto offset = decode_fragment_offset(sub);
                       if (!offset) {
                         bad = offset.error();
                         return Visit::stop;
                       }
                       if (*offset < std::min(end, key.size()) && *offset + fragment_bytes > begin)
                         visit(*offset, cut_to_size(key, *offset, stored));
                       return Visit::go_on;
                     }));
  return bad;
}

// In the order of offsets.
Status look_for_fragments(Keys& keys, const Key& key, uint64_t begin, uint64_t end,
                          FragmentVisitor visit) {
  for (uint64_t offset = fragment_of(begin); offset < end;) {
    std::vector<Bytes> subs;
    const uint64_t first = offset;
    for (; offset < end && subs.size() < looked_for_together; offset += fragment_bytes)
      subs.push_back(encode(RedisBitmapSub{offset}));
    const std::vector<ByteView> views(subs.begin(), subs.end());
    std::vector<Value> values(subs.size());
    TRY(keys.get_subs(key, views, values));
    for (size_t i = 0; i < values.size(); i++) {
      const uint64_t at = first + i * fragment_bytes;
      if (values[i].found()) visit(at, cut_to_size(key, at, values[i].bytes()));
    }
  }
  return {};
}

}  // namespace

void turn_bits(char* bytes, size_t count) {
  for (; count >= sizeof(uint64_t); bytes += sizeof(uint64_t), count -= sizeof(uint64_t)) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes, sizeof(bits));
    bits = turned(bits);
    std::memcpy(bytes, &bits, sizeof(bits));
  }
  for (size_t i = 0; i < count; i++)
    bytes[i] = static_cast<char>(turned(static_cast<uint8_t>(bytes[i])));
}

// --- fragments ---

Result<uint64_t> decode_fragment_offset(ByteView sub) {
  uint64_t offset = 0;
  const auto [end, error] = std::from_chars(sub.data(), sub.data() + sub.size(), offset);
  if (error != std::errc() || end != sub.data() + sub.size() || offset % fragment_bytes != 0)
    return Error{Code::corrupt, "the stored offset of a fragment does not make sense"};
  return offset;
}

bool is_looked_for(const Key& key, uint64_t begin, uint64_t end) {
  const uint64_t looked_for = fragments_in(begin, std::min(end, key.size()));
  return looked_for == 1 || looked_for * scan_factor <= fragments_in(0, key.size());
}

Status visit_fragments(Keys& keys, const Key& key, uint64_t begin, uint64_t end,
                       FragmentVisitor visit) {
  end = std::min(end, key.size());
  if (begin >= end) return {};
  return is_looked_for(key, begin, end) ? look_for_fragments(keys, key, begin, end, visit)
                                        : scan_fragments(keys, key, begin, end, visit);
}

Status get_fragment(Keys& keys, const Key& key, uint64_t offset, Value& stored) {
  return keys.get_sub(key, encode(RedisBitmapSub{offset}), stored);
}

ByteView without_zeros_behind(ByteView fragment) {
  const size_t last = fragment.find_last_not_of('\0');
  return fragment.substr(0, last == ByteView::npos ? 0 : last + 1);
}

void put_fragment(Keys& keys, const Key& key, uint64_t offset, ByteView stored, const Value& old) {
  stored = without_zeros_behind(stored);
  const Bytes sub = encode(RedisBitmapSub{offset});
  if (!stored.empty())
    keys.put_sub(key, sub, stored, old);
  else if (old.found())
    keys.remove_sub(key, sub, old);
}

// --- bytes ---

Result<Key*> open_text(Call& call, size_t i) {
  TRY_ASSIGN(Key* const key, call.open(i));
  if (key->exists() && !is_text(key->type())) return wrong_type();
  return key;
}

uint64_t text_bytes(const Key& key) {
  if (!key.exists()) return 0;
  return key.type() == RedisType::string ? key.text().size() : key.size();
}

Status read_text(Keys& keys, const Key& key, uint64_t begin, uint64_t end, Bytes& out) {
  if (!key.exists() || begin == end) return {};
  if (key.type() == RedisType::string) {
    out += key.text().substr(begin, end - begin);
    return {};
  }
  const size_t at = out.size();
  out.resize(at + (end - begin), '\0');
  TRY(visit_fragments(keys, key, begin, end, [&](uint64_t offset, ByteView stored) {
    if (offset < begin) {
      stored = stored.substr(std::min<uint64_t>(begin - offset, stored.size()));
      offset = begin;
    }
    stored = stored.substr(0, end - offset);
    std::memcpy(out.data() + at + (offset - begin), stored.data(), stored.size());
  }));
  turn_bits(out.data() + at, end - begin);
  return {};
}

Error part_too_long() {
  return reply_with(
      "ERR so many bytes of a string cannot be read at once: read it in parts, by GETRANGE");
}

Status load_text(Keys& keys, Key& key) {
  if (!key.exists() || key.type() != RedisType::bitmap || !key.text().empty()) return {};
  if (key.size() > reply_bytes_max) return part_too_long();
  Bytes text;
  TRY(read_text(keys, key, 0, key.size(), text));
  keys.keep_text(key, std::move(text));
  return {};
}

Status write_text(Keys& keys, Key& key, uint64_t offset, ByteView bytes) {
  ASSERT(offset + bytes.size() <= text_bytes(key));
  if (bytes.empty()) return {};
  if (key.type() == RedisType::string) {
    Bytes text(key.text());
    text.replace(offset, bytes.size(), bytes);
    key.set_text(std::move(text));
    return {};
  }
  size_t written_bytes = 0;
  while (!bytes.empty()) {
    const uint64_t fragment = fragment_of(offset);
    const size_t at = offset - fragment;
    const size_t count = std::min<size_t>(bytes.size(), fragment_bytes - at);
    Value old;
    TRY(get_fragment(keys, key, fragment, old));
    Bytes stored(old.found() ? old.bytes() : ByteView());
    if (stored.size() < at + count) stored.resize(at + count, '\0');
    stored.replace(at, count, bytes.substr(0, count));
    turn_bits(stored.data() + at, count);
    put_fragment(keys, key, fragment, stored, old);
    TRY(keys.check_written(written_bytes += count));
    offset += count;
    bytes.remove_prefix(count);
  }
  key.set_size(key.size());
  return {};
}

Status grow_text(Keys& keys, Key& key, uint64_t bytes) {
  if (key.exists() && key.type() == RedisType::string) {
    bytes = std::max<uint64_t>(bytes, key.text().size());
    if (bytes <= changed_string_bytes_max) {
      Bytes text(key.text());
      text.resize(bytes, '\0');
      if (text.size() != key.text().size()) key.set_text(std::move(text));
      return {};
    }
    const uint64_t expire_ms = key.expire_ms();
    const Bytes text(key.text());
    key.create(RedisType::bitmap, keys.new_version());
    key.set_expire(expire_ms);
    key.set_size(bytes);
    return write_text(keys, key, 0, text);
  }
  if (!key.exists()) key.create(RedisType::bitmap, keys.new_version());
  if (key.size() < bytes) key.set_size(bytes);
  return {};
}

Status set_large_text(Keys& keys, Key& key, ByteView text) {
  key.remove();
  if (text.size() <= string_bytes_max) {
    key.set_text(Bytes(text));
    return {};
  }
  TRY(grow_text(keys, key, text.size()));
  return write_text(keys, key, 0, text);
}

}  // namespace trellis
