// Redis data structures (seed 004, Kvrocks). The bytes after the tag are exactly Kvrocks's, so that
// its directories can be read; the tag stands for the column family that Kvrocks would use.
//
//   'x' keyspace 'd' ...
//     'm' namespace user-key                          metadata of a key (redis_metadata.h)
//     'n' 00                                          ours: which slot each database has
//     's' namespace key version sub                   hash field, set member, list index, ...
//     'z' namespace key version score member          sorted set by score
//     't' namespace key version ...                   stream entries and consumer groups
//     'c' namespace key version level place           ours: how many members are where
//     'h' namespace key version ...                   ours: when fields of hashes expire
//
// The namespace holds the database's slot in decimal, which is its number until it is swapped or
// flushed: SELECT 3 is 01 '3'. The version is new with every life of a key, so deleting a key of
// any size is one metadata write.
#pragma once

#include <cmath>

#include "codec/field_codecs.h"
#include "codec/keyspace_keys.h"

namespace trellis {

// --- parts of sub keys ---

// A double as 8 bytes in numeric order: sign set: all bits inverted, else bit 63 set. -0.0 sorts
// below +0.0. NaN has no place in an order and is refused both ways.
struct OrderedScore {
  static constexpr bool needs_scratch = false;
  static constexpr bool number = false;
  static constexpr std::string_view form = "ordered double";
  static void append(Bytes& out, double score);
  static bool read(Reader& reader, double& score);
  static std::string text(double score);
  static void append_pretty(std::string& out, double score) { out += '/' + text(score); }
  static Status parse(std::string_view text, TextArena&, double& score);
  static const char* invalid(double score) {
    return std::isnan(score) ? "NaN has no place in an order" : nullptr;
  }
};

// Milliseconds of a stream entry id. All ones is the delimiter of group records.
struct StreamMs : BigEndian<8> {
  static bool read(Reader& reader, uint64_t& ms) {
    const size_t start = reader.offset();
    if (!BigEndian<8>::read(reader, ms)) return false;
    return ms != max || reader.fail("ff*8 is not a time, it marks group records", start);
  }
  static const char* invalid(uint64_t ms) {
    return ms != max ? nullptr : "the largest time is reserved";
  }
};

// | index u64 |: a list element. RPUSH writes at tail++, LPUSH at --head, both start at 2^63 - 1.
struct RedisListSub {
  uint64_t index;
  static constexpr std::string_view kind = "redis.list_sub";
  static constexpr auto layout() {
    return record(field<BigEndian<8>>("index", &RedisListSub::index, "position in the list"));
  }
};
inline constexpr uint64_t redis_list_middle = 0x7fff'ffff'ffff'ffff;

// | id u64 |: a member of a sorted int.
struct RedisSortedintSub {
  uint64_t id;
  static constexpr std::string_view kind = "redis.sortedint_sub";
  static constexpr auto layout() {
    return record(field<BigEndian<8>>("id", &RedisSortedintSub::id, "the number"));
  }
};

// | offset decimal |: a fragment of a bitmap, by the byte offset of its first byte: "0", "1024".
// Fragments are stored least significant bit first, at most 1024 bytes, shorter when zeros follow.
struct RedisBitmapSub {
  uint64_t offset;
  static constexpr std::string_view kind = "redis.bitmap_sub";
  static constexpr auto layout() {
    return record(field<Decimal<1>>("offset", &RedisBitmapSub::offset, "byte offset"));
  }
};
inline constexpr uint64_t redis_bitmap_fragment_bytes = 1024;

// --- the keys as Kvrocks has them ---

template <class Record>
constexpr auto namespace_field(ByteView Record::*member) {
  return field<LengthPrefixed<1>>("namespace", member, "slot of the database in decimal");
}
template <class Record>
constexpr auto version_field(uint64_t Record::*member) {
  return field<BigEndian<8>>("version", member, "life of the key: (unix us << 11) + counter");
}

// | namespace length u8 | namespace | user key to the end |
struct KvrocksMetadataKey {
  ByteView ns;
  ByteView key;
  static constexpr std::string_view kind = "kvrocks.metadata";
  static constexpr std::string_view redis_kind = "redis.metadata";
  static constexpr Literal tag = literal("table", "m", "metadata", "/Metadata");
  static constexpr auto layout() {
    return record(namespace_field(&KvrocksMetadataKey::ns),
                  field<Remaining>("key", &KvrocksMetadataKey::key, "user key"));
  }
};

// | namespace length u8 | namespace | key length u32 | key | version u64 |: what all records of one
// life of a key start with.
struct KvrocksSubPrefix {
  ByteView ns;
  ByteView key;
  uint64_t version;
  static constexpr std::string_view kind = "kvrocks.sub_prefix";
  static constexpr auto layout() {
    return record(namespace_field(&KvrocksSubPrefix::ns),
                  field<LengthPrefixed<4>>("key", &KvrocksSubPrefix::key, "user key"),
                  version_field(&KvrocksSubPrefix::version));
  }
};

// | prefix | sub bytes |
struct KvrocksSubKey {
  KvrocksSubPrefix prefix;
  ByteView sub;
  static constexpr std::string_view kind = "kvrocks.sub";
  static constexpr std::string_view redis_kind = "redis.sub";
  static constexpr Literal tag = literal("table", "s", "sub keys", "/Sub");
  static constexpr auto layout() {
    return record(nested(&KvrocksSubKey::prefix),
                  field<Remaining>("sub", &KvrocksSubKey::sub,
                                   "field, member, or (8 bytes) list index or sorted int"));
  }
};

// | prefix | score: ordered double | member bytes |
struct KvrocksScoreKey {
  KvrocksSubPrefix prefix;
  double score;
  ByteView member;
  static constexpr std::string_view kind = "kvrocks.score";
  static constexpr std::string_view redis_kind = "redis.score";
  static constexpr Literal tag = literal("table", "z", "sorted set by score", "/Score");
  static constexpr auto layout() {
    return record(nested(&KvrocksScoreKey::prefix),
                  field<OrderedScore>("score", &KvrocksScoreKey::score, "score"),
                  field<Remaining>("member", &KvrocksScoreKey::member, "member"));
  }
};

// | prefix | level u8 | place bytes |: ours, a fence (redis/fences.h). The value is how many
// members there are from the place, which is as the subs of 's' records or scores and members of
// 'z', to before the next fence of the level: | 01 | members u64 |.
struct RedisFence {
  KvrocksSubPrefix prefix;
  uint8_t level;
  ByteView place;
  static constexpr std::string_view kind = "redis.fence_part";
  static constexpr std::string_view redis_kind = "redis.fence";
  static constexpr Literal tag = literal("table", "c", "counts of members", "/Fence");
  static constexpr auto layout() {
    return record(
        nested(&RedisFence::prefix),
        field<BigEndian<1>>("level", &RedisFence::level, "1: of members, 2: of fences of level 1"),
        field<Remaining>("place", &RedisFence::place, "where it begins in the order"));
  }
};

inline constexpr Literal field_times_tag =
    literal("table", "h", "expiry of fields", "/FieldExpiry");

// | prefix | 'f' | field bytes |: ours, when a field of a hash expires: | 01 | unix ms u64 |.
struct RedisFieldTime {
  KvrocksSubPrefix prefix;
  ByteView field_name;
  static constexpr std::string_view kind = "redis.field_time_part";
  static constexpr std::string_view redis_kind = "redis.field_time";
  static constexpr Literal tag = field_times_tag;
  static constexpr auto layout() {
    return record(nested(&RedisFieldTime::prefix), literal("order", "f", "by field", "/ByField"),
                  field<Remaining>("field", &RedisFieldTime::field_name, "field"));
  }
};

// | prefix | 't' | expire ms u64 | field bytes |: ours, the fields by the time at which they
// expire.
struct RedisFieldDue {
  KvrocksSubPrefix prefix;
  uint64_t expire_ms;
  ByteView field_name;
  static constexpr std::string_view kind = "redis.field_due_part";
  static constexpr std::string_view redis_kind = "redis.field_due";
  static constexpr Literal tag = field_times_tag;
  static constexpr auto layout() {
    return record(nested(&RedisFieldDue::prefix), literal("order", "t", "by time", "/ByTime"),
                  field<BigEndian<8>>("expire_ms", &RedisFieldDue::expire_ms, "unix ms"),
                  field<Remaining>("field", &RedisFieldDue::field_name, "field"));
  }
};

inline constexpr Literal stream_tag = literal("table", "t", "stream", "/Stream");
inline constexpr Literal stream_delimiter =
    literal("delimiter", "\xff\xff\xff\xff\xff\xff\xff\xff", "group records follow");
template <class Record>
constexpr auto group_field(ByteView Record::*member) {
  return field<LengthPrefixed<8>>("group", member, "consumer group");
}

// | ms u64 | seq u64 |
struct StreamEntrySub {
  uint64_t ms;
  uint64_t seq;
  static constexpr std::string_view kvrocks_kind = "kvrocks.stream_entry";
  static constexpr std::string_view redis_kind = "redis.stream_entry";
  static constexpr auto layout() {
    return record(field<StreamMs>("ms", &StreamEntrySub::ms, "entry id, milliseconds"),
                  field<BigEndian<8>>("seq", &StreamEntrySub::seq, "entry id, sequence"));
  }
};

// | ff*8 | 01 | group length u64 | group |
struct StreamGroupSub {
  ByteView group;
  static constexpr std::string_view kvrocks_kind = "kvrocks.stream_group";
  static constexpr std::string_view redis_kind = "redis.stream_group";
  static constexpr auto layout() {
    return record(stream_delimiter, literal("record", "\x01", "consumer group", "/Group"),
                  group_field(&StreamGroupSub::group));
  }
};

// | ff*8 | 02 | group length u64 | group | consumer length u64 | consumer |
struct StreamConsumerSub {
  ByteView group;
  ByteView consumer;
  static constexpr std::string_view kvrocks_kind = "kvrocks.stream_consumer";
  static constexpr std::string_view redis_kind = "redis.stream_consumer";
  static constexpr auto layout() {
    return record(stream_delimiter, literal("record", "\x02", "consumer", "/Consumer"),
                  group_field(&StreamConsumerSub::group),
                  field<LengthPrefixed<8>>("consumer", &StreamConsumerSub::consumer, "consumer"));
  }
};

// | ff*8 | 03 | group length u64 | group | ms u64 | seq u64 |. Groups may be told to go on from ids
// that no entry can have, but what is pending was an entry.
struct StreamPendingSub {
  ByteView group;
  uint64_t ms;
  uint64_t seq;
  static constexpr std::string_view kvrocks_kind = "kvrocks.stream_pending";
  static constexpr std::string_view redis_kind = "redis.stream_pending";
  static constexpr auto layout() {
    return record(stream_delimiter, literal("record", "\x03", "pending entry", "/Pending"),
                  group_field(&StreamPendingSub::group),
                  field<StreamMs>("ms", &StreamPendingSub::ms, "entry id, milliseconds"),
                  field<BigEndian<8>>("seq", &StreamPendingSub::seq, "entry id, sequence"));
  }
};

// Ours: what is pending, by consumer.
// | ff*8 | 04 | group length u64 | group | consumer length u64 | consumer | ms u64 | seq u64 |
struct StreamOwnedSub {
  ByteView group;
  ByteView consumer;
  uint64_t ms;
  uint64_t seq;
  static constexpr std::string_view kvrocks_kind = "kvrocks.stream_owned";
  static constexpr std::string_view redis_kind = "redis.stream_owned";
  static constexpr auto layout() {
    return record(stream_delimiter,
                  literal("record", "\x04", "pending entry of a consumer", "/Owned"),
                  group_field(&StreamOwnedSub::group),
                  field<LengthPrefixed<8>>("consumer", &StreamOwnedSub::consumer, "consumer"),
                  field<StreamMs>("ms", &StreamOwnedSub::ms, "entry id, milliseconds"),
                  field<BigEndian<8>>("seq", &StreamOwnedSub::seq, "entry id, sequence"));
  }
};

// | prefix | one of these |
template <class Sub>
struct KvrocksStreamKey {
  KvrocksSubPrefix prefix;
  Sub sub;
  static constexpr std::string_view kind = Sub::kvrocks_kind;
  static constexpr std::string_view redis_kind = Sub::redis_kind;
  static constexpr Literal tag = stream_tag;
  static constexpr auto layout() {
    return record(nested(&KvrocksStreamKey::prefix), nested(&KvrocksStreamKey::sub));
  }
};
using KvrocksStreamEntryKey = KvrocksStreamKey<StreamEntrySub>;
using KvrocksStreamGroupKey = KvrocksStreamKey<StreamGroupSub>;
using KvrocksStreamConsumerKey = KvrocksStreamKey<StreamConsumerSub>;
using KvrocksStreamPendingKey = KvrocksStreamKey<StreamPendingSub>;

// With cluster mode on, Kvrocks puts the slot between namespace and key. Ours never does; these
// two read its directories.
// | namespace length u8 | namespace | slot u16 | user key to the end |
struct KvrocksClusterMetadataKey {
  ByteView ns;
  uint16_t slot;
  ByteView key;
  static constexpr std::string_view kind = "kvrocks.cluster_metadata";
  static constexpr auto layout() {
    return record(namespace_field(&KvrocksClusterMetadataKey::ns),
                  field<BigEndian<2>>("slot", &KvrocksClusterMetadataKey::slot, "cluster slot"),
                  field<Remaining>("key", &KvrocksClusterMetadataKey::key, "user key"));
  }
};

// | namespace length u8 | namespace | slot u16 | key length u32 | key | version u64 | sub bytes |
struct KvrocksClusterSubKey {
  ByteView ns;
  uint16_t slot;
  ByteView key;
  uint64_t version;
  ByteView sub;
  static constexpr std::string_view kind = "kvrocks.cluster_sub";
  static constexpr auto layout() {
    return record(namespace_field(&KvrocksClusterSubKey::ns),
                  field<BigEndian<2>>("slot", &KvrocksClusterSubKey::slot, "cluster slot"),
                  field<LengthPrefixed<4>>("key", &KvrocksClusterSubKey::key, "user key"),
                  version_field(&KvrocksClusterSubKey::version),
                  field<Remaining>("sub", &KvrocksClusterSubKey::sub, "field or member"));
  }
};

// --- the keys of our map: | 'x' | keyspace u24 | 'd' | tag | as above | ---

inline constexpr Literal model_redis = literal("model", "d", "Redis data structures", "/Redis");

template <class Inner>
struct RedisKey {
  KeyspaceId keyspace;
  Inner inner;
  static constexpr std::string_view kind = Inner::redis_kind;
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&RedisKey::keyspace), model_redis, Inner::tag,
                  nested(&RedisKey::inner));
  }
};
using RedisMetadataKey = RedisKey<KvrocksMetadataKey>;
using RedisSubKey = RedisKey<KvrocksSubKey>;
using RedisScoreKey = RedisKey<KvrocksScoreKey>;
using RedisFenceKey = RedisKey<RedisFence>;
using RedisFieldTimeKey = RedisKey<RedisFieldTime>;
using RedisFieldDueKey = RedisKey<RedisFieldDue>;
using RedisStreamEntryKey = RedisKey<KvrocksStreamEntryKey>;
using RedisStreamGroupKey = RedisKey<KvrocksStreamGroupKey>;
using RedisStreamConsumerKey = RedisKey<KvrocksStreamConsumerKey>;
using RedisStreamPendingKey = RedisKey<KvrocksStreamPendingKey>;
using RedisStreamOwnedKey = RedisKey<KvrocksStreamKey<StreamOwnedSub>>;

// | 'x' | keyspace u24 | 'd' | 'n' | 00 |: which slot each database has (redis/databases.h). The
// zero is the length of a namespace that no key has.
struct RedisDatabasesKey {
  KeyspaceId keyspace;
  static constexpr std::string_view kind = "redis.databases";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&RedisDatabasesKey::keyspace), model_redis,
                  literal("table", "n\0", "slots of databases", "/Databases"));
  }
};

}  // namespace trellis
