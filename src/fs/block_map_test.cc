#include "fs/block_map.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "fs/content_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

class BlockMapTest : public FsFixture {
 protected:
  static constexpr InodeId file{100};

  void change(FunctionRef<Status(BlockMap&)> edit) {
    const Bytes key = encode(FsInodeKey{id_, file});
    const auto run = [&](CountedView& view) -> Status {
      BlockMap map(view, id_, file);
      TRY(edit(map));
      map.store();
      return {};
    };
    ASSERT_OK(tenant_->write(writer, Model::fs, Scope::in(id_).exclusive(key), run));
  }
  std::vector<FileExtent> stored() {
    std::vector<FileExtent> found;
    EXPECT_OK(memory_.scan({.begin = encode(FsExtentKey{id_, file, 0}),
                            .end = encode(FsExtentKey{id_, file, UINT64_MAX})},
                           [&](ByteView key, ByteView value) {
                             found.push_back(*decode_extent(file, key, value));
                             return Visit::go_on;
                           }));
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(Fs, BlockMapTest, testing::Values(Way::latched, Way::expecting), way_name);

using Extents = std::vector<FileExtent>;
constexpr DataId a{7};
constexpr DataId b{8};

TEST_P(BlockMapTest, NeighboursBecomeOne) {
  change([](BlockMap& map) -> Status {
    TRY(map.load(10, 20));
    map.map({10, a, 0, 2});
    map.map({14, a, 4, 2});
    map.map({12, a, 2, 2});
    map.map({16, b, 6, 1});
    map.map({17, a, 7, 1});
    return {};
  });
  EXPECT_EQ(stored(), (Extents{{10, a, 0, 6}, {16, b, 6, 1}, {17, a, 7, 1}}));
  change([](BlockMap& map) -> Status {  // those that were there before, too
    TRY(map.load(16, 17));
    map.unmap(16, 17, [](const FileExtent& was) { EXPECT_EQ(was, (FileExtent{16, b, 6, 1})); });
    map.map({16, a, 6, 1});
    return {};
  });
  EXPECT_EQ(stored(), (Extents{{10, a, 0, 8}}));
}

TEST_P(BlockMapTest, NothingIsInAnEmptyInterval) {
  change([](BlockMap& map) -> Status {
    TRY(map.load(0, 20));
    map.map({0, a, 0, 20});
    map.unmap(7, 7, [](const FileExtent&) { FAIL(); });
    EXPECT_TRUE(map.mapped(7, 7).empty());
    return {};
  });
  EXPECT_EQ(stored(), (Extents{{0, a, 0, 20}}));
}

TEST_P(BlockMapTest, LoadsNoMoreThanItMust) {
  change([](BlockMap& map) -> Status {
    TRY(map.load(0, 100));
    for (uint64_t i = 0; i < 20; i++) map.map({2 * i, a, 1'000 - 2 * i, 1});
    return {};
  });
  change([](BlockMap& map) -> Status {
    TRY_ASSIGN(const uint64_t from, map.load(0, file_blocks_max, 5));
    EXPECT_EQ(from, 30u);
    EXPECT_EQ(map.mapped(from, file_blocks_max).size(), 5u);
    return {};
  });
}

// Against a map of single blocks.
TEST_P(BlockMapTest, RandomChanges) {
  Random random(test_seed(11));
  std::map<uint64_t, std::pair<DataId, uint64_t>> model;
  for (int round = 0; round < 300; round++) {
    const uint64_t begin = random.below(60);
    const uint64_t end = begin + 1 + random.below(12);
    change([&](BlockMap& map) -> Status {
      auto next = model;
      TRY(map.load(begin, random.one_in(4) ? file_blocks_max : end));
      std::map<uint64_t, std::pair<DataId, uint64_t>> freed;
      map.unmap(begin, end, [&](const FileExtent& was) {
        for (uint64_t i = 0; i < was.blocks; i++) freed[was.block + i] = {was.data, was.first + i};
      });
      const auto from = next.lower_bound(begin);
      const auto to = next.lower_bound(end);
      EXPECT_EQ(freed, (std::map<uint64_t, std::pair<DataId, uint64_t>>(from, to)));
      next.erase(from, to);
      if (random.one_in(2)) {
        const DataId data = random.one_in(2) ? a : b;
        const uint64_t first = random.one_in(2) ? begin : random.below(100);
        map.map({begin, data, first, end - begin});
        for (uint64_t i = begin; i < end; i++) next[i] = {data, first + (i - begin)};
      }
      for (uint64_t i = begin; i < end; i++) {
        const auto at = map.at(i);
        EXPECT_EQ(at.has_value(), next.contains(i));
        if (at) {
          EXPECT_EQ(std::pair(at->data, at->first), next[i]);
        }
      }
      model = next;
      return {};
    });
    std::map<uint64_t, std::pair<DataId, uint64_t>> found;
    const Extents extents = stored();
    for (size_t i = 0; i < extents.size(); i++) {
      for (uint64_t j = 0; j < extents[i].blocks; j++)
        found[extents[i].block + j] = {extents[i].data, extents[i].first + j};
      if (i == 0) continue;
      const FileExtent& before = extents[i - 1];
      EXPECT_FALSE(before.end() == extents[i].block && before.data == extents[i].data &&
                   before.first + before.blocks == extents[i].first);
    }
    ASSERT_EQ(found, model);
  }
  EXPECT_EQ(*stored_figures(memory_, id_), *recount(memory_, id_));
}

}  // namespace
}  // namespace trellis
