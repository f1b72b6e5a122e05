#include "rocksdb_engine/unseen_tables.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <map>
#include <memory>

#include "base/random.h"
#include "rocksdb_engine/read_epochs.h"
#include "rocksdb_engine/rocksdb_status.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr uint64_t keys = 4'000;
constexpr uint64_t keys_in_table = 100;  // about
constexpr size_t value_bytes = 200;

Bytes key_of(uint64_t i) { return fmt::format("{:06}", i); }

class UnseenTables : public testing::Test {
 protected:
  UnseenTables() {
    options_.env = memory_.get();
    options_.create_if_missing = true;
    options_.disable_auto_compactions = true;
    options_.level_compaction_dynamic_level_bytes = true;
    options_.compression = rocksdb::kNoCompression;
    options_.target_file_size_base = keys_in_table * value_bytes;
    rocksdb::DB* db = nullptr;
    EXPECT_TRUE(rocksdb::DB::Open(options_, "/store", &db).ok());
    db_.reset(db);
  }

  void put(uint64_t i, ByteView value) {
    EXPECT_TRUE(db_->Put({}, key_of(i), to_slice(value)).ok());
    model_[key_of(i)] = value;
  }
  void remove(uint64_t i) {
    EXPECT_TRUE(db_->Delete({}, key_of(i)).ok());
    model_.erase(key_of(i));
  }
  void remove_range(uint64_t begin, uint64_t end) {
    EXPECT_TRUE(db_->DeleteRange({}, db_->DefaultColumnFamily(), key_of(begin), key_of(end)).ok());
    model_.erase(model_.lower_bound(key_of(begin)), model_.lower_bound(key_of(end)));
  }
  void put_all(Random& random) {
    for (uint64_t i = 0; i < keys; i++) put(i, random.bytes(value_bytes));
  }
  void step(Random& random, uint64_t at, uint64_t end) {
    switch (random.below(6)) {
      case 0:
      case 1: return remove_range(at, end);
      case 2:
        for (uint64_t i = at; i < end; i++) remove(i);
        return;
      case 3: return random.one_in(3) ? flush() : void();
      case 4: return random.one_in(8) ? compact() : void();
      default:
        for (uint64_t i = at; i < end; i++) put(i, random.bytes(value_bytes));
    }
  }
  void flush() { ASSERT_TRUE(db_->Flush({}).ok()); }
  void compact() {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    ASSERT_TRUE(db_->CompactRange(options, nullptr, nullptr).ok());
  }

  std::vector<std::string> unseen(uint64_t begin, uint64_t end) {
    auto names = unseen_tables(*db_, *db_->DefaultColumnFamily(), epochs_, key_of(begin),
                               key_of(end), nullptr);
    EXPECT_TRUE(names.has_value());
    return std::move(*names);
  }
  size_t tables() {
    rocksdb::ColumnFamilyMetaData all;
    db_->GetColumnFamilyMetaData(&all);
    return all.file_count;
  }
  void expect_model() {
    std::map<Bytes, Bytes> stored;
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator({}));
    for (at->SeekToFirst(); at->Valid(); at->Next())
      stored.emplace(to_view(at->key()), to_view(at->value()));
    EXPECT_TRUE(at->status().ok());
    EXPECT_TRUE(stored == model_) << stored.size() << " instead of " << model_.size();
  }

  const std::unique_ptr<rocksdb::Env> memory_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  ReadEpochs epochs_;
  std::map<Bytes, Bytes> model_;
};

TEST_F(UnseenTables, AreThoseOfWhichAllWasRemoved) {
  Random random(3);
  put_all(random);
  compact();
  const size_t all = tables();
  ASSERT_GE(all, 20u);
  EXPECT_TRUE(unseen(0, keys).empty());
  remove_range(keys / 4, keys * 3 / 4);
  EXPECT_TRUE(unseen(0, keys / 4).empty());
  const auto half = unseen(0, keys);
  EXPECT_GE(half.size(), all / 2 - 2);
  EXPECT_LE(half.size(), all / 2 + 2);
  EXPECT_EQ(unseen(keys / 4, keys * 3 / 4), half);
  EXPECT_LE(unseen(keys / 4, keys / 2).size(), half.size() / 2 + 1);
  // One that is back is enough.
  put(keys / 2, "back");
  EXPECT_EQ(unseen(0, keys).size(), half.size() - 1);
  ASSERT_TRUE(drop_tables(*db_, unseen(0, keys)).has_value());
  EXPECT_EQ(tables(), all - half.size() + 1);
  expect_model();
  // What is not there any more is none of them.
  EXPECT_TRUE(drop_tables(*db_, half).has_value());
  EXPECT_EQ(tables(), all - half.size() + 1 - 1) << "the one with what is back";
  expect_model();
}

// Older versions below a table would come to light: only the lowest level has those that may go.
TEST_F(UnseenTables, AreOfTheLowestLevel) {
  Random random(4);
  put_all(random);
  compact();
  const size_t all = tables();
  remove_range(0, keys);
  ASSERT_TRUE(db_->Flush({}).ok());
  ASSERT_EQ(tables(), all + 1);
  const auto below = unseen(0, keys);
  EXPECT_EQ(below.size(), all);
  ASSERT_TRUE(drop_tables(*db_, below).has_value());
  EXPECT_EQ(tables(), 1u);
  expect_model();
  // In level 0 is what hides nothing any more; it has no order in which one could go.
  EXPECT_TRUE(unseen(0, keys).empty());
}

TEST_F(UnseenTables, NothingThatIsSeenGoes) {
  Random random(test_seed(20261119));
  size_t dropped = 0;
  for (uint64_t round = 0; round < test_rounds(30) && !HasFailure(); round++) {
    SCOPED_TRACE(round);
    for (uint64_t steps = 1 + random.below(40); steps > 0; steps--) {
      const uint64_t at = random.below(keys);
      const uint64_t end = std::min(keys, at + 1 + random.below(random.one_in(4) ? keys : 50));
      step(random, at, end);
    }
    const uint64_t begin = random.below(keys);
    const auto names = unseen(begin, begin + random.below(keys));
    // What is written after it was looked makes no difference.
    if (random.one_in(2)) put(random.below(keys), "new");
    if (random.one_in(4)) compact();
    ASSERT_TRUE(drop_tables(*db_, names).has_value());
    dropped += names.size();
    expect_model();
  }
  EXPECT_TRUE(dropped > 0 || test_scale() == "quick");
}

}  // namespace
}  // namespace trellis
