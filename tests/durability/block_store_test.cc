// What the conformance suite cannot see of blocks: compactions, damage, and what is stored.
#include <gtest/gtest.h>
#include <sys/resource.h>

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

// Each start makes a table of what the log has, and opens only some of those that there are.
TEST_F(RocksdbBlocks, ReadsTablesThatAreNotOpenYet) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few{std::min<rlim_t>(limit.rlim_cur, 1'024), limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  RocksdbOptions many_tables = options();
  many_tables.compacts = false;
  std::vector<BlockId> blocks;
  for (uint64_t i = 0; i < 40; i++) {
    blocks.push_back(block(i));
    const auto engine = open_rocksdb_engine(many_tables);
    ASSERT_TRUE(engine.has_value());
    ASSERT_TRUE(write(**engine, i, std::to_string(i)).has_value());
    ASSERT_TRUE(write(**engine, i / 2, "!", 5).has_value());
  }
  const auto engine = open_rocksdb_engine(many_tables);
  ASSERT_TRUE(engine.has_value());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  for (uint64_t i = 0; i < 40; i++) {
    const Status status =
        (*engine)->blocks().read_each({&blocks[i], 1}, [&](size_t, const Value& value) {
          Bytes expected = std::to_string(i);
          if (i < 20) expected.resize(5), expected += '!';
          EXPECT_EQ(Bytes(value.bytes()), expected);
        });
    EXPECT_TRUE(status.has_value()) << to_string(status.error());
  }
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

TEST_F(RocksdbBlocks, OnADiskThatIsNearlyFullOnlyWhatMakesRoomIsDone) {
  constexpr uint64_t mib = 1 << 20;
  RocksdbOptions with_reserve = options();
  with_reserve.disk_reserve_bytes = 8 * mib;
  with_reserve.room_period = std::chrono::milliseconds(1);
  auto engine = open_rocksdb_engine(with_reserve);
  ASSERT_TRUE(engine.has_value());
  for (uint64_t i = 0; i < 40; i++) ASSERT_TRUE(write(**engine, i, "x").has_value());
  uint64_t free_bytes = 0;
  ASSERT_TRUE(env_->GetFreeSpace("/", &free_bytes).ok());
  files_->set_capacity((uint64_t{1} << 40) - free_bytes + 6 * mib);
  SystemClock clock;
  for (int i = 0; i < 30'000 && (*engine)->room().has_value(); i++) clock.pause_us(1'000);
  EXPECT_EQ(write(**engine, 1, "y").error().code, Code::no_space);
  EXPECT_EQ(write(**engine, 1, "y", 0).error().code, Code::no_space);
  EXPECT_EQ(read(**engine, 1), "x");
  EXPECT_TRUE((*engine)->blocks().remove(KeyspaceId{5}, DataId{9}, 0, 3).has_value());
  EXPECT_TRUE((*engine)->blocks().remove(KeyspaceId{5}, DataId{9}, 3, 30).has_value());
  EXPECT_EQ(read(**engine, 1), "(hole)");
  EXPECT_TRUE((*engine)->blocks().remove_all(KeyspaceId{5}, 1).value_or(false));
  EXPECT_EQ(read(**engine, 35), "(hole)");
}

// What lies beside others in a table, in several versions, and what is not in any yet.
TEST_F(RocksdbBlocks, AKeyspaceGoesAtOnceWithAllItsVersions) {
  auto engine = open();
  Random random(11);
  constexpr uint64_t count = 100;
  const auto write_all = [&](uint32_t keyspace, uint64_t every) {
    for (uint64_t i = 0; i < count; i += every) {
      const Bytes bytes = random.bytes(block_bytes_max / 2);
      const BlockWrite one{{KeyspaceId{keyspace}, DataId{9}, i}, std::nullopt, bytes};
      ASSERT_TRUE(engine->blocks().write({&one, 1}).has_value());
    }
  };
  const auto table_bytes = [&] {
    uint64_t bytes = 0;
    for (const std::string& file : files_ending(".sst")) bytes += files_->read_file(file).size();
    return bytes;
  };
  const auto listed = [&](uint32_t keyspace) {
    const KeyspaceId of{keyspace};
    const auto page = engine->blocks().list(blocks_begin(of), blocks_end(of), 2 * count);
    EXPECT_TRUE(page.has_value());
    return page ? page->blocks.size() : 0;
  };
  for (const uint32_t keyspace : {4, 5, 6}) write_all(keyspace, 1);
  ASSERT_TRUE(engine->compact().has_value());
  write_all(5, 3);  // above what is compacted
  ASSERT_TRUE(engine->compact().has_value());
  write_all(5, 20);
  const uint64_t before = table_bytes();
  const auto gone = engine->blocks().remove_all(KeyspaceId{5}, 1);
  ASSERT_TRUE(gone.has_value() && *gone);
  EXPECT_EQ(listed(5), 0u);
  engine.reset();
  engine = open();
  EXPECT_EQ(listed(5), 0u);
  ASSERT_TRUE(engine->reclaim({{"x", "y"}}, nullptr).has_value());
  EXPECT_LT(table_bytes(), before * 7 / 10);
  EXPECT_EQ(listed(4), count);
  EXPECT_EQ(listed(5), 0u);
  EXPECT_EQ(listed(6), count);
}

// Tables go from the disk at once: the commit that gave the keyspace up must not come later.
TEST_F(RocksdbBlocks, NoPowerCutRemovesAKeyspaceThatIsStillThere) {
  Random random(1);
  auto engine = open();
  for (int round = 0; round < 5; round++) {
    for (uint64_t i = 0; i < 50; i++)
      ASSERT_TRUE(write(*engine, i, random.bytes(block_bytes_max)).has_value());
    ASSERT_TRUE(engine->compact().has_value());
    const Bytes key = "given up " + std::to_string(round);
    ASSERT_TRUE(put(*engine, key, "yes", Durability::off).has_value());
    ASSERT_TRUE(engine->blocks().remove_all(KeyspaceId{5}, 1).has_value());
    files_->cut_power(random);
    engine.reset();
    files_->restore_power();
    engine = open();
    ASSERT_EQ(get(*engine, key), "yes");
  }
}

}  // namespace
}  // namespace trellis
