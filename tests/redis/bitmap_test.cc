// How bitmaps are stored, and that large ones change as a whole.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>

#include "redis/fragment_scan.h"
#include "redis_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

// The most memory that the process had since the last time that was asked for; 0: not known.
size_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  size_t kib = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) kib = std::stoull(line.substr(6));
  std::ofstream("/proc/self/clear_refs") << 5;
  return kib * 1024;
}

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

// Small bitmaps that would be large strings: one at a time, whatever a transaction asks for.
TEST_P(RedisBitmaps, FewTextsAreInMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep what was freed";
#endif
  constexpr size_t bitmaps = 16;
  constexpr size_t text_bytes = 64 * 1024 * 1024;
  for (size_t i = 0; i < bitmaps; i++) {
    say(fmt::format("SETBIT b{} {} 1", i, text_bytes * 8 - 1));
    say(fmt::format("RPUSH l {}", i));
  }
  peak_bytes();
  const size_t before = peak_bytes();
  EXPECT_EQ(say("MULTI"), "+OK\r\n");
  for (size_t i = 0; i < bitmaps; i++) {
    say(fmt::format("PFCOUNT b{}", i));
    say(fmt::format("INCR b{}", i));
    say(fmt::format("INCRBYFLOAT b{} 1", i));
    say(fmt::format("LCS b{} b0", i));
  }
  const Bytes replies = say("EXEC");
  EXPECT_EQ(std::count(replies.begin(), replies.end(), '\n'), 1 + 4 * bitmaps);
  EXPECT_EQ(replies.find('$'), Bytes::npos) << "all of them are errors";
  EXPECT_LT(peak_bytes() - before, 4 * text_bytes);
  EXPECT_EQ(say("SORT l BY nosort GET b*")[0], '-');
  EXPECT_EQ(say("SORT l ALPHA BY b* GET #")[0], '-');
  EXPECT_LT(peak_bytes() - before, 8 * text_bytes);
  EXPECT_EQ(say("MGET b0 b1 b2 b3 b4 b5 b6 b7 b8 b9")[0], '-');
}

TEST_P(RedisBitmaps, SourcesThatAreNamedOften) {
  constexpr size_t text_bytes = 8 * 1024 * 1024;
  const Bytes text(text_bytes, 'a');
  EXPECT_EQ(say(std::vector<ByteView>{"SET", "s", text}), "+OK\r\n");
  peak_bytes();
  const size_t before = peak_bytes();
  std::vector<ByteView> words{"BITOP", "OR", "d"};
  words.resize(67, "s");
  EXPECT_EQ(say(words), fmt::format(":{}\r\n", text_bytes));
  EXPECT_LT(peak_bytes() - before, 20 * text_bytes);
  constexpr int64_t bits = 3 * text_bytes;
  EXPECT_EQ(number("BITCOUNT d"), bits);
  for (const auto& [operation, sources, found] :
       {std::tuple{"AND", "s s", bits}, std::tuple{"AND", "s none s", int64_t{0}},
        std::tuple{"XOR", "s s", int64_t{0}}, std::tuple{"XOR", "s s s", bits},
        std::tuple{"XOR", "s d s", bits}, std::tuple{"XOR", "d s d s s", bits},
        std::tuple{"OR", "none s s", bits}, std::tuple{"NOT", "s", 5 * bits / 3}}) {
    const Bytes line = fmt::format("BITOP {} d {}", operation, sources);
    EXPECT_EQ(number(line), text_bytes) << line;
    EXPECT_EQ(number("BITCOUNT d"), found) << line;
    say(std::vector<ByteView>{"SET", "d", text});
  }
  EXPECT_EQ(number("BITOP NOT s s"), text_bytes);
  EXPECT_EQ(number("BITCOUNT s"), 5 * bits / 3);
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

TEST(StoredOrderOfFragments, IsThatOfTheirDecimals) {
  for (const uint64_t bytes : {0, 1, 1'024, 1'025, 10'240, 12'345'678, 110'000'000}) {
    std::vector<Bytes> expected;
    for (uint64_t offset = 0; offset < bytes; offset += fragment_bytes)
      expected.push_back(std::to_string(offset));
    std::ranges::sort(expected);
    constexpr size_t part_fragments = 900;
    StoredOrder order(bytes, part_fragments);
    std::vector<Bytes> found;
    for (auto part = order.next_part(); !part.empty(); part = order.next_part()) {
      EXPECT_LE(part.size(), part_fragments);
      for (const uint64_t offset : part) found.push_back(std::to_string(offset));
    }
    EXPECT_EQ(found, expected) << bytes;
  }
}

// The second one is as if zeros followed.
Bytes combined(Bytes text, const Bytes& other, const std::string& operation) {
  for (size_t i = 0; i < text.size(); i++) {
    const char byte = i < other.size() ? other[i] : '\0';
    if (operation == "AND") text[i] = static_cast<char>(text[i] & byte);
    if (operation == "OR") text[i] = static_cast<char>(text[i] | byte);
    if (operation == "XOR") text[i] = static_cast<char>(text[i] ^ byte);
  }
  return text;
}

// Several parts, which threads make: bytes here and there in two bitmaps and a string.
TEST_P(RedisBitmaps, OperationsInParts) {
  constexpr size_t bytes = 17 * 1024 * 1024 + 77;
  Random random(test_seed(21));
  std::map<Bytes, Bytes> texts{
      {"a", Bytes(bytes, 0)}, {"b", Bytes(bytes - 5'000'000, 0)}, {"c", {}}};
  for (auto& [key, text] : texts) {
    if (key == "c")
      text = random.bytes(100'000);
    else
      EXPECT_EQ(number(fmt::format("SETBIT {} {} 0", key, text.size() * 8 - 1)), 0);
    for (size_t i = 0; i < 60 && key != "c"; i++) {
      const Bytes piece = random.bytes(1 + random.below(5'000));
      const size_t at = i == 0 ? text.size() - piece.size() : random.below(text.size() - 5'000);
      text.replace(at, piece.size(), piece);
      say(std::vector<ByteView>{"SETRANGE", key, std::to_string(at), piece});
    }
  }
  say(std::vector<ByteView>{"SET", "c", texts["c"]});
  const auto expect_text = [&](const Bytes& key, const Bytes& text) {
    uint64_t bits = 0;
    for (const char byte : text)
      bits += static_cast<uint64_t>(std::popcount(static_cast<uint8_t>(byte)));
    EXPECT_EQ(number("BITCOUNT " + key), static_cast<int64_t>(bits));
    for (size_t at = 0; at < text.size(); at += 4'000'000) {
      const size_t end = std::min(at + 4'000'000, text.size());
      const Bytes reply = say(fmt::format("GETRANGE {} {} {}", key, at, end - 1));
      ASSERT_TRUE(ByteView(reply).substr(reply.find('\n') + 1, end - at) ==
                  ByteView(text).substr(at, end - at))
          << key << " from " << at;
    }
  };
  for (const std::string operation : {"AND", "OR", "XOR", "NOT"}) {
    SCOPED_TRACE(operation);
    Bytes expected = texts["a"];
    if (operation == "NOT")
      for (char& byte : expected) byte = static_cast<char>(~byte);
    else
      for (const char* other : {"b", "c"}) expected = combined(expected, texts[other], operation);
    const std::string sources = operation == "NOT" ? "a" : "a b c";
    EXPECT_EQ(number(fmt::format("BITOP {} to {}", operation, sources)),
              static_cast<int64_t>(bytes));
    expect_text("to", expected);
    // The target may be a source.
    EXPECT_EQ(say("COPY a kept REPLACE"), ":1\r\n");
    EXPECT_EQ(number(fmt::format("BITOP {} a {}", operation, sources)),
              static_cast<int64_t>(bytes));
    expect_text("a", expected);
    EXPECT_EQ(say("RENAME kept a"), "+OK\r\n");
  }
  // What an EXEC wrote itself is read, too.
  say("MULTI");
  say("SETRANGE a 9000000 inside");
  say("BITOP OR to a b");
  say("BITCOUNT to");
  say("BITCOUNT a");
  EXPECT_TRUE(say("EXEC").starts_with("*4\r\n"));
  texts["a"].replace(9'000'000, 6, "inside");
  expect_text("a", texts["a"]);
  expect_text("to", combined(texts["a"], texts["b"], "OR"));
  expect_exact();
}

}  // namespace
}  // namespace trellis
