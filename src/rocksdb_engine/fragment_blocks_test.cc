#include "rocksdb_engine/fragment_blocks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include <memory>

#include "codec/redis_keys.h"
#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {
namespace {

constexpr size_t count = 90;

class FragmentBlocksTest : public ::testing::Test {
 protected:
  FragmentBlocksTest() {
    rocksdb::BlockBasedTableOptions table;
    table.flush_block_policy_factory = make_fragment_blocks();
    options_.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    options_.env = memory_.get();
    options_.compression = rocksdb::kNoCompression;
  }

  static Bytes sub_key(ByteView sub) { return encode(RedisSubKey{{5}, {{"0", "bits", 7}, sub}}); }

  uint64_t blocks_of(const std::vector<std::pair<Bytes, Bytes>>& entries) {
    const std::string path = "/table";
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(options_), options_);
    EXPECT_TRUE(writer.Open(path).ok());
    for (const auto& [key, value] : entries)
      EXPECT_TRUE(writer.Put(to_slice(key), to_slice(value)).ok());
    EXPECT_TRUE(writer.Finish().ok());
    rocksdb::SstFileReader reader(options_);
    EXPECT_TRUE(reader.Open(path).ok());
    return reader.GetTableProperties()->num_data_blocks;
  }

  const std::unique_ptr<rocksdb::Env> memory_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  rocksdb::Options options_;
};

TEST_F(FragmentBlocksTest, OfFragmentsHaveFifteen) {
  std::vector<std::pair<Bytes, Bytes>> entries;
  for (size_t i = 0; i < count; i++)
    entries.emplace_back(sub_key(std::to_string(1'000'000 + i)), Bytes(1024, 'b'));
  EXPECT_EQ(blocks_of(entries), count / fragments_in_block);
  // What comes before and behind has blocks as always.
  entries.emplace(entries.begin(), sub_key("0"), Bytes(5000, 'x'));
  entries.emplace_back(sub_key("2"), Bytes(5000, 'y'));
  entries.emplace_back(sub_key("3"), Bytes(5000, 'z'));
  EXPECT_EQ(blocks_of(entries), count / fragments_in_block + 3);
}

TEST_F(FragmentBlocksTest, OfOthersAreAsSmallAsRocksdbMakesThem) {
  std::vector<std::pair<Bytes, Bytes>> fields, larger, strings;
  for (size_t i = 0; i < count; i++) {
    fields.emplace_back(sub_key(fmt::format("f{:03}", i)), Bytes(1024, 'b'));
    larger.emplace_back(sub_key(std::to_string(1'000'000 + i)), Bytes(1025, 'b'));
    strings.emplace_back(encode(RedisMetadataKey{{5}, {"0", std::to_string(100 + i)}}),
                         Bytes(1024, 'b'));
  }
  for (const auto& entries : {fields, larger, strings}) EXPECT_GE(blocks_of(entries), count / 4);
}

}  // namespace
}  // namespace trellis
