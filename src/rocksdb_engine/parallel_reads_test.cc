#include "rocksdb_engine/parallel_reads.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

namespace trellis {
namespace {

constexpr uint64_t always = 0;  // every read counts as slow

class ParallelReadsTest : public testing::TestWithParam<uint64_t> {
 protected:
  ParallelReadsTest() {
    std::filesystem::remove_all(folder_);
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* db = nullptr;
    EXPECT_TRUE(rocksdb::DB::Open(options, folder_, &db).ok());
    db_.reset(db);
    for (size_t i = 0; i < 40; i++) names_.push_back("key" + std::to_string(i * 7 % 40));
    keys_.assign(names_.begin(), names_.end());
  }
  ~ParallelReadsTest() override {
    db_.reset();
    std::filesystem::remove_all(folder_);
  }

  void write_all(const std::string& value) {
    rocksdb::WriteBatch batch;
    for (const std::string& name : names_) ASSERT_TRUE(batch.Put(name, value).ok());
    ASSERT_TRUE(db_->Write({}, &batch).ok());
  }

  const std::string folder_ =
      testing::TempDir() + "parallel_reads_test." + std::to_string(::getpid());
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<std::string> names_;
  std::vector<ByteView> keys_;
};

TEST_P(ParallelReadsTest, EachKeyHasItsValue) {
  for (const std::string& name : names_) ASSERT_TRUE(db_->Put({}, name, "of " + name).ok());
  ASSERT_TRUE(db_->Delete({}, "key3").ok());
  ParallelReads reads(*db_, *db_->DefaultColumnFamily(), GetParam());
  for (size_t count = 0; count <= keys_.size(); count++) {
    std::vector<Value> values(count);
    ASSERT_TRUE(reads.read(std::span(keys_).first(count), values));
    for (size_t i = 0; i < count; i++) {
      ASSERT_EQ(values[i].found(), names_[i] != "key3") << names_[i];
      if (!values[i].found()) continue;
      ASSERT_EQ(values[i].bytes(), "of " + names_[i]);
    }
  }
}

TEST_P(ParallelReadsTest, AllAreOfOneInstant) {
  write_all("first");
  ParallelReads reads(*db_, *db_->DefaultColumnFamily(), GetParam());
  std::atomic<bool> ends = false;
  std::thread writer([&] {
    for (uint64_t i = 0; !ends; i++) write_all(std::to_string(i));
  });
  std::vector<std::thread> readers;
  for (int thread = 0; thread < 3; thread++)
    readers.emplace_back([&] {
      for (int round = 0; round < 300; round++) {
        std::vector<Value> values(keys_.size());
        ASSERT_TRUE(reads.read(keys_, values));
        for (const Value& value : values) ASSERT_EQ(value.bytes(), values[0].bytes());
      }
    });
  for (std::thread& reader : readers) reader.join();
  ends = true;
  writer.join();
}

INSTANTIATE_TEST_SUITE_P(Slow, ParallelReadsTest,
                         testing::Values(always, ParallelReads::slow_ns_per_key));

}  // namespace
}  // namespace trellis
