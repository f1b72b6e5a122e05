// For random records of every kind: bytes and fields are two forms of one thing, no two kinds share
// a key, and order of bytes is order of meaning.
#include <gtest/gtest.h>

#include "codec/redis_keys.h"
#include "support/key_probes.h"
#include "support/sample_record.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

TextFields fields_of(const Explanation& explanation) {
  TextFields fields;
  for (const ExplainedField& field : explanation.fields)
    fields.emplace_back(field.name, field.value);
  return fields;
}

TEST(Records, BytesAndFieldsAreOne) {
  Random random(test_seed(1));
  for (const KeyProbe& probe : key_probes()) {
    SCOPED_TRACE(std::string(probe.kind->kind));
    for (uint64_t round = 0; round < test_rounds(300); round++) {
      const Bytes key = probe.sample(random);
      SCOPED_TRACE(to_hex(key));
      const auto back = probe.reencode(key);
      ASSERT_TRUE(back.has_value());
      ASSERT_EQ(*back, key);
      Explanation explanation;
      DecodeFailure failure;
      ASSERT_TRUE(probe.kind->explain(key, explanation, failure)) << failure.why;
      const auto encoded = encode_key(*probe.kind, fields_of(explanation));
      ASSERT_TRUE(encoded.has_value()) << encoded.error().message;
      ASSERT_EQ(*encoded, key);
    }
  }
}

TEST(Records, NoTwoKindsOfTheMapShareAKey) {
  Random random(test_seed(2));
  for (const KeyProbe& probe : key_probes()) {
    if (probe.kind->place != Place::in_map) continue;
    for (uint64_t round = 0; round < test_rounds(100); round++) {
      const Bytes key = probe.sample(random);
      SCOPED_TRACE(to_hex(key));
      const auto explained = explain_key(key);
      ASSERT_TRUE(explained.has_value());
      ASSERT_EQ(explained->explanation.kind, probe.kind->kind);
      for (const std::string_view also : explained->also)
        ASSERT_NE((*find_key_kind(also))->place, Place::in_map) << also;
    }
  }
}

TEST(Records, CutKeysAreErrorsOrOtherKeys) {
  Random random(test_seed(3));
  for (const KeyProbe& probe : key_probes()) {
    for (uint64_t round = 0; round < test_rounds(30); round++) {
      const Bytes key = probe.sample(random);
      for (size_t size = 0; size < key.size(); size++) {
        const ByteView cut = ByteView(key).substr(0, size);
        const auto back = probe.reencode(cut);
        if (back) {
          ASSERT_EQ(*back, cut) << probe.kind->kind;
        }
      }
    }
  }
}

template <class Codec, class V>
void expect_order(const V& a, const V& b) {
  Bytes a_bytes;
  Bytes b_bytes;
  Codec::append(a_bytes, a);
  Codec::append(b_bytes, b);
  ASSERT_EQ(a < b, a_bytes < b_bytes) << Codec::text(a) << ' ' << Codec::text(b);
}

TEST(Fields, OrderOfBytesIsOrderOfMeaning) {
  Random random(test_seed(4));
  for (uint64_t round = 0; round < test_rounds(100'000); round++) {
    const uint64_t a = sample_detail::number(random);
    const uint64_t b = random.one_in(2) ? a + random.below(3) : sample_detail::number(random);
    expect_order<BigEndian<8>>(a, b);
    expect_order<OrderedUvarint>(a, b);
    expect_order<OrderedVarint>(static_cast<int64_t>(a), static_cast<int64_t>(b));
    const auto x = std::bit_cast<double>(a);
    const auto y = std::bit_cast<double>(b);
    if (!std::isnan(x) && !std::isnan(y) && x != y) expect_order<OrderedScore>(x, y);
    TextArena arena;
    const ByteView s = sample_detail::bytes(random, arena);
    ByteView t = sample_detail::bytes(random, arena);
    if (random.one_in(3)) t = s.substr(0, random.below(s.size() + 1));
    expect_order<Terminated>(s, t);
    expect_order<EscapedBytes>(s, t);
    expect_order<MemComparable>(s, t);
    if (HasFatalFailure()) return;
  }
}

struct Two {
  ByteView first;
  ByteView second;
  static constexpr auto layout() {
    return record(field<Terminated>("first", &Two::first),
                  field<EscapedBytes>("second", &Two::second));
  }
};

TEST(Fields, SeveralEscapedFieldsShareOneScratch) {
  const Bytes first("a\0b", 3);
  const Bytes second("\0\0\xff\0", 4);
  Bytes scratch;
  const Bytes key = encode(Two{first, second});
  const auto two = decode<Two>(key, scratch);
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->first, first);
  EXPECT_EQ(two->second, second);
}

}  // namespace
}  // namespace trellis
