// How bitmaps are stored, and that large ones change as a whole.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "redis_fixture.h"

namespace trellis {
namespace {

class RedisBitmaps : public RedisFixture {
 protected:
  // Fragments of all keys: offset and bytes.
  std::vector<std::pair<Bytes, Bytes>> fragments() {
    const Bytes begin = redis_slot_prefix(default_keyspace, 's', 0);
    std::vector<std::pair<Bytes, Bytes>> found;
    const auto page =
        memory_.scan({.begin = begin, .end = prefix_end(begin)}, [&](ByteView key, ByteView value) {
          found.emplace_back(decode<RedisSubKey>(key).value().inner.sub, value);
          return Visit::go_on;
        });
    EXPECT_OK(page);
    return found;
  }
  void collect_all() {
    for (int i = 0; i < 3; i++) {
      clock_.advance_ms(61'000);
      while (step()) {
      }
    }
    expect_exact();
  }
};
INSTANTIATE_TEST_SUITE_P(BothWays, RedisBitmaps, testing::Values(Way::latched, Way::expecting),
                         way_name);

using Fragments = std::vector<std::pair<Bytes, Bytes>>;

TEST_P(RedisBitmaps, FragmentsAreKvrocksOnes) {
  EXPECT_EQ(say("SETBIT b 8193 1"), ":0\r\n");
  EXPECT_EQ(fragments(), (Fragments{{"1024", "\x02"}}));
  EXPECT_EQ(say("SETBIT b 8192 1"), ":0\r\n");
  EXPECT_EQ(say("SETBIT b 0 1"), ":0\r\n");
  EXPECT_EQ(fragments(), (Fragments{{"0", "\x01"}, {"1024", "\x03"}}));
  EXPECT_EQ(say("GETRANGE b 1024 -1"), "$1\r\n\xc0\r\n");
}

TEST_P(RedisBitmaps, WhatIsEmptyIsNotWritten) {
  EXPECT_EQ(say("SETBIT b 4294967295 1"), ":0\r\n");
  EXPECT_EQ(say("SETBIT b 4000000000 0"), ":0\r\n");
  EXPECT_EQ(records(), 2U);
  EXPECT_EQ(number("STRLEN b"), 512 * 1024 * 1024);
  EXPECT_EQ(number("BITPOS b 1"), 4294967295);
  EXPECT_EQ(say("SETBIT b 4294967295 0"), ":1\r\n");
  EXPECT_EQ(records(), 1U);
  EXPECT_EQ(number("STRLEN b"), 512 * 1024 * 1024);
  EXPECT_EQ(number("BITCOUNT b"), 0);
  EXPECT_EQ(number("BITPOS b 1"), -1);
  EXPECT_EQ(say("DEL b"), ":1\r\n");
  collect_all();
  EXPECT_EQ(records(), 0U);
}

TEST_P(RedisBitmaps, ALargeStringBecomesOneAndBack) {
  const Bytes text(5'000, 'a');
  EXPECT_EQ(say(std::vector<ByteView>{"SET", "k", text, "PX", "100000"}), "+OK\r\n");
  EXPECT_EQ(records(), 1U);
  EXPECT_EQ(say("SETBIT k 0 1"), ":0\r\n");
  EXPECT_EQ(records(), 6U);
  EXPECT_EQ(say("GET k"), "$5000\r\n\xe1" + text.substr(1) + "\r\n");
  EXPECT_EQ(number("PTTL k"), 100'000);
  EXPECT_EQ(say("SET k a KEEPTTL"), "+OK\r\n");
  EXPECT_EQ(number("PTTL k"), 100'000);
  collect_all();
}

// A result that is larger than a commit, on a key that is also read.
TEST_P(RedisBitmaps, OperationsOnLargeOnes) {
  constexpr size_t piece_bytes = 4 * 1024 * 1024;
  constexpr size_t pieces = commit_bytes_max / piece_bytes + 2;
  const Bytes piece(piece_bytes, '\x55');
  EXPECT_EQ(say("SETBIT a 0 0"), ":0\r\n");
  for (size_t i = 0; i < pieces; i++) {
    const std::string offset = std::to_string(i * piece_bytes);
    EXPECT_EQ(say(std::vector<ByteView>{"SETRANGE", "a", offset, piece})[0], ':');
  }
  constexpr int64_t bits = pieces * piece_bytes * 8;
  EXPECT_EQ(number("BITCOUNT a"), bits / 2);
  EXPECT_EQ(number("SETBIT b 7 1"), 0);
  EXPECT_EQ(number("BITOP OR a a b"), bits / 8);
  EXPECT_EQ(number("BITCOUNT a"), bits / 2);
  EXPECT_EQ(number("BITOP NOT a a"), bits / 8);
  EXPECT_EQ(number("BITCOUNT a"), bits / 2);
  EXPECT_EQ(number("BITCOUNT a 0 0"), 4);
  EXPECT_EQ(number("GETBIT a 0"), 1);
  EXPECT_EQ(number("BITPOS a 0"), 1);
  EXPECT_EQ(number("BITOP AND a a b"), bits / 8);
  EXPECT_EQ(number("BITCOUNT a"), 0);
  collect_all();
  EXPECT_EQ(records(), 3U) << "of both keys, and the one bit";
}

}  // namespace
}  // namespace trellis
