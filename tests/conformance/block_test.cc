// File data beside the map.
#include <atomic>
#include <limits>
#include <map>
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
  // Page by page.
  std::vector<StoredBlock> list(BlockId first, BlockId end, size_t blocks_max) {
    std::vector<StoredBlock> all;
    for (std::optional<BlockId> from = first; from;) {
      const auto page = blocks().list(*from, end, blocks_max);
      EXPECT_OK(page);
      if (!page) break;
      EXPECT_LE(page->blocks.size(), blocks_max);
      all.insert(all.end(), page->blocks.begin(), page->blocks.end());
      if (page->resume) {
        EXPECT_GT(*page->resume, *from);
        EXPECT_TRUE(all.empty() || *page->resume > all.back().block);
      }
      from = page->resume;
    }
    return all;
  }
  std::vector<StoredBlock> list(KeyspaceId of, size_t blocks_max = 3) {
    return list(blocks_begin(of), blocks_end(of), blocks_max);
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
  EXPECT_EQ(blocks().list(far, blocks_end(far.keyspace), 1).error().code, Code::invalid);
  EXPECT_EQ(blocks().remove_all(far.keyspace, 1).error().code, Code::invalid);
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

TEST_P(BlockConformance, ListsWhatIsStoredInOrder) {
  EXPECT_EQ(list(keyspace), std::vector<StoredBlock>());
  constexpr uint64_t last_index = std::numeric_limits<uint64_t>::max();
  constexpr DataId last_data{last_index};
  constexpr KeyspaceId next{keyspace.value + 1};
  constexpr KeyspaceId last{keyspace_id_max};
  const Bytes full(block_bytes_max, 'f');
  const BlockWrite writes[] = {{{last, last_data, last_index}, std::nullopt, "ends"},
                               {{next, DataId{1}, 0}, std::nullopt, ""},
                               {block(300), std::nullopt, full},
                               {block(9), 10, "patched"},
                               {block(10), std::nullopt, "v"},
                               {{keyspace, DataId{70}, 9}, std::nullopt, "12"},
                               {block(10), 1, "w"},
                               {block(11), std::nullopt, "removed"}};
  ASSERT_OK(blocks().write(writes));
  ASSERT_OK(blocks().remove(keyspace, data, 11, 12));
  const std::vector<StoredBlock> all = {{block(9), 17},
                                        {block(10), 2},
                                        {block(300), block_bytes_max},
                                        {{keyspace, DataId{70}, 9}, 2},
                                        {{next, DataId{1}, 0}, 0},
                                        {{last, last_data, last_index}, 4}};
  for (const size_t blocks_max : {1, 2, 4, 100}) {
    EXPECT_EQ(list(blocks_begin(KeyspaceId{0}), blocks_end(last), blocks_max), all) << blocks_max;
    EXPECT_EQ(list(keyspace, blocks_max), std::vector(all.begin(), all.begin() + 4));
    EXPECT_EQ(list(last, blocks_max), std::vector(all.begin() + 5, all.end()));
    EXPECT_EQ(list(block(0), block(last_index), blocks_max),
              std::vector(all.begin(), all.begin() + 3));
    EXPECT_EQ(list(block(10), block(300), blocks_max), std::vector(1, all[1]));
    EXPECT_EQ(list(block(11), {next, DataId{1}, 1}, blocks_max),
              std::vector(all.begin() + 2, all.begin() + 5));
  }
  EXPECT_EQ(list(block(300), block(300), 5), std::vector<StoredBlock>());
  EXPECT_EQ(list(block(301), block(9), 5), std::vector<StoredBlock>());
}

TEST_P(BlockConformance, RemovesAKeyspaceAndNothingElse) {
  std::vector<BlockWrite> writes;
  for (const uint32_t owner : {0u, keyspace.value, keyspace.value + 1, keyspace_id_max})
    for (uint64_t i = 0; i < 7; i++)
      writes.push_back({{KeyspaceId{owner}, DataId{i % 3}, i}, std::nullopt, "v"});
  for (const KeyspaceId gone : {keyspace, KeyspaceId{keyspace_id_max}}) {
    ASSERT_OK(blocks().write(writes));
    int calls = 0;
    for (bool is_all = false; !is_all && calls < 10; calls++) {
      const auto removed = blocks().remove_all(gone, 3);
      ASSERT_OK(removed);
      is_all = *removed;
      EXPECT_TRUE(!is_all || list(gone).empty());
    }
    EXPECT_LE(calls, 3);
    for (const BlockWrite& write : writes)
      EXPECT_EQ(read(write.block).has_value(), write.block.keyspace != gone);
    ASSERT_OK(blocks().remove_all(gone, 1));  // there is nothing
  }
  ASSERT_OK(write(2, 1, "x"));  // as if it never was
  EXPECT_EQ(read(block(2)), Bytes("\0x", 2));
}

TEST_P(BlockConformance, ListsAsAModelDoes) {
  Random random(test_seed(20));
  std::map<BlockId, size_t> model;
  const auto some_block = [&] {
    return BlockId{KeyspaceId{static_cast<uint32_t>(random.below(3))}, DataId{random.below(3)},
                   random.below(20)};
  };
  for (int step = 0; step < 300; step++) {
    const BlockId first = some_block();
    if (random.one_in(4)) {
      const uint64_t end = first.index + random.below(20);
      ASSERT_OK(blocks().remove(first.keyspace, first.data, first.index, end));
      model.erase(model.lower_bound(first), model.lower_bound({first.keyspace, first.data, end}));
    } else if (random.one_in(50)) {
      while (!blocks().remove_all(first.keyspace, 5).value_or(true)) continue;
      model.erase(model.lower_bound(blocks_begin(first.keyspace)),
                  model.lower_bound(blocks_end(first.keyspace)));
    } else if (random.one_in(3)) {
      const BlockId end = some_block();
      std::vector<StoredBlock> expected;
      for (auto at = model.lower_bound(first); at != model.end() && at->first < end; ++at)
        expected.push_back({at->first, at->second});
      ASSERT_EQ(list(first, end, 1 + random.below(9)), expected) << "step " << step;
    } else {
      const Bytes bytes = random.bytes(random.below(50));
      const bool is_patch = random.one_in(2);
      const auto offset = static_cast<uint32_t>(random.below(30));
      const BlockWrite write{first, is_patch ? std::optional(offset) : std::nullopt, bytes};
      ASSERT_OK(blocks().write({&write, 1}));
      size_t& size = model[first];
      size = is_patch ? std::max(size, offset + bytes.size()) : bytes.size();
    }
  }
}

ON_ALL_ENGINES(BlockConformance);

}  // namespace
}  // namespace trellis
