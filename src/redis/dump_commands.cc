#include "codec/redis_keys.h"
#include "redis/bitmap.h"
#include "redis/generic_handlers.h"
#include "redis/rdb_payload.h"

namespace trellis {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

Result<RdbValue> read_value(Call& call, const Key& key) {
  RdbValue value{.type = key.type()};
  PayloadRoom room;
  switch (key.type()) {
    case RedisType::string:
    case RedisType::bitmap:
      value.type = RedisType::string;
      if (text_bytes(key) > reply_bytes_max) return part_too_long();
      TRY(read_text(call.keys, key, 0, text_bytes(key), value.items.emplace_back()));
      return value;
    case RedisType::zset:
      // From the highest score on, as Redis does: that is what it loads fastest.
      TRY(call.keys.scan_scores(key,
                                {.begin_score = -infinity, .end_score = infinity, .reverse = true},
                                [&](double score, ByteView member) {
                                  value.scored.push_back({Bytes(member), score});
                                  return room.take(member.size() + sizeof(score));
                                }));
      TRY(room.check());
      return value;
    case RedisType::stream: {
      TRY_ASSIGN(value.stream, load_stream(call.keys, key));
      return value;
    }
    case RedisType::sortedint:  // which Redis does not have: a set of the same numbers
      value.type = RedisType::set;
      TRY(call.keys.scan_subs(key, {}, [&](ByteView sub, ByteView) {
        const auto number = decode<RedisSortedintSub>(sub);
        value.items.push_back(number ? std::to_string(number->id) : Bytes(sub));
        return room.take(value.items.back().size());
      }));
      TRY(room.check());
      return value;
    case RedisType::list:
    case RedisType::set:
    case RedisType::hash:
      TRY(call.keys.scan_subs(key, {}, [&](ByteView sub, ByteView record) {
        if (key.type() != RedisType::list) value.items.emplace_back(sub);
        if (key.type() != RedisType::set) value.items.emplace_back(record);
        return room.take(sub.size() + record.size());
      }));
      TRY(room.check());
      return value;
    default: return Error{Code::unsupported, "keys of this type cannot be dumped yet"};
  }
}

namespace {

// A new life with that value and no expiry.
Status write_value(Call& call, Key& key, const RdbValue& value) {
  key.remove();
  if (value.type == RedisType::string) return set_large_text(call.keys, key, value.items[0]);
  key.create(value.type, call.keys.new_version());
  if (value.type == RedisType::stream) return store_stream(call.keys, key, value.stream);
  const auto put = [&](ByteView sub, ByteView record) {
    call.keys.put_sub(key, sub, record, Value());
  };
  for (const auto& [member, score] : value.scored) {
    Bytes record;
    OrderedScore::append(record, score);
    put(member, record);
    call.keys.put_score(key, score, member);
  }
  const size_t count = value.items.size();
  switch (value.type) {
    case RedisType::list:
      for (size_t i = 0; i < count; i++) put(encode(RedisListSub{key.tail() + i}), value.items[i]);
      key.set_ends(key.head(), key.tail() + count);
      return {};
    case RedisType::hash:
      for (size_t i = 0; i < count; i += 2) put(value.items[i], value.items[i + 1]);
      key.set_size(count / 2);
      return {};
    default:
      for (const Bytes& item : value.items) put(item, {});
      key.set_size(count + value.scored.size());
      return {};
  }
}

struct RestoreOptions {
  bool replace = false;
  bool absolute = false;
};

// IDLETIME and FREQ are checked and have no use here.
Result<RestoreOptions> parse_restore_options(const Call& call) {
  RestoreOptions options;
  bool has_idle = false;
  bool has_frequency = false;
  for (size_t i = 4; i < call.count(); i++) {
    const bool has_more = i + 1 < call.count();
    if (call.is_word(i, "replace")) {
      options.replace = true;
    } else if (call.is_word(i, "absttl")) {
      options.absolute = true;
    } else if (call.is_word(i, "idletime") && has_more && !has_frequency) {
      TRY_ASSIGN(const int64_t idle, call.integer(++i));
      if (idle < 0) return reply_with("ERR Invalid IDLETIME value, must be >= 0");
      has_idle = true;
    } else if (call.is_word(i, "freq") && has_more && !has_idle) {
      TRY_ASSIGN(const int64_t frequency, call.integer(++i));
      if (frequency < 0 || frequency > 255)
        return reply_with("ERR Invalid FREQ value, must be >= 0 and <= 255");
      has_frequency = true;
    } else {
      return syntax_error();
    }
  }
  return options;
}

}  // namespace

Status dump(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1));
  if (!key->exists()) {
    call.reply.null();
    return {};
  }
  TRY_ASSIGN(const RdbValue value, read_value(call, *key));
  call.reply.bulk(write_rdb_payload(value));
  return {};
}

Status restore(Call& call) {
  TRY_ASSIGN(const RestoreOptions options, parse_restore_options(call));
  TRY_ASSIGN(Key* const key, call.open(1));
  if (key->exists() && !options.replace)
    return reply_with("BUSYKEY Target key name already exists.");
  TRY_ASSIGN(const int64_t ttl, call.integer(2));
  if (ttl < 0) return reply_with("ERR Invalid TTL value, must be >= 0");
  TRY_ASSIGN(const RdbValue value, read_rdb_payload(call.arg(3)));
  auto expire_ms = static_cast<uint64_t>(ttl);
  if (ttl != 0 && !options.absolute) expire_ms += call.now_ms();
  const bool is_past = ttl != 0 && (expire_ms <= call.now_ms() || expire_ms > INT64_MAX);
  if (is_past) {
    key->remove();
  } else {
    TRY(write_value(call, *key, value));
    key->set_expire(expire_ms);
  }
  call.reply.ok();
  return {};
}

}  // namespace trellis
