// File data beside the map.
#include <atomic>
#include <limits>
#include <thread>

#include "conformance/engine_fixture.h"

namespace trellis {
namespace {

constexpr DataId data{7};

class BlockConformance : public EngineConformance {
 protected:
  BlockStore& blocks() { return engine().blocks(); }
  static BlockId block(uint64_t index) { return {keyspace, data, index}; }
  Status write(uint64_t index, std::optional<uint32_t> offset, ByteView bytes) {
    const BlockWrite write{block(index), offset, bytes};
    return blocks().write({&write, 1});
  }
  std::optional<Bytes> read(BlockId id) {
    Value value;
    EXPECT_OK(blocks().read({&id, 1}, {&value, 1}));
    if (!value.found()) return std::nullopt;
    return Bytes(value.bytes());
  }
};

TEST_P(BlockConformance, WholeBlocks) {
  EXPECT_EQ(read(block(0)), std::nullopt);  // a hole
  ASSERT_OK(write(0, std::nullopt, "first"));
  EXPECT_EQ(read(block(0)), "first");
  ASSERT_OK(write(0, std::nullopt, "2"));  // the whole block: nothing of the longer one is left
  EXPECT_EQ(read(block(0)), "2");
  ASSERT_OK(write(0, std::nullopt, ""));
  EXPECT_EQ(read(block(0)), "");
}

TEST_P(BlockConformance, KeyspacesOverTheLimitAreRefused) {
  const BlockId far{KeyspaceId{keyspace_id_max + 1}, data, 0};
  const BlockWrite far_write{far, std::nullopt, "x"};
  Value value;
  EXPECT_EQ(blocks().write({&far_write, 1}).error().code, Code::invalid);
  EXPECT_EQ(blocks().read({&far, 1}, {&value, 1}).error().code, Code::invalid);
  EXPECT_EQ(blocks().remove(far.keyspace, data, 0, 1).error().code, Code::invalid);
}

TEST_P(BlockConformance, ManyBlocksInOneCall) {
  const BlockWrite writes[] = {{block(1), std::nullopt, "one"},
                               {block(300), std::nullopt, "many"},
                               {{keyspace, DataId{8}, 1}, std::nullopt, "other data"},
                               {{KeyspaceId{2}, data, 1}, std::nullopt, "other keyspace"},
                               {block(1), 1, "N"}};
  ASSERT_OK(blocks().write(writes));
  const BlockId ids[] = {block(300),
                         block(2),
                         block(1),
                         block(300),
                         {keyspace, DataId{8}, 1},
                         {KeyspaceId{2}, data, 1}};
  const char* const expected[] = {"many", nullptr, "oNe", "many", "other data", "other keyspace"};
  Value values[6];
  ASSERT_OK(blocks().read(ids, values));
  for (size_t i = 0; i < 6; i++) {
    ASSERT_EQ(values[i].found(), expected[i] != nullptr) << i;
    if (values[i].found()) {
      EXPECT_EQ(values[i].bytes(), expected[i]) << i;
    }
  }
  ASSERT_OK(blocks().write({}));
  ASSERT_OK(blocks().read({}, {}));
}

TEST_P(BlockConformance, Patches) {
  ASSERT_OK(write(0, std::nullopt, "0123456789"));
  ASSERT_OK(write(0, 3, "abc"));
  EXPECT_EQ(read(block(0)), "012abc6789");  // what is behind the patch stays
  ASSERT_OK(write(0, 8, "XYZ"));
  EXPECT_EQ(read(block(0)), "012abc67XYZ");
  ASSERT_OK(write(0, 13, "!"));
  EXPECT_EQ(read(block(0)), Bytes("012abc67XYZ\0\0!", 14));  // zeros up to the patch
  ASSERT_OK(write(1, 2, "hole"));
  EXPECT_EQ(read(block(1)), Bytes("\0\0hole", 6));  // a hole counts as zeros
  ASSERT_OK(write(0, std::nullopt, "whole"));
  EXPECT_EQ(read(block(0)), "whole");
}

TEST_P(BlockConformance, RemovesARange) {
  for (uint64_t index = 0; index < 6; index++) ASSERT_OK(write(index, std::nullopt, "v"));
  const BlockWrite neighbours[] = {{{keyspace, DataId{6}, 3}, std::nullopt, "v"},
                                   {{keyspace, DataId{8}, 3}, std::nullopt, "v"},
                                   {{KeyspaceId{0}, data, 3}, std::nullopt, "v"},
                                   {{KeyspaceId{2}, data, 3}, std::nullopt, "v"}};
  ASSERT_OK(blocks().write(neighbours));
  ASSERT_OK(blocks().remove(keyspace, data, 2, 4));
  for (uint64_t index = 0; index < 6; index++) {
    EXPECT_EQ(read(block(index)).has_value(), index < 2 || index >= 4) << index;
  }
  ASSERT_OK(blocks().remove(keyspace, data, 0, std::numeric_limits<uint64_t>::max()));
  EXPECT_EQ(read(block(5)), std::nullopt);
  for (const BlockWrite& neighbour : neighbours) EXPECT_EQ(read(neighbour.block), "v");
  ASSERT_OK(write(2, 1, "x"));  // as if it never was
  EXPECT_EQ(read(block(2)), Bytes("\0x", 2));
}

TEST_P(BlockConformance, TheLastBlockAndItsLimit) {
  const Bytes full(block_bytes_max, 'f');
  ASSERT_OK(write(0, std::nullopt, full));
  ASSERT_OK(write(0, static_cast<uint32_t>(block_bytes_max - 1), "e"));
  EXPECT_CODE(write(1, std::nullopt, full + "f"), Code::too_large);
  EXPECT_CODE(write(1, static_cast<uint32_t>(block_bytes_max), "f"), Code::too_large);
  EXPECT_CODE(write(1, std::numeric_limits<uint32_t>::max(), full), Code::too_large);
  EXPECT_EQ(read(block(1)), std::nullopt);
  EXPECT_EQ(read(block(0))->size(), block_bytes_max);
  EXPECT_EQ(read(block(0))->back(), 'e');
  // One that is too large takes the whole call with it.
  const BlockWrite writes[] = {{block(2), std::nullopt, "good"}, {block(3), 1, full}};
  EXPECT_CODE(blocks().write(writes), Code::too_large);
  EXPECT_EQ(read(block(2)), std::nullopt);
}

TEST_P(BlockConformance, BlocksAreNoKeysOfTheMap) {
  ASSERT_OK(write(0, std::nullopt, "v"));
  EXPECT_EQ(scan_all(engine(), {}), Entries{});
  Commit all;
  all.writes.remove_range(first_key, "");
  ASSERT_OK(commit(engine(), all));
  EXPECT_EQ(read(block(0)), "v");
}

TEST_P(BlockConformance, ConcurrentPatchesToDisjointPartsAllSurvive) {
  constexpr uint32_t threads_count = 4;
  constexpr uint32_t part_bytes = 256;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < threads_count; t++) {
    threads.emplace_back([&, t] {
      BlockStore& mine = t % 2 == 0 ? engine().blocks() : other().blocks();
      for (uint32_t i = 0; i < part_bytes; i++) {
        const Bytes letter(1, static_cast<char>('a' + t));
        const BlockWrite patch{block(0), t * part_bytes + i, letter};
        EXPECT_OK(mine.write({&patch, 1}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Bytes expected;
  for (uint32_t t = 0; t < threads_count; t++) {
    expected.append(part_bytes, static_cast<char>('a' + t));
  }
  EXPECT_EQ(read(block(0)), expected);
}

// A block is replaced as a whole: nobody reads the head of one write with the tail of another.
TEST_P(BlockConformance, EachBlockChangesAtomically) {
  constexpr size_t states_wanted = 100;
  std::atomic<bool> enough = false;
  ASSERT_OK(write(0, std::nullopt, Bytes(1000, 'a')));
  std::thread writer([&] {
    for (uint64_t i = 1; !enough; i++) {
      const Bytes bytes(1000, static_cast<char>('a' + i % 26));
      const BlockWrite whole{block(0), std::nullopt, bytes};
      EXPECT_OK(other().blocks().write({&whole, 1}));
    }
  });
  size_t states = 0;
  char last = 0;
  while (states < states_wanted && !HasFailure()) {
    const std::optional<Bytes> seen = read(block(0));
    EXPECT_TRUE(seen.has_value());
    if (!seen.has_value()) break;
    EXPECT_EQ(*seen, Bytes(1000, seen->front()));
    if (seen->front() != last) states++;
    last = seen->front();
  }
  enough = true;
  writer.join();
}

ON_ALL_ENGINES(BlockConformance);

}  // namespace
}  // namespace trellis
