#include "base/bytes.h"

#include <gtest/gtest.h>

#include <map>
#include <unordered_set>
#include <vector>

#include "base/random.h"
#include "base/strong_id.h"

namespace trellis {
namespace {

constexpr uint64_t seed = 20261115;

TEST(Hex, Vectors) {
  EXPECT_EQ(to_hex(ByteView("k\x01\x00\xff", 4)), "6b0100ff");
  EXPECT_EQ(to_hex(""), "");
  EXPECT_EQ(from_hex("6b0100fF").value(), Bytes("k\x01\x00\xff", 4));
  EXPECT_EQ(from_hex("").value(), "");
  EXPECT_EQ(from_hex("0g").error().message, "character 2 is not a hex digit: \"g\"");
  EXPECT_EQ(from_hex("00 0").error().message, "character 3 is not a hex digit: \" \"");
  EXPECT_EQ(from_hex("000").error().message, "odd number of hex digits: 3");
  EXPECT_EQ(from_hex("\n0").error().message, "character 1 is not a hex digit: \"\\x0a\"");
}

TEST(Quote, Vectors) {
  EXPECT_EQ(quote(""), "\"\"");
  EXPECT_EQ(quote(ByteView("a \"\\\n\0\x7f\xe4~", 9)), R"("a \"\\\x0a\x00\x7f\xe4~")");
}

TEST(Unquote, Vectors) {
  EXPECT_EQ(unquote("").value(), "");
  EXPECT_EQ(unquote("\"\"").value(), "");
  EXPECT_EQ(unquote("plain text").value(), "plain text");
  EXPECT_EQ(unquote("\"").value(), "\"");
  EXPECT_EQ(unquote(R"(\n\r\t\0\"\\\xfF\x00)").value(), Bytes("\n\r\t\0\"\\\xff\0", 8));
  for (const std::string_view bad :
       {R"(\)", R"("\")", R"(a\q)", R"(\x)", R"(\x1)", R"(\xg0)", R"(\x0g)", R"("\x1")"}) {
    ASSERT_FALSE(unquote(bad).has_value()) << bad;
    EXPECT_EQ(unquote(bad).error().code, Code::invalid);
  }
}

// A message is for people's terminals, whatever the text held.
TEST(Unquote, MessagesArePrintable) {
  const std::string message = unquote("\\\x1b").error().message;
  for (const char c : message) EXPECT_TRUE(c >= 0x20 && c <= 0x7e) << quote(message);
}

TEST(Text, AnyBytesComeBack) {
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 3000; round++) {
    Bytes bytes = random.bytes(random.below(12));
    if (random.one_in(2))
      for (char& c : bytes) c = "\"\\x0n1\0"[random.below(7)];
    ASSERT_EQ(from_hex(to_hex(bytes)).value(), bytes);
    const std::string quoted = quote(bytes);
    ASSERT_EQ(unquote(quoted).value(), bytes) << quoted;
    for (const char c : quoted) ASSERT_TRUE(c >= 0x20 && c <= 0x7e);
    // Any text is read or refused. What is read means the same after being quoted.
    if (const auto read = unquote(bytes); read.has_value()) {
      ASSERT_EQ(unquote(quote(*read)).value(), *read);
    }
    if (const auto read = from_hex(bytes); read.has_value()) {
      ASSERT_EQ(read->size() * 2, bytes.size());
    }
  }
}

TEST(BigEndian, Vectors) {
  Bytes out = "x";
  append_be16(out, 0x0102);
  append_be24(out, 0x030405);
  append_be32(out, 0x06070809);
  append_be64(out, 0x0a0b0c0d0e0f1011);
  EXPECT_EQ(to_hex(out), "780102030405060708090a0b0c0d0e0f1011");
  EXPECT_EQ(load_be(out.data() + 1, 1), 0x01u);
  EXPECT_EQ(load_be(out.data() + 1, 2), 0x0102u);
  EXPECT_EQ(load_be(out.data() + 3, 3), 0x030405u);
  EXPECT_EQ(load_be(out.data() + 10, 8), 0x0a0b0c0d0e0f1011u);
  const char high[] = {'\xff', '\x80'};
  EXPECT_EQ(load_be(high, 2), 0xff80u);
}

TEST(BigEndian, OrderOfBytesIsOrderOfNumbers) {
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 3000; round++) {
    const uint64_t a = random.next() >> random.below(64);
    const uint64_t b = random.one_in(4) ? a : random.next() >> random.below(64);
    Bytes a8, b8, a4, b4, a3, b3, a2, b2;
    append_be64(a8, a), append_be64(b8, b);
    ASSERT_EQ(a8 < b8, a < b) << a << " " << b;
    ASSERT_EQ(load_be(a8.data(), 8), a);
    append_be32(a4, static_cast<uint32_t>(a)), append_be32(b4, static_cast<uint32_t>(b));
    ASSERT_EQ(a4 < b4, static_cast<uint32_t>(a) < static_cast<uint32_t>(b));
    ASSERT_EQ(load_be(a4.data(), 4), static_cast<uint32_t>(a));
    append_be24(a3, a & 0xffffff), append_be24(b3, b & 0xffffff);
    ASSERT_EQ(a3 < b3, (a & 0xffffff) < (b & 0xffffff));
    ASSERT_EQ(load_be(a3.data(), 3), a & 0xffffff);
    append_be16(a2, static_cast<uint16_t>(a)), append_be16(b2, static_cast<uint16_t>(b));
    ASSERT_EQ(a2 < b2, static_cast<uint16_t>(a) < static_cast<uint16_t>(b));
    ASSERT_EQ(load_be(a2.data(), 2), static_cast<uint16_t>(a));
  }
}

TEST(PrefixEnd, Vectors) {
  EXPECT_EQ(prefix_end(""), "");
  EXPECT_EQ(prefix_end("a"), "b");
  EXPECT_EQ(prefix_end("a\xff\xff"), "b");
  EXPECT_EQ(prefix_end("\x7f"), "\x80");
  EXPECT_EQ(prefix_end("\xfe\xff"), "\xff");
  EXPECT_EQ(prefix_end("\xff\xff"), "");
  EXPECT_EQ(prefix_end(ByteView("a\0", 2)), "a\x01");
}

// Short keys of few bytes, so that they often share prefixes.
Bytes small_key(Random& random) {
  Bytes key;
  for (uint64_t size = random.below(4); size > 0; size--)
    key.push_back("\x00\x01\x7f\x80\xfe\xff"[random.below(6)]);
  return key;
}

TEST(PrefixEnd, BoundsExactlyThePrefix) {
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 20000; round++) {
    const Bytes prefix = small_key(random), key = small_key(random);
    const Bytes end = prefix_end(prefix);
    const bool inside = prefix <= key && (end.empty() || key < end);
    ASSERT_EQ(inside, key.starts_with(prefix)) << to_hex(prefix) << " " << to_hex(key);
  }
}

TEST(Successor, NothingIsBetween) {
  SCOPED_TRACE(seed);
  Random random(seed);
  EXPECT_EQ(successor(""), Bytes(1, '\0'));
  for (int round = 0; round < 20000; round++) {
    const Bytes key = small_key(random), other = small_key(random);
    const Bytes next = successor(key);
    ASSERT_LT(key, next);
    ASSERT_FALSE(key < other && other < next) << to_hex(key) << " " << to_hex(other);
  }
}

TEST(StrongId, IsAnIdentityOfItsOwn) {
  static_assert(!std::is_convertible_v<uint32_t, KeyspaceId>);
  static_assert(!std::is_constructible_v<KeyspaceId, NodeId>);
  static_assert(!std::is_convertible_v<KeyspaceId, uint32_t>);
  static_assert(sizeof(KeyspaceId) == 4 && sizeof(RangeId) == 8);
  EXPECT_EQ(RangeId{}, RangeId{0});
  EXPECT_LT(RangeId{2}, RangeId{10});
  EXPECT_NE(RangeId{2}, RangeId{10});
  const std::unordered_set<InodeId> set = {InodeId{1}, InodeId{2}, InodeId{1}};
  EXPECT_EQ(set.size(), 2u);
  const std::map<InodeId, int> map = {{InodeId{2}, 0}, {InodeId{1}, 0}};
  EXPECT_EQ(map.begin()->first, InodeId{1});
}

}  // namespace
}  // namespace trellis
