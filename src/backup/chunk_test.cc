#include "backup/chunk.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "support/expect_ok.h"

namespace trellis {
namespace {

using Entries = std::map<Bytes, Bytes>;

std::vector<EntryChunk> cut(const Entries& entries) {
  std::vector<EntryChunk> chunks;
  ChunkCutter cutter;
  for (const auto& [key, value] : entries)
    if (cutter.add(key, value)) chunks.push_back(cutter.take());
  if (!cutter.empty()) chunks.push_back(cutter.take());
  return chunks;
}

Entries many_entries(Random& random, size_t count) {
  Entries entries;
  while (entries.size() < count) {
    Bytes key = "r\x01\x02\x03";
    append_be64(key, random.next());
    Bytes value;
    for (uint64_t i = random.below(100); i > 0; i--) append_be64(value, random.next());
    entries[key] = value;
  }
  return entries;
}

TEST(ChunkTest, HasTheBytesThatAreDocumented) {
  ChunkCutter cutter;
  EXPECT_FALSE(cutter.add("k1", "v"));
  EXPECT_FALSE(cutter.add("k2", ""));
  const EntryChunk chunk = cutter.take();
  EXPECT_EQ(to_hex(chunk.plain),
            "00000002000000016b31760000000200000000"
            "6b32");
  EXPECT_EQ(to_hex(chunk.facts.digest),
            "412fba24dfa562fed9f6ff843a86e5b3eafbe77f5d5fa0fd39541c0e66919fa3");
  EXPECT_EQ(chunk.facts.first_key, "k1");
  EXPECT_EQ(chunk.facts.entries, 2U);
  EXPECT_EQ(chunk.facts.bytes, 21U);
  EXPECT_TRUE(cutter.empty());
  // What does not shrink is stored as it is.
  EXPECT_EQ(to_hex(encode_chunk_file(chunk.plain)),
            "54524c43484e4b01"
            "00"
            "00000015" +
                to_hex(chunk.plain));
}

TEST(ChunkTest, GivesBackWhatWentIn) {
  Random random(1);
  const Entries entries = many_entries(random, 20'000);
  Entries back;
  const std::vector<EntryChunk> chunks = cut(entries);
  EXPECT_GT(chunks.size(), 4U);
  for (const EntryChunk& chunk : chunks) {
    EXPECT_LE(chunk.plain.size(), chunk_bytes_max + 1'000);
    const auto plain = decode_chunk_file(encode_chunk_file(chunk.plain), chunk.facts.digest);
    ASSERT_OK(plain);
    EXPECT_EQ(back.size() + chunk.facts.entries <= entries.size(), true);
    ASSERT_OK(for_each_entry(*plain, [&](ByteView key, ByteView value) {
      back.emplace(key, value);
      return Status();
    }));
  }
  EXPECT_EQ(back, entries);
}

// What makes a second backup cheap: a change is felt near it only.
TEST(ChunkTest, AChangeMovesNoBordersFarAway) {
  Random random(2);
  Entries entries = many_entries(random, 50'000);
  std::set<Bytes> before;
  for (const EntryChunk& chunk : cut(entries)) before.insert(chunk.facts.digest);
  auto middle = entries.begin();
  std::advance(middle, entries.size() / 2);
  entries[middle->first + "x"] = "new";
  entries.erase(entries.begin());
  size_t changed = 0;
  for (const EntryChunk& chunk : cut(entries))
    changed += before.contains(chunk.facts.digest) ? 0 : 1;
  EXPECT_GE(before.size(), 10U);
  EXPECT_LE(changed, 5U);
}

TEST(ChunkTest, EveryFlippedBitAndEveryCutIsFound) {
  ChunkCutter cutter;
  for (int i = 100; i < 130; i++) cutter.add("key" + std::to_string(i), Bytes(20, 'v'));
  const EntryChunk chunk = cutter.take();
  const Bytes file = encode_chunk_file(chunk.plain);
  ASSERT_LT(file.size(), chunk.plain.size());  // it is packed
  for (size_t bit = 0; bit < file.size() * 8; bit++) {
    Bytes bad = file;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    const auto plain = decode_chunk_file(bad, chunk.facts.digest);
    // A bit that nobody reads may differ; what comes out may not.
    if (plain) {
      EXPECT_EQ(*plain, chunk.plain);
    }
  }
  for (size_t size = 0; size < file.size(); size++)
    EXPECT_FALSE(decode_chunk_file(ByteView(file).substr(0, size), chunk.facts.digest)) << size;
  EXPECT_FALSE(decode_chunk_file(file + "x", chunk.facts.digest));
}

TEST(ChunkTest, ANewerFormatIsRefusedByName) {
  Bytes file = encode_chunk_file("anything");
  file[7] = 2;
  const auto plain = decode_chunk_file(file, Bytes(32, '\0'));
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().code, Code::unsupported);
  EXPECT_NE(plain.error().message.find("newer trellis"), std::string::npos);
}

TEST(ChunkTest, EntriesThatMakeNoSenseAreRefused) {
  const auto visit = [](ByteView, ByteView) { return Status(); };
  const auto entry = [](ByteView key, ByteView value) {
    Bytes out;
    append_be32(out, static_cast<uint32_t>(key.size()));
    append_be32(out, static_cast<uint32_t>(value.size()));
    return out + Bytes(key) + Bytes(value);
  };
  EXPECT_OK(for_each_entry(entry("a", "1") + entry("b", "2"), visit));
  EXPECT_FALSE(for_each_entry(entry("b", "1") + entry("a", "2"), visit));
  EXPECT_FALSE(for_each_entry(entry("a", "1") + entry("a", "2"), visit));
  EXPECT_FALSE(for_each_entry(entry("", "1"), visit));
  EXPECT_FALSE(for_each_entry(entry(Bytes(key_bytes_max + 1, 'k'), "1"), visit));
  EXPECT_FALSE(for_each_entry(entry("a", "1").substr(0, 9), visit));
  EXPECT_FALSE(for_each_entry("\xff\xff\xff\xff\xff\xff\xff\xff", visit));
}

TEST(ChunkTest, RandomBytesAreNeverAChunk) {
  Random random(3);
  for (int i = 0; i < 2'000; i++) {
    Bytes file = i % 2 == 0 ? Bytes("TRLCHNK\x01\x01") : Bytes();
    for (uint64_t n = random.below(40); n > 0; n--)
      file.push_back(static_cast<char>(random.next()));
    EXPECT_FALSE(decode_chunk_file(file, Bytes(32, '\0')));
  }
}

}  // namespace
}  // namespace trellis
