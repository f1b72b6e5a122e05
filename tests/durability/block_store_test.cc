// What the conformance suite cannot see of blocks: compactions, damage, and what is stored.
#include <gtest/gtest.h>

#include "store_fixture.h"

namespace trellis {
namespace {

class RocksdbBlocks : public StoreFixture {
 protected:
  static BlockId block(uint64_t index) { return {KeyspaceId{5}, DataId{9}, index}; }
  static Status write(Engine& engine, uint64_t index, ByteView bytes,
                      std::optional<uint32_t> offset = std::nullopt) {
    const BlockWrite one{block(index), offset, bytes};
    return engine.blocks().write({&one, 1});
  }
  static Bytes read(Engine& engine, uint64_t index) {
    const BlockId id = block(index);
    Value value;
    const Status status = engine.blocks().read({&id, 1}, {&value, 1});
    if (!status.has_value()) return to_string(status.error());
    return value.found() ? Bytes(value.bytes()) : "(hole)";
  }
};

TEST_F(RocksdbBlocks, PatchesAreTheSameBeforeAndAfterCompaction) {
  auto engine = open();
  Random random(3);
  std::vector<Bytes> model(4);
  const auto check = [&] {
    for (size_t i = 0; i < model.size(); i++) EXPECT_EQ(read(*engine, i), model[i]) << i;
  };
  for (Bytes& bytes : model) bytes = "(hole)";
  check();
  for (int step = 0; step < 300; step++) {
    const size_t i = random.below(model.size());
    const Bytes data = random.bytes(random.below(3000));
    if (random.one_in(5)) {
      ASSERT_TRUE(write(*engine, i, data).has_value());
      model[i] = data;
    } else {
      const auto offset = static_cast<uint32_t>(random.below(block_bytes_max - data.size() + 1));
      ASSERT_TRUE(write(*engine, i, data, offset).has_value());
      if (model[i] == "(hole)") model[i].clear();
      model[i].resize(std::max(model[i].size(), offset + data.size()), '\0');
      model[i].replace(offset, data.size(), data);
    }
    if (random.one_in(40)) {
      ASSERT_TRUE(engine->compact().has_value());
    }
    if (random.one_in(80)) {
      engine.reset();
      engine = open();
    }
  }
  check();
  ASSERT_TRUE(engine->compact().has_value());
  check();
}

TEST_F(RocksdbBlocks, RemovesFewAndMany) {
  auto engine = open();
  for (uint64_t i = 0; i < 100; i++) ASSERT_TRUE(write(*engine, i, "x").has_value());
  ASSERT_TRUE(engine->blocks().remove(KeyspaceId{5}, DataId{9}, 10, 13).has_value());
  ASSERT_TRUE(engine->blocks().remove(KeyspaceId{5}, DataId{9}, 40, 100).has_value());
  ASSERT_TRUE(engine->blocks().remove(KeyspaceId{5}, DataId{9}, 5, 5).has_value());
  for (uint64_t i = 0; i < 100; i++) {
    const bool removed = (i >= 10 && i < 13) || i >= 40;
    EXPECT_EQ(read(*engine, i), removed ? "(hole)" : "x") << i;
  }
  // A patch of a removed block starts from zeros.
  ASSERT_TRUE(write(*engine, 11, "y", 2).has_value());
  EXPECT_EQ(read(*engine, 11), Bytes("\0\0y", 3));
}

TEST_F(RocksdbBlocks, RefusesWhatIsTooLarge) {
  auto engine = open();
  const Bytes whole(block_bytes_max, 'w');
  EXPECT_TRUE(write(*engine, 0, whole).has_value());
  EXPECT_EQ(write(*engine, 0, whole + "x").error().code, Code::too_large);
  EXPECT_EQ(write(*engine, 0, "xx", block_bytes_max - 1).error().code, Code::too_large);
  EXPECT_EQ(read(*engine, 0), whole);
  const BlockWrite outside{{KeyspaceId{1u << 24}, DataId{1}, 0}, std::nullopt, "x"};
  EXPECT_EQ(engine->blocks().write({&outside, 1}).error().code, Code::invalid);
}

}  // namespace
}  // namespace trellis
