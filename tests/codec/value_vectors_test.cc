// Golden values and functions that are no keys.
#include <gtest/gtest.h>

#include <sstream>

#include "codec/counter_value.h"
#include "codec/fs_values.h"
#include "codec/key_kinds.h"
#include "codec/keyspace_keys.h"
#include "codec/meta_keys.h"
#include "codec/raw_value.h"
#include "codec/redis_keys.h"
#include "codec/redis_metadata.h"
#include "codec/redis_stream.h"
#include "codec/store_values.h"
#include "support/vector_file.h"

namespace trellis {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

Bytes hex_or_dash(const std::string& text) { return text == "-" ? Bytes() : *from_hex(text); }
std::string to_hex_or_dash(ByteView bytes) { return bytes.empty() ? "-" : to_hex(bytes); }

TEST(KeyspaceBounds, Vectors) {
  for (const VectorLine& line : read_vectors("keyspace_bounds.txt")) {
    SCOPED_TRACE(line.where);
    const auto left = words(line.left);
    const auto mode = static_cast<KeyMode>(std::string_view("mtrx").find(left[0]));
    const auto bounds =
        keyspace_region_bounds(mode, KeyspaceId{static_cast<uint32_t>(std::stoul(left[1]))});
    EXPECT_EQ(to_hex(bounds.first) + ' ' + to_hex(bounds.second), line.right);
  }
}

TEST(RangeAddressing, Vectors) {
  for (const VectorLine& line : read_vectors("range_addressing.txt")) {
    SCOPED_TRACE(line.where);
    const auto left = words(line.left);
    const Bytes key = hex_or_dash(left[1]);
    const auto one = [](const Result<Bytes>& result) {
      return result ? to_hex_or_dash(*result) : "error " + result.error().message;
    };
    const auto two = [](const Result<std::pair<Bytes, Bytes>>& result) {
      return result ? to_hex(result->first) + ' ' + to_hex(result->second)
                    : "error " + result.error().message;
    };
    std::string got;
    if (left[0] == "range_meta_key") got = one(range_meta_key(key));
    if (left[0] == "meta_scan_bounds") got = two(meta_scan_bounds(key));
    if (left[0] == "meta_reverse_scan_bounds") got = two(meta_reverse_scan_bounds(key));
    if (left[0] == "address_of_local") got = one(address_of_local(key));
    if (left[0] == "address_upper_bound") got = one(address_upper_bound(key));
    if (line.right.starts_with("error ")) {
      EXPECT_TRUE(got.starts_with("error ")) << got;
      EXPECT_NE(got.find(line.right.substr(6)), std::string::npos) << got;
    } else {
      EXPECT_EQ(got, line.right);
    }
  }
}

TEST(RedisScores, VectorsInOrder) {
  std::vector<std::pair<double, Bytes>> scores;
  for (const VectorLine& line : read_vectors("redis_scores.txt")) {
    SCOPED_TRACE(line.where);
    TextArena arena;
    double score = 0;
    ASSERT_TRUE(OrderedScore::parse(line.left, arena, score).has_value());
    Bytes bytes;
    OrderedScore::append(bytes, score);
    EXPECT_EQ(to_hex(bytes), line.right);
    Reader reader(bytes, nullptr);
    double back = 0;
    ASSERT_TRUE(OrderedScore::read(reader, back));
    EXPECT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(score));
    EXPECT_EQ(OrderedScore::text(back), line.left);
    scores.emplace_back(score, bytes);
  }
  for (const auto& [a, a_bytes] : scores)
    for (const auto& [b, b_bytes] : scores)
      if (a < b) {
        EXPECT_LT(a_bytes, b_bytes) << a << ' ' << b;
      }
}

TEST(RedisScores, NanIsRefused) {
  EXPECT_NE(OrderedScore::invalid(std::nan("")), nullptr);
  for (const char* hex : {"ffffffffffffffff", "fff8000000000000", "0000000000000000"}) {
    const Bytes bytes = *from_hex(hex);
    Reader reader(bytes, nullptr);
    double score = 0;
    EXPECT_FALSE(OrderedScore::read(reader, score)) << hex;
  }
}

StreamId parse_id(const std::string& text) {
  const size_t dash = text.find('-');
  return {std::stoull(text.substr(0, dash)), std::stoull(text.substr(dash + 1))};
}

RedisMetadata parse_metadata(const TextFields& fields, Bytes& payload) {
  RedisMetadata metadata;
  for (const auto& [name, text] : fields) {
    if (name == "type")
      for (uint8_t type = 1; type <= 8; type++)
        if (to_string(static_cast<RedisType>(type)) == text)
          metadata.type = static_cast<RedisType>(type);
    if (name == "payload") metadata.payload = payload = *unquote(text);
    if (name == "encoding") metadata.encoding = static_cast<uint8_t>(std::stoul(text));
    if (name == "expire") metadata.expire_ms = std::stoull(text);
    if (name == "version") metadata.version = std::stoull(text);
    if (name == "size") metadata.size = std::stoull(text);
    if (name == "record_bytes") metadata.record_bytes = std::stoull(text);
    if (name == "fences") metadata.has_fences = text == "1";
    if (name == "next_field") metadata.next_field_ms = std::stoull(text);
    if (name == "head") metadata.head = std::stoull(text);
    if (name == "tail") metadata.tail = std::stoull(text);
    if (name == "last_generated") metadata.stream.last_generated = parse_id(text);
    if (name == "recorded_first") metadata.stream.recorded_first = parse_id(text);
    if (name == "max_deleted") metadata.stream.max_deleted = parse_id(text);
    if (name == "first") metadata.stream.first = parse_id(text);
    if (name == "last") metadata.stream.last = parse_id(text);
    if (name == "entries_added") metadata.stream.entries_added = std::stoull(text);
    if (name == "groups") metadata.stream.groups = std::stoull(text);
  }
  return metadata;
}

TEST(RedisMetadata, Vectors) {
  size_t types = 0;
  for (const VectorLine& line : read_vectors("redis_metadata.txt")) {
    SCOPED_TRACE(line.where);
    Bytes payload;
    const RedisMetadata metadata = parse_metadata(*parse_text_fields(line.left), payload);
    Bytes bytes;
    append_redis_metadata(bytes, metadata);
    EXPECT_EQ(to_hex(bytes), line.right);
    const auto back = decode_redis_metadata(bytes);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    RedisMetadata expected = metadata;
    // Encoding 0 keeps seconds, rounded but never to 0.
    if (metadata.encoding == 0 && metadata.expire_ms != 0)
      expected.expire_ms = std::max<uint64_t>((metadata.expire_ms + 499) / 1000, 1) * 1000;
    EXPECT_EQ(*back, expected);
    types |= size_t{1} << static_cast<size_t>(metadata.type);
    // Cut anywhere, it is an error (a string's payload may have any length), never a wrong answer.
    for (size_t size = 0; size < bytes.size(); size++) {
      const auto cut = decode_redis_metadata(ByteView(bytes).substr(0, size));
      const bool whole_string =
          metadata.type == RedisType::string && size >= (metadata.encoding == 1 ? 9u : 5u);
      const bool without_groups = metadata.type == RedisType::stream && size + 8 == bytes.size();
      EXPECT_EQ(cut.has_value(), whole_string || without_groups) << size;
    }
    if (metadata.type != RedisType::string) {
      EXPECT_FALSE(decode_redis_metadata(bytes + '\0').has_value());
    }
  }
  EXPECT_EQ(types, 0x1feu) << "all eight types";
}

TEST(RedisMetadata, FlagsOfOtherTypesAreRefused) {
  const auto expect_refused = [](RedisMetadata metadata, std::string_view what) {
    metadata.version = 1;
    Bytes bytes;
    append_redis_metadata(bytes, metadata);
    const auto decoded = decode_redis_metadata(bytes);
    ASSERT_FALSE(decoded.has_value()) << what;
    EXPECT_NE(decoded.error().message.find(what), std::string::npos) << decoded.error().message;
  };
  RedisMetadata metadata;
  metadata.type = RedisType::stream;
  metadata.record_bytes = 1;
  expect_refused(metadata, "bytes of a stream");
  metadata.has_fences = true;
  expect_refused(metadata, "fences of a stream");
  metadata.type = RedisType::list;
  expect_refused(metadata, "fences of a list");
  metadata.has_fences = false;
  metadata.next_field_ms = 1;
  expect_refused(metadata, "fields of a list");
}

TEST(RedisMetadata, UnknownFlagsAreRefused) {
  for (const char* hex :
       {"", "80", "89", "90", "c1", "00", "0f", "a1", "a3", "a8", "c4", "42", "91"})
    EXPECT_FALSE(decode_redis_metadata(*from_hex(hex) + Bytes(200, '\0')).has_value() &&
                 *hex != '\0')
        << hex;
  EXPECT_FALSE(decode_redis_metadata("").has_value());
}

template <class T>
void check_value(const std::string& fields_text, const std::string& hex) {
  TextArena arena;
  const auto fields = parse_text_fields(fields_text);
  ASSERT_TRUE(fields.has_value());
  const auto record = parse<T>(*fields, arena);
  ASSERT_TRUE(record.has_value()) << record.error().message;
  EXPECT_EQ(to_hex(encode(*record)), hex);
  Explanation explanation;
  DecodeFailure failure;
  ASSERT_TRUE(explain<T>(*from_hex(hex), explanation, failure)) << failure.why;
  std::string text;
  for (const ExplainedField& field : explanation.fields)
    if (field.name != "format") text += (text.empty() ? "" : " ") + field.name + '=' + field.value;
  EXPECT_EQ(text, fields_text);
}

// Whether the kind is one of these, and then checks it.
template <class... T>
bool check_any(const std::string& kind, const std::string& fields_text, const std::string& hex) {
  return ((kind == T::kind && (check_value<T>(fields_text, hex), true)) || ...);
}

TEST(Values, Vectors) {
  for (const VectorLine& line : read_vectors("values.txt")) {
    SCOPED_TRACE(line.where);
    const size_t blank = line.left.find(' ');
    const std::string kind = line.left.substr(0, blank);
    const std::string rest = line.left.substr(blank + 1);
    if (check_any<StreamGroupValue, StreamGroupAheadValue, StreamConsumerValue, StreamPendingValue,
                  RedisListSub, RedisSortedintSub, RedisBitmapSub, StoreIdentity, StoreStart,
                  StoreLoad, RawValue, RawExpiringValue, FsSuperblock, FsTree, FsInode, FsQuota,
                  FsEntry, FsFigures, FsExtent, FsDataUse, FsSharedData, FsXattr, FsSession, FsLock,
                  FsLocks>(kind, rest, line.right)) {
      continue;
    } else if (kind == "counter_value") {
      EXPECT_EQ(to_hex(encode_counter_value(std::stoll(rest))), line.right);
      EXPECT_EQ(decode_counter_value(*from_hex(line.right)), std::stoll(rest));
    } else {
      ASSERT_EQ(kind, "redis.stream_entry_value");
      std::vector<Bytes> strings;
      for (const std::string& word : words(rest)) strings.push_back(*unquote(word));
      const std::vector<ByteView> views(strings.begin(), strings.end());
      Bytes bytes;
      append_stream_entry(bytes, views);
      EXPECT_EQ(to_hex(bytes), line.right);
      std::vector<Bytes> back;
      ASSERT_TRUE(visit_stream_entry(bytes, [&](ByteView s) { back.emplace_back(s); }).has_value());
      EXPECT_EQ(back, strings);
    }
  }
}

TEST(FsValues, WrongBytesAreRefused) {
  const Bytes lock = *from_hex(
      "00000000000000040000000000000009000000000000000a"
      "00000000000000130000000001");
  ASSERT_EQ(lock.size(), fs_lock_bytes);
  EXPECT_TRUE(decode<FsLock>(lock).has_value());
  for (const char type : {'\0', '\3', '\xff'}) {
    Bytes other = lock;
    other.back() = type;
    EXPECT_FALSE(decode<FsLock>(other).has_value()) << static_cast<int>(type);
  }
  EXPECT_FALSE(decode<FsLock>(lock + '\0').has_value());
  Bytes entry = encode(FsEntry{InodeId{1}, FileType::regular, 1});
  for (int type = 0; type < 256; type++) {
    entry[8] = static_cast<char>(type);
    EXPECT_EQ(decode<FsEntry>(entry).has_value(), is_file_type(static_cast<FileType>(type)))
        << type;
  }
  for (const char* hex : {"", "00", "02", "0100"}) {
    EXPECT_FALSE(decode<FsSession>(*from_hex(hex)).has_value()) << hex;
    EXPECT_FALSE(decode<FsInode>(*from_hex(hex)).has_value()) << hex;
    EXPECT_FALSE(decode<FsFigures>(*from_hex(hex)).has_value()) << hex;
  }
}

TEST(RawValues, EitherForm) {
  for (const ByteView value : {ByteView(), ByteView("v"), ByteView("\0\x01\x02", 3)})
    for (const uint64_t expires : {uint64_t{0}, uint64_t{1}, uint64_t{1700000000123}, UINT64_MAX}) {
      const Bytes bytes = encode_raw_value({expires, value});
      EXPECT_LE(bytes.size(), value.size() + raw_value_head_bytes_max);
      const auto back = decode_raw_value(bytes);
      ASSERT_TRUE(back.has_value()) << back.error().message;
      EXPECT_EQ(back->expires_at_ms, expires);
      EXPECT_EQ(back->value, value);
    }
}

TEST(RawValues, WrongBytesAreRefused) {
  // Nothing, no known form, a time cut short, and a second way to say "never".
  for (const char* hex : {"", "00", "03", "0361", "02", "020000018bcfe568", "020000000000000000",
                          "02000000000000000061"}) {
    const auto decoded = decode_raw_value(*from_hex(hex));
    ASSERT_FALSE(decoded.has_value()) << hex;
    EXPECT_EQ(decoded.error().code, Code::corrupt) << hex;
  }
}

TEST(RawValues, ExpireInTheirMillisecond) {
  const StoredRawValue expiring{1000, "v"};
  EXPECT_FALSE(expiring.expired(999));
  EXPECT_TRUE(expiring.expired(1000));
  EXPECT_TRUE(expiring.expired(1001));
  const StoredRawValue plain{0, "v"};
  EXPECT_FALSE(plain.expired(0));
  EXPECT_FALSE(plain.expired(UINT64_MAX));
}

TEST(StreamEntry, LongStringsAndWrongBytes) {
  const Bytes big(300, 'v');
  const ByteView strings[] = {"f", big, "", ""};
  Bytes bytes;
  append_stream_entry(bytes, strings);
  EXPECT_EQ(to_hex(ByteView(bytes).substr(0, 4)), "0166ac02");
  size_t count = 0;
  EXPECT_TRUE(visit_stream_entry(bytes, [&](ByteView) { count++; }).has_value());
  EXPECT_EQ(count, 4u);
  for (const char* hex : {"01", "0161", "8000", "ffffffffff", "ffffffff7f", "80", "0161026161ff"})
    EXPECT_FALSE(visit_stream_entry(*from_hex(hex), [](ByteView) {}).has_value()) << hex;
}

TEST(MemComparable, KeepsOrderAndRoundTrips) {
  const Bytes keys[] = {"",  Bytes(1, '\0'), Bytes(8, '\0'),   Bytes(9, '\0'),
                        "a", "abcdefg",      "abcdefgh",       "abcdefghi",
                        "b", "\xff",         Bytes(8, '\xff'), Bytes(16, '\xff')};
  for (const Bytes& a : keys) {
    Bytes a_encoded;
    MemComparable::append(a_encoded, a);
    Bytes scratch;
    Reader reader(a_encoded, &scratch);
    ByteView back;
    ASSERT_TRUE(MemComparable::read(reader, back)) << quote(a);
    EXPECT_EQ(back, a);
    for (const Bytes& b : keys) {
      Bytes b_encoded;
      MemComparable::append(b_encoded, b);
      EXPECT_EQ(a < b, a_encoded < b_encoded) << quote(a) << ' ' << quote(b);
    }
  }
}

}  // namespace
}  // namespace trellis
