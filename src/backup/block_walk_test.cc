#include "backup/block_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "backup/manifest.h"
#include "backup/units.h"
#include "base/random.h"
#include "codec/fs_keys.h"
#include "engine/memory_engine.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr BlockInterval all_blocks{{KeyspaceId{0}, DataId{0}, 0},
                                   {KeyspaceId{keyspace_id_max + 1}, DataId{0}, 0}};

class BlockWalkTest : public testing::Test {
 protected:
  void write(const BlockId& block, ByteView bytes) {
    const BlockWrite one{block, std::nullopt, bytes};
    ASSERT_OK(engine_.blocks().write({&one, 1}));
    model_[encode(FsBlockKey{block.keyspace, block.data, block.index})] = bytes;
  }
  BlockUnits cut(const BlockInterval& scope, size_t wanted, std::vector<Bytes> before = {}) {
    const auto units = cut_block_units(engine_.blocks(), scope, wanted, std::move(before));
    EXPECT_OK(units);
    return units.value_or(BlockUnits{.scope = scope});
  }
  // The units one after the other.
  std::vector<EntryChunk> walk(const BlockUnits& units) {
    std::vector<EntryChunk> chunks;
    for (size_t i = 0; i < units.size(); i++) {
      BlockWalk walk(engine_.blocks(), units.unit(i));
      while (!walk.done()) EXPECT_OK(walk.next(300'000, chunks));
    }
    return chunks;
  }
  static std::map<Bytes, Bytes> entries_in(const std::vector<EntryChunk>& chunks) {
    std::map<Bytes, Bytes> entries;
    for (const EntryChunk& chunk : chunks) {
      EXPECT_TRUE(chunk.facts.of_blocks);
      EXPECT_TRUE(entries.empty() || entries.rbegin()->first < chunk.facts.first_key);
      EXPECT_OK(for_each_entry(chunk.plain, [&](ByteView key, ByteView value) {
        EXPECT_OK(block_of_entry(key, value));
        EXPECT_TRUE(entries.emplace(key, value).second);
        return Status();
      }));
    }
    return entries;
  }

  MemoryEngine engine_;
  std::map<Bytes, Bytes> model_;
  Random random_{test_seed(71)};
};

TEST_F(BlockWalkTest, NothingIsOneUnitWithoutChunks) {
  const BlockUnits units = cut(all_blocks, 10);
  EXPECT_EQ(units.size(), 1u);
  EXPECT_TRUE(walk(units).empty());
}

TEST_F(BlockWalkTest, UnitsHoldEachBlockOnceHoweverTheyLie) {
  const auto owner = [&] { return KeyspaceId{static_cast<uint32_t>(random_.below(3))}; };
  for (int round = 0; round < 20; round++) {
    const uint64_t shape = random_.below(4);
    for (int i = 0; i < 40; i++) {
      BlockId block{owner(), DataId{random_.below(1'000)}, random_.below(50)};
      if (shape == 1) block = {KeyspaceId{1}, DataId{7}, random_.below(100'000)};
      if (shape == 2) block = {KeyspaceId{keyspace_id_max}, DataId{random_.next()}, random_.next()};
      if (shape == 3) block = {owner(), DataId{UINT64_MAX}, UINT64_MAX - random_.below(100)};
      write(block, random_.bytes(random_.below(20'000)));
    }
    for (const size_t wanted : {1, 3, 7, 50}) {
      const BlockUnits units = cut(all_blocks, wanted);
      EXPECT_EQ(units.size(), std::min(wanted, model_.size()));
      EXPECT_TRUE(std::ranges::is_sorted(units.bounds));
      EXPECT_TRUE(entries_in(walk(units)) == model_);
      EXPECT_EQ(cut(all_blocks, wanted).bounds, units.bounds);
    }
  }
}

TEST_F(BlockWalkTest, AScopeHoldsItsKeyspaceOnly) {
  for (const uint32_t keyspace : {4, 5, 6})
    for (uint64_t i = 0; i < 50; i++) write({KeyspaceId{keyspace}, DataId{i}, i}, "v");
  const BlockInterval scope{blocks_begin(KeyspaceId{5}), blocks_end(KeyspaceId{5})};
  const auto entries = entries_in(walk(cut(scope, 4)));
  EXPECT_EQ(entries.size(), 50u);
  for (const auto& [key, value] : entries)
    EXPECT_EQ(decode<FsBlockKey>(key)->keyspace, KeyspaceId{5});
}

TEST_F(BlockWalkTest, TheUnitsOfTheLastBackupAreKept) {
  for (uint64_t i = 0; i < 100; i++) write({KeyspaceId{5}, DataId{i}, 0}, "v");
  const BlockUnits before = cut(all_blocks, 8);
  for (uint64_t i = 0; i < 100; i++) write({KeyspaceId{5}, DataId{1'000 + i}, 0}, "v");
  EXPECT_EQ(cut(all_blocks, 12, before.bounds).bounds, before.bounds);
  EXPECT_NE(cut(all_blocks, 17, before.bounds).bounds, before.bounds);
  EXPECT_EQ(cut(all_blocks, 17, before.bounds).size(), 17u);
  // Of another scope, and no keys of blocks.
  const BlockInterval other{blocks_begin(KeyspaceId{6}), blocks_end(KeyspaceId{6})};
  EXPECT_EQ(cut(other, 8, before.bounds).size(), 1u);
  EXPECT_EQ(cut(all_blocks, 1, {"a", "b"}).size(), 1u);
}

// Content that did not change is in chunks that did not, though other units begin elsewhere.
TEST_F(BlockWalkTest, AChangeChangesFewChunks) {
  for (uint64_t i = 0; i < 400; i++)
    write({KeyspaceId{5}, DataId{7}, i}, random_.bytes(block_bytes_max));
  std::map<Bytes, int> digests;
  for (const EntryChunk& chunk : walk(cut(all_blocks, 3))) digests[chunk.facts.digest]++;
  EXPECT_GT(digests.size(), 10u);
  write({KeyspaceId{5}, DataId{7}, 200}, "changed");
  int added = 0;
  for (const EntryChunk& chunk : walk(cut(all_blocks, 3)))
    added += digests.contains(chunk.facts.digest) ? 0 : 1;
  EXPECT_GE(added, 1);
  EXPECT_LE(added, 2);
}

}  // namespace
}  // namespace trellis
