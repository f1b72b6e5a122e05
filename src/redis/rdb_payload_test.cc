#include "redis/rdb_payload.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "redis/call.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

// Bodies of one value each as redis-server 7 writes them: LZF, a quicklist, an intset, listpacks;
// and as those before it did: a hash in a ziplist.
constexpr std::string_view stream_body =
    "130110000000000000000100000000000000014054540000001f000301010102018161028162020001020100"
    "01000101018374776f040501030100010101c12c02817802050100010401dfff020101816302817902060102"
    "010601dfff02f270110104817a020501ff0307000101010204020167050081ffffffffffffffff0200000000"
    "0000000100000000000000017b68e5cf8b01000003000000000000000500000000000000007c68e5cf8b0100"
    "000402036f6e65f2019be4a10100000200000000000000010000000000000001000000000000000500000000"
    "000000000374776ff2019be4a1010000000168070081ffffffffffffffff0000";
// The same as 5 and 6 write it.
constexpr std::string_view old_stream_body =
    "0f0110000000000000000100000000000000014054540000001f000301010102018161028162020001020100"
    "01000101018374776f040501030100010101c12c02817802050100010401dfff020101816302817902060102"
    "010601dfff02f270110104817a020501ff030700020167050002000000000000000100000000000000017b68"
    "e5cf8b01000003000000000000000500000000000000007c68e5cf8b0100000402036f6e65f2019be4a10100"
    "000200000000000000010000000000000001000000000000000500000000000000000374776ff2019be4a101"
    "000000016807000000";
constexpr std::string_view packed_bodies[] = {
    stream_body,
    old_stream_body,
    "00c30c40a0076162636465666768e0880706636465666768",
    "12010222220000000700010102012a03f1881303f2701101048474657874 05dfff02e3ff02ff",
    "0b0e02000000030000000bfb0100 2c01",
    "101111110000000400816602817602816702 0c01ff",
    "1114140000000400816202842d312e3505816102 0101ff",
    "0502016100000000 0000f83f0162000000000000f07f",
    "0d20200000001a0000000600 00016103fe9c 03016203c03930 04016303f0ffff7f ff",
};

Bytes body_of(std::string_view hex) {
  Bytes digits(hex);
  std::erase(digits, ' ');
  return from_hex(digits).value();
}

TEST(RdbPayload, SaysWhatItWasGiven) {
  for (const RedisType type : {RedisType::list, RedisType::set, RedisType::hash}) {
    RdbValue value{.type = type, .items = {"a", Bytes(100, 'b'), "", Bytes(20'000, 'c')}};
    const auto read = read_rdb_payload(write_rdb_payload(value));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->type, type);
    EXPECT_EQ(read->items, value.items);
  }
  const RdbValue value{.type = RedisType::zset, .scored = {{"a", -1.5}, {"b", 0.1}}};
  const auto read = read_rdb_payload(write_rdb_payload(value));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->scored.size(), 2U);
  EXPECT_EQ(read->scored[1].member, "b");
  EXPECT_EQ(read->scored[1].score, 0.1);
}

TEST(RdbPayload, ReadsWhatWasPackedBefore7) {
  const auto read = read_rdb_payload(seal_rdb_payload(body_of(std::end(packed_bodies)[-1])));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->type, RedisType::hash);
  EXPECT_EQ(read->items, (std::vector<Bytes>{"a", "-100", "b", "12345", "c", "8388607"}));
}

// Entries 1-1 and 7-0 with fields a and b, 5-0 with c; 1-2 is deleted. Group g has two pending.
TEST(RdbPayload, ReadsStreams) {
  for (const std::string_view body : {stream_body, old_stream_body}) {
    const auto read = read_rdb_payload(seal_rdb_payload(body_of(body)));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->type, RedisType::stream);
    const RdbStream& stream = read->stream;
    ASSERT_EQ(stream.entries.size(), 3U);
    EXPECT_EQ(stream.entries[1].id, (StreamId{5, 0}));
    EXPECT_EQ(stream.entries[2].entry, Bytes("\x01"
                                             "a\x05"
                                             "70000\x01"
                                             "b\x01z"));
    EXPECT_EQ(stream.head.first, (StreamId{1, 1}));
    EXPECT_EQ(stream.head.last_generated, (StreamId{7, 0}));
    const bool is_old = body == old_stream_body;
    EXPECT_EQ(stream.head.max_deleted, is_old ? StreamId{} : (StreamId{1, 2}));
    EXPECT_EQ(stream.head.entries_added, is_old ? 3U : 4U);
    ASSERT_EQ(stream.groups.size(), 2U);
    const RdbStream::Group& group = stream.groups[0];
    EXPECT_EQ(group.entries_read.has_value(), !is_old);
    ASSERT_EQ(group.pending.size(), 2U);
    EXPECT_EQ(group.pending[0].delivered_ms, 1'700'000'000'123U);
    EXPECT_EQ(group.pending[1].deliveries, 4U);
    EXPECT_EQ(group.pending[1].consumer, "one");
    EXPECT_EQ(group.consumers.size(), 2U);
    // And what is written of it reads the same.
    const auto again = read_rdb_payload(write_rdb_payload(*read));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(write_rdb_payload(*again), write_rdb_payload(*read));
    EXPECT_EQ(again->stream.entries[2].entry, stream.entries[2].entry);
    EXPECT_EQ(again->stream.groups[0].pending[1].consumer, "one");
  }
}

TEST(RdbPayload, WritesStreamsOfManyNodesAndAnyIds) {
  RdbValue value{.type = RedisType::stream};
  RdbStream& stream = value.stream;
  for (uint64_t i = 1; i <= 1'000; i++) {
    Bytes entry;
    const Bytes text(i * 7 % 5'000, 'x');
    const ByteView strings[] = {i % 3 == 0 ? "other" : "field", text};
    append_stream_entry(entry, strings);
    stream.entries.push_back({{i < 500 ? i : UINT64_MAX - 2'000 + i, UINT64_MAX - i}, entry});
  }
  stream.head.first = stream.entries.front().id;
  stream.head.last_generated = stream.entries.back().id;
  const auto read = read_rdb_payload(write_rdb_payload(value));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->stream.entries.size(), stream.entries.size());
  for (size_t i = 0; i < stream.entries.size(); i++) {
    ASSERT_EQ(read->stream.entries[i].id, stream.entries[i].id);
    ASSERT_EQ(read->stream.entries[i].entry, stream.entries[i].entry);
  }
}

TEST(RdbPayload, AnyBytesGiveAValueOrAnError) {
  const uint64_t seed = test_seed(1);
  Random random(seed);
  for (size_t i = 0; i < test_rounds(20'000); i++) {
    Bytes body = body_of(packed_bodies[random.below(std::size(packed_bodies))]);
    for (uint64_t changes = random.below(4); changes > 0; changes--)
      body[random.below(body.size())] = static_cast<char>(random.next());
    if (random.one_in(4)) body.resize(random.below(body.size()));
    const auto read = read_rdb_payload(seal_rdb_payload(body));
    if (!read) {
      EXPECT_EQ(read.error().message, "ERR Bad data format") << "seed " << seed;
    }
  }
}

// A string that is longer than a value may be becomes a bitmap: it is no damage.
TEST(RdbPayload, LongStringsUnpack) {
  constexpr uint32_t repeats = 80'000;
  constexpr uint32_t repeated_bytes = 264;  // by three bytes of LZF
  Bytes packed("\0x", 2);
  for (uint32_t i = 0; i < repeats; i++) packed += Bytes("\xe0\xff\0", 3);
  Bytes body("\0\xc3", 2);  // a string, LZF
  for (const auto bytes : {static_cast<uint32_t>(packed.size()), repeats * repeated_bytes + 1}) {
    body += '\x80';
    append_be32(body, bytes);
  }
  const auto read = read_rdb_payload(seal_rdb_payload(body + packed));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->items.at(0) == Bytes(repeats * repeated_bytes + 1, 'x'));
}

// A small payload that unpacks to 160 MiB of small entries.
TEST(RdbPayload, WhatUnpacksToTooMuchIsTold) {
  constexpr uint32_t pack_bytes = (10 << 20) + 1;
  Bytes pack("\x01\0\xa0\0\xff\xff", 6);  // its size, little-endian; more entries than it counts
  while (pack.size() + 2 < pack_bytes) pack += Bytes("\x01\x01", 2);
  pack.resize(pack_bytes - 1, '\x01');
  pack.push_back('\xff');
  // LZF: all but the first bytes are a repetition of two bytes.
  Bytes packed;
  const auto literals = [&](ByteView bytes) {
    packed.push_back(static_cast<char>(bytes.size() - 1));
    packed += bytes;
  };
  literals(ByteView(pack).substr(0, 8));
  size_t at = 8;
  while (pack.size() - at > 264) {
    packed += Bytes("\xe0\xff\x01", 3);  // 264 bytes, from two before
    at += 264;
  }
  for (; at < pack.size(); at += std::min<size_t>(32, pack.size() - at))
    literals(ByteView(pack).substr(at, 32));
  const auto append_be = [](Bytes& out, uint32_t number) {
    out.push_back('\x80');
    append_be32(out, number);
  };
  Bytes body("\x12\x10", 2);  // a quicklist of 16 packed nodes
  for (int i = 0; i < 16; i++) {
    body += "\x02\xc3";
    append_be(body, static_cast<uint32_t>(packed.size()));
    append_be(body, pack_bytes);
    body += packed;
  }
  const auto read = read_rdb_payload(seal_rdb_payload(body));
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message, too_much_at_once);
}

}  // namespace
}  // namespace trellis
