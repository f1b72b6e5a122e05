// Every golden key: its fields give its bytes, its bytes give its fields, and its pretty form.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "codec/key_kinds.h"
#include "support/vector_file.h"

namespace trellis {
namespace {

struct KeyVector {
  std::string where;
  std::string kind;
  TextFields fields;
  Bytes key;
  std::string pretty;  // empty: not stated
};

std::vector<KeyVector> key_vectors() {
  std::vector<KeyVector> vectors;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TRELLIS_SOURCE_DIR) + "/tests/vectors")) {
    const std::string name = entry.path().filename();
    if (!name.ends_with("_keys.txt")) continue;
    for (const VectorLine& line : read_vectors(name)) {
      const size_t blank = line.left.find(' ');
      const size_t bar = line.right.find(" | ");
      const auto fields = parse_text_fields(
          blank == std::string::npos ? "" : std::string_view(line.left).substr(blank));
      const auto key = from_hex(line.right.substr(0, bar));
      EXPECT_TRUE(fields.has_value() && key.has_value()) << line.where;
      if (!fields || !key) continue;
      vectors.push_back({line.where, line.left.substr(0, blank), *fields, *key,
                         bar == std::string::npos ? "" : line.right.substr(bar + 3)});
    }
  }
  return vectors;
}

TEST(KeyVectors, EveryKindHasOne) {
  std::set<std::string> kinds;
  for (const KeyVector& vector : key_vectors()) kinds.insert(vector.kind);
  // Those that stand for others of the same shape in the same table.
  for (const KeyKind& kind : key_kinds()) {
    if (kind.place == Place::by_name || kind.kind == "local.shared_locks_latch") continue;
    EXPECT_TRUE(kinds.contains(std::string(kind.kind))) << kind.kind << " has no golden vector";
  }
}

TEST(KeyVectors, FieldsGiveBytes) {
  for (const KeyVector& vector : key_vectors()) {
    SCOPED_TRACE(vector.where);
    const auto kind = find_key_kind(vector.kind);
    ASSERT_TRUE(kind.has_value());
    const auto key = encode_key(**kind, vector.fields);
    ASSERT_TRUE(key.has_value()) << key.error().message;
    EXPECT_EQ(to_hex(*key), to_hex(vector.key));
  }
}

void expect_fields(const KeyVector& vector, const Explanation& explanation) {
  for (const auto& [name, text] : vector.fields) {
    bool found = false;
    for (const ExplainedField& field : explanation.fields)
      found = found || (field.name == name && field.value == text);
    EXPECT_TRUE(found) << name << '=' << text;
  }
  // The fields tile the key.
  size_t offset = 0;
  for (const ExplainedField& field : explanation.fields) {
    EXPECT_EQ(field.offset, offset) << field.name;
    offset += field.length;
  }
  EXPECT_EQ(offset, vector.key.size());
}

TEST(KeyVectors, BytesGiveFields) {
  for (const KeyVector& vector : key_vectors()) {
    SCOPED_TRACE(vector.where);
    const auto kind = find_key_kind(vector.kind);
    ASSERT_TRUE(kind.has_value());
    const auto explained = explain_key_as(**kind, vector.key);
    ASSERT_TRUE(explained.has_value()) << explained.error().why;
    expect_fields(vector, explained->explanation);
    if (!vector.pretty.empty()) {
      EXPECT_EQ(explained->explanation.pretty, vector.pretty);
    }
  }
}

TEST(KeyVectors, BytesAloneTellTheKind) {
  for (const KeyVector& vector : key_vectors()) {
    SCOPED_TRACE(vector.where);
    const KeyKind& kind = **find_key_kind(vector.kind);
    if (kind.place == Place::by_name) continue;
    const auto explained = explain_key(vector.key);
    ASSERT_TRUE(explained.has_value()) << explained.error().why;
    if (explained->explanation.kind == vector.kind) continue;
    // A border of TiKV's raw regions is also a raw key of ours: ours wins, the other is named.
    EXPECT_EQ(vector.kind, "tikv.region");
    EXPECT_EQ(explained->explanation.kind, "raw");
    EXPECT_EQ(explained->also, std::vector<std::string_view>{"tikv.region"});
  }
}

TEST(KeyVectors, ExplainedFieldsEncodeBack) {
  for (const KeyVector& vector : key_vectors()) {
    SCOPED_TRACE(vector.where);
    const KeyKind& kind = **find_key_kind(vector.kind);
    const auto explained = explain_key_as(kind, vector.key);
    ASSERT_TRUE(explained.has_value());
    TextFields fields;  // all of them, literals too, as a script would pass them on
    for (const ExplainedField& field : explained->explanation.fields)
      fields.emplace_back(field.name, field.value);
    const auto key = encode_key(kind, fields);
    ASSERT_TRUE(key.has_value()) << key.error().message;
    EXPECT_EQ(to_hex(*key), to_hex(vector.key));
  }
}

struct BadKey {
  const char* hex;
  size_t offset;
  const char* why;
};

TEST(KeyErrors, NameOffsetAndReason) {
  const BadKey keys[] = {
      {"", 0, "at least one byte"},
      {"00", 0, "no key starts with 00"},
      {"78", 1, "keyspace: too short"},
      {"78000001", 4, "model: found the end of the key, want \"c\" or \"d\""},
      {"7800000161", 4, "model: found 61"},
      {"78000201647a", 6, "namespace: too short"},
      {"78000201646d0530", 6, "namespace: length goes past the end"},
      {"0169f67b7272", 5, "what: not one of its words"},
      {"016b1261", 4, "key: escaped bytes have no end"},
      {"016b12610002", 5, "key: 00 in escaped bytes must be followed by ff or 01"},
      {"0169f50072726c6c2d", 3, "infix: found 00"},
      {"0169f60172726c6c2d", 2, "range: uvarint is not in its shortest form"},
      {"780002016601000000000000000", 0, ""},  // odd: refused before decoding
      {"78000201660100000000000000ffff", 14, "end of key: bytes follow"},
      {"042f6b65797370616365732f6d6574612f31", 17, "keyspace: decimal number is not padded"},
      {"042f6b65797370616365732f6d6574612f3136373737323136", 17, "keyspace: number too large"},
  };
  for (const BadKey& bad : keys) {
    SCOPED_TRACE(bad.hex);
    const auto key = from_hex(bad.hex);
    if (!key) {
      EXPECT_NE(std::string_view(bad.hex).size() % 2, 0u);
      continue;
    }
    const auto explained = explain_key(*key);
    ASSERT_FALSE(explained.has_value()) << explained->explanation.pretty;
    EXPECT_EQ(explained.error().offset, bad.offset) << explained.error().why;
    EXPECT_NE(explained.error().why.find(bad.why), std::string::npos) << explained.error().why;
  }
}

TEST(KeyErrors, WrongFieldsAreNamed) {
  const KeyKind& kind = **find_key_kind("raw");
  const auto error = [&](const TextFields& fields) {
    const auto key = encode_key(kind, fields);
    return key ? std::string("no error") : key.error().message;
  };
  EXPECT_NE(error({{"keyspace", "1"}}).find("key: missing"), std::string::npos);
  EXPECT_NE(error({{"keyspace", "16777216"}, {"key", "a"}}).find("at most 16777215"),
            std::string::npos);
  EXPECT_NE(error({{"keyspace", "one"}, {"key", "a"}}).find("not a whole number"),
            std::string::npos);
  EXPECT_NE(error({{"keyspace", "1"}, {"key", "a"}, {"keys", "b"}}).find("keys: no such field"),
            std::string::npos);
  EXPECT_NE(error({{"keyspace", "1"}, {"key", "a"}, {"key", "b"}}).find("given twice"),
            std::string::npos);
  EXPECT_NE(error({{"keyspace", "1"}, {"key", "a"}, {"mode", "x"}}).find("is always \"r\""),
            std::string::npos);
  EXPECT_FALSE(find_key_kind("rew").has_value());
}

}  // namespace
}  // namespace trellis
