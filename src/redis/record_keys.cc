#include "redis/record_keys.h"

#include <charconv>

#include "codec/redis_keys.h"

namespace trellis {
namespace {

std::string slot_text(uint16_t slot) {
  if (slot < 10) return std::string(1, static_cast<char>('0' + slot));  // as most are
  return std::to_string(slot);
}

std::optional<uint16_t> parse_slot(ByteView text) {
  uint16_t slot = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slot);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return slot;
}

KvrocksSubPrefix prefix_of(const std::string& slot, ByteView name, uint64_t version) {
  return {.ns = slot, .key = name, .version = version};
}

}  // namespace

Bytes redis_metadata_key(KeyspaceId keyspace, uint16_t slot, ByteView name) {
  const std::string ns = slot_text(slot);
  return encode(RedisMetadataKey{keyspace, {.ns = ns, .key = name}});
}

ByteView MetadataKeys::of(uint16_t slot, ByteView name) {
  if (head_bytes_ == 0 || slot != slot_) {
    key_ = redis_metadata_key(keyspace_, slot, {});
    slot_ = slot;
    head_bytes_ = key_.size();
  }
  key_.resize(head_bytes_);  // behind it there is nothing but the name
  return key_ += name;
}

Bytes redis_slot_prefix(KeyspaceId keyspace, char table, uint16_t slot) {
  Bytes prefix = redis_metadata_key(keyspace, slot, {});
  prefix[redis_table_offset] = table;
  return prefix;
}

Bytes redis_life_prefix(KeyspaceId keyspace, char table, uint16_t slot, ByteView name,
                        uint64_t version) {
  const std::string ns = slot_text(slot);
  Bytes prefix = encode(RedisSubKey{keyspace, {.prefix = prefix_of(ns, name, version), .sub = {}}});
  prefix[redis_table_offset] = table;
  return prefix;
}

Bytes scored_place(double score, ByteView member) {
  Bytes place;
  OrderedScore::append(place, without_sign_of_zero(score));
  return place += member;
}

// --- notes ---

Bytes fences_target(uint16_t slot, ByteView name, uint64_t version) {
  Bytes target = life_target(slot, name, version);
  target[0] = 'c';
  return target;
}

Bytes fields_target(uint16_t slot, ByteView name, uint64_t version) {
  Bytes target = life_target(slot, name, version);
  target[0] = 'h';
  return target;
}

Bytes expiry_target(uint16_t slot, ByteView name) {
  const std::string ns = slot_text(slot);
  Bytes target = "e";
  append(target, KvrocksMetadataKey{.ns = ns, .key = name});
  return target;
}

Bytes flush_target(uint16_t slot) {
  Bytes target = expiry_target(slot, {});
  target[0] = 'f';
  return target;
}

Bytes staged_target(uint16_t slot, ByteView name, uint64_t version) {
  Bytes target = life_target(slot, name, version);
  target[0] = 'l';
  return target;
}

Bytes measured_target(uint16_t slot, ByteView name, uint64_t version) {
  Bytes target = life_target(slot, name, version);
  target[0] = 'm';
  return target;
}

Bytes life_target(uint16_t slot, ByteView name, uint64_t version) {
  const std::string ns = slot_text(slot);
  Bytes target = "s";
  append(target, prefix_of(ns, name, version));
  return target;
}

Bytes trimmed_target(uint16_t slot, ByteView name, uint64_t version, StreamId last) {
  Bytes target = life_target(slot, name, version);
  target[0] = 't';
  append_be64(target, last.ms);
  append_be64(target, last.seq);
  return target;
}

std::optional<RedisGarbage> decode_redis_garbage(ByteView target) {
  using Kind = RedisGarbage::Kind;
  if (target.starts_with('e') || target.starts_with('f')) {
    const auto key = decode<KvrocksMetadataKey>(target.substr(1));
    if (!key) return std::nullopt;
    const auto slot = parse_slot(key->ns);
    if (!slot || (target[0] == 'f' && !key->key.empty())) return std::nullopt;
    return RedisGarbage{target[0] == 'e' ? Kind::expiry : Kind::flush, *slot, key->key};
  }
  constexpr size_t id_bytes = 16;
  StreamId last;
  if (target.starts_with('t') && target.size() > id_bytes) {
    const char* const id = target.data() + target.size() - id_bytes;
    last = {load_be(id, 8), load_be(id + 8, 8)};
    target.remove_suffix(id_bytes);
  }
  constexpr ByteView of_lives = "chlmst";
  constexpr Kind kinds[] = {Kind::fences,   Kind::fields, Kind::staged,
                            Kind::measured, Kind::life,   Kind::trimmed};
  const size_t which = target.empty() ? ByteView::npos : of_lives.find(target[0]);
  if (which == ByteView::npos) return std::nullopt;
  const auto life = decode<KvrocksSubPrefix>(target.substr(1));
  if (!life) return std::nullopt;
  const auto slot = parse_slot(life->ns);
  if (!slot) return std::nullopt;
  return RedisGarbage{kinds[which], *slot, life->key, life->version, last};
}

}  // namespace trellis
