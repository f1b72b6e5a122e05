#include "backup/manifest.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/expect_ok.h"
#include "tenant/sha256.h"

namespace trellis {
namespace {

Manifest sample() {
  Manifest manifest{.id = "20261115T235959-123-00ff",
                    .created_ms = 1'700'000'000'123,
                    .store = Bytes(16, 's'),
                    .whole = false,
                    .redis_versions_end = 77,
                    .added_bytes = 5};
  Keyspace keyspace;
  keyspace.id = KeyspaceId{513};
  keyspace.name = "shop";
  keyspace.config = {{"a", "b"}};
  keyspace.quota.keys = 9;
  manifest.keyspaces = {keyspace};
  manifest.chunks = {{.digest = sha256("1"), .first_key = "a", .entries = 1, .bytes = 10},
                     {.digest = sha256("2"), .first_key = "m", .entries = 2, .bytes = 20}};
  return manifest;
}

TEST(ManifestTest, GivesBackWhatWentIn) {
  const Manifest manifest = sample();
  const auto back = decode_manifest(encode_manifest(manifest));
  ASSERT_OK(back);
  EXPECT_EQ(*back, manifest);
  EXPECT_EQ(back->entries(), 3U);
  EXPECT_EQ(back->bytes(), 30U);
  EXPECT_NE(back->find("shop"), nullptr);
  EXPECT_EQ(back->find("none"), nullptr);
}

TEST(ManifestTest, EveryFlippedBitAndEveryCutIsFound) {
  const Bytes file = encode_manifest(sample());
  for (size_t bit = 0; bit < file.size() * 8; bit++) {
    Bytes bad = file;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_manifest(bad)) << bit;
  }
  for (size_t size = 0; size < file.size(); size++)
    EXPECT_FALSE(decode_manifest(ByteView(file).substr(0, size))) << size;
}

TEST(ManifestTest, ForeignAndNewerOnesAreToldApart) {
  EXPECT_EQ(decode_manifest("REDIS0011").error().reason, "backup_foreign");
  Bytes newer = encode_manifest(sample());
  newer[7] = 3;
  EXPECT_EQ(decode_manifest(newer).error().reason, "backup_too_new");
}

// Those who know format 1 only take chunks of blocks for entries of the map.
TEST(ManifestTest, OnlyWithBlocksItIsOfFormat2) {
  Manifest manifest = sample();
  EXPECT_EQ(encode_manifest(manifest)[7], 1);
  manifest.chunks.push_back(
      {.digest = sha256("3"), .first_key = "b", .entries = 1, .bytes = 10, .of_blocks = true});
  manifest.block_bounds = {"c", "d"};
  const Bytes file = encode_manifest(manifest);
  EXPECT_EQ(file[7], 2);
  const auto back = decode_manifest(file);
  ASSERT_OK(back);
  EXPECT_EQ(*back, manifest);
}

// With a checksum that is right: whoever makes one can make that too.
TEST(ManifestTest, WhatMakesNoSenseIsRefused) {
  const auto refused = [](void (*spoil)(Manifest&)) {
    Manifest manifest = sample();
    spoil(manifest);
    return !decode_manifest(encode_manifest(manifest));
  };
  EXPECT_FALSE(refused([](Manifest&) {}));
  EXPECT_TRUE(refused([](Manifest& m) { m.id = "../../etc/passwd"; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.id = ""; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.store = "short"; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.keyspaces.clear(); }));
  EXPECT_TRUE(refused([](Manifest& m) { m.redis_versions_end = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.chunks[0].digest = "short"; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.chunks[0].bytes = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.chunks[0].entries = 0; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.chunks[0].first_key = "z"; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.chunks[1].first_key = "a"; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.chunks[0].of_blocks = true; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.unit_bounds = {"b", "a"}; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.block_bounds = {"b", "b"}; }));
}

TEST(ManifestTest, FindsTheChunksOfAKeyspace) {
  std::vector<ChunkFacts> chunks;
  for (const char* key : {"\x04",
                          "r\x01\x01\x01"
                          "b",
                          "r\x01\x01\x02", "x\x01\x01\x01", "x\x02\x02\x02"})
    chunks.push_back({.digest = {}, .first_key = key, .entries = 1, .bytes = 1});
  chunks.push_back({.digest = {},
                    .first_key = Bytes("x\x01\x01\x00"
                                       "f\x02",
                                       6),
                    .entries = 1,
                    .bytes = 1,
                    .of_blocks = true});
  const auto found = chunks_in(chunks, keyspace_intervals(KeyspaceId{0x010101}));
  std::vector<Bytes> keys;
  for (const ChunkFacts& chunk : found) keys.push_back(chunk.first_key);
  // The first holds what is before the second, the third all up to the fourth. The last one holds
  // all blocks behind its first.
  EXPECT_EQ(keys, (std::vector<Bytes>{"\x04",
                                      "r\x01\x01\x01"
                                      "b",
                                      "r\x01\x01\x02", "x\x01\x01\x01",
                                      Bytes("x\x01\x01\x00"
                                            "f\x02",
                                            6)}));
}

}  // namespace
}  // namespace trellis
