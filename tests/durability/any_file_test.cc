// The fuzzers' entry points on seeded random input: any file is read or refused.
#include <gtest/gtest.h>
#include <rocksdb/comparator.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/write_batch.h>

#include <functional>
#include <memory>
#include <vector>

#include "base/random.h"
#include "codec/counter_value.h"
#include "rocksdb_engine/merge_operators.h"
#include "rocksdb_engine/wal_check.h"
#include "support/power_loss_file_system.h"
#include "support/store_fuzz.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

void mutate(Random& random, Bytes& input) {
  const size_t at = random.below(input.size());
  switch (random.below(4)) {
    case 0: input[at] = static_cast<char>(random.next()); break;
    case 1: input.erase(at, 1); break;
    case 2: input.insert(at, 1, static_cast<char>(random.next())); break;
    default: input.resize(at); break;
  }
}

Bytes part(ByteView bytes) {
  Bytes out;
  out.push_back(static_cast<char>(bytes.size() >> 8));
  out.push_back(static_cast<char>(bytes.size()));
  return out.append(bytes);
}

Bytes sample_block(Random& random) {
  const Bytes data = random.bytes(random.below(200));
  const auto header = block_header(data);
  const auto patch = patch_header(static_cast<uint32_t>(random.below(300)), data);
  return "\x02" + part(Bytes(header.begin(), header.end()).append(data)) +
         part(Bytes(patch.begin(), patch.end()).append(data));
}

// A log as RocksDB writes it, with sync notes. Its first record has the sequence number `sequence`,
// and the next log's first the one that is left there.
Bytes sample_log(Random& random, size_t count, uint64_t& sequence) {
  std::vector<Bytes> records;
  for (size_t i = 0; i < count; i++) {
    rocksdb::WriteBatch batch;
    const Bytes value = random.bytes(random.below(random.one_in(20) ? 40'000 : 300));
    EXPECT_TRUE(batch.Put("key", value).ok());
    if (random.one_in(4)) {
      EXPECT_TRUE(batch.PutLogData(encode_sync_note(sequence - 1)).ok());
    }
    Bytes record = batch.Data();
    for (size_t at = 0; at < 8; at++) record[at] = static_cast<char>(sequence >> (8 * at));
    sequence++;
    records.push_back(record);
  }
  return wal_with_records(records);
}

Bytes sample_wal(Random& random) {
  uint64_t sequence = 1;
  const Bytes first = sample_log(random, 1 + random.below(20), sequence);
  Bytes second = sample_log(random, random.below(5), sequence);
  if (second.size() > 0xffff) second.resize(0xffff);
  return Bytes(1, '\0') + part(second) + first;
}

Bytes sample_counter(Random& random) {
  return encode_counter_value(static_cast<int64_t>(random.next()));
}

Bytes sample_marker(Random& random) {
  return random.one_in(2) ? "format 1\nengine rocksdb\n" : "made by 7\nengine rocksdb\nformat 1";
}

Bytes sample_settings(Random& random) {
  const Bytes all[] = {
      "data = \"/srv/trellis\"\ncache-bytes = \"64MiB\"\nlog-level = \"info\"\n",
      "# words\nengine = 'memory'\ndurability = \"always\" # more\n\n[other]\nx = [1, 2.5, "
      "{a=1}]\n",
      "cache-bytes = 0x7fffffff\nlog-format = \"\"\"\njson\"\"\"\ndate = 2024-06-07T01:02:03Z\n",
  };
  return all[random.below(std::size(all))];
}

constexpr Bytes (*samples[])(Random&) = {sample_block, sample_counter, sample_wal, sample_marker,
                                         sample_settings};
static_assert(std::size(samples) == std::size(store_fuzz_targets));

// Or the mutations below would start from nothing.
TEST(AnyFile, TheSampleLogsAreWhole) {
  Random random(test_seed(13));
  const auto files = std::make_shared<PowerLossFileSystem>();
  const auto env = rocksdb::NewCompositeEnv(files);
  ASSERT_TRUE(env->CreateDirIfMissing("/wal").ok());
  for (uint64_t round = 0; round < 100; round++) {
    uint64_t sequence = 1;
    files->replace_file("/wal/000007.log", sample_log(random, 20, sequence));
    files->replace_file("/wal/000009.log", sample_log(random, 5, sequence));
    const auto limits = check_wals(*env, "/wal", 0);
    ASSERT_TRUE(limits.has_value()) << to_string(limits.error());
    EXPECT_TRUE(limits->empty());
  }
}

class SecondFamily final : public rocksdb::ColumnFamilyHandle {
 public:
  const std::string& GetName() const override { return name_; }
  uint32_t GetID() const override { return 300; }  // a number of two bytes
  rocksdb::Status GetDescriptor(rocksdb::ColumnFamilyDescriptor*) override {
    return rocksdb::Status::NotSupported();
  }
  const rocksdb::Comparator* GetComparator() const override {
    return rocksdb::BytewiseComparator();
  }

 private:
  const std::string name_ = "second";
};

// RocksDB may put several batches into one record, so a note may be behind anything that we write.
TEST(AnyFile, ANoteIsFoundBehindAllWrites) {
  SecondFamily second;
  using Batch = rocksdb::WriteBatch;
  const std::vector<std::function<void(Batch&)>> writes = {
      [](Batch& batch) { EXPECT_TRUE(batch.Put("k", Bytes(1000, 'v')).ok()); },
      [](Batch& batch) { EXPECT_TRUE(batch.Delete("k").ok()); },
      [](Batch& batch) { EXPECT_TRUE(batch.Merge("k", "v").ok()); },
      [](Batch& batch) { EXPECT_TRUE(batch.DeleteRange("k", "l").ok()); },
      [](Batch& batch) { EXPECT_TRUE(batch.PutLogData("of somebody else").ok()); },
      [&](Batch& batch) { EXPECT_TRUE(batch.Put(&second, "k", Bytes(70'000, 'v')).ok()); },
      [&](Batch& batch) { EXPECT_TRUE(batch.Delete(&second, "k").ok()); },
      [&](Batch& batch) { EXPECT_TRUE(batch.Merge(&second, "k", "").ok()); },
      [&](Batch& batch) { EXPECT_TRUE(batch.DeleteRange(&second, "k", "l").ok()); },
  };
  const auto files = std::make_shared<PowerLossFileSystem>();
  const auto env = rocksdb::NewCompositeEnv(files);
  ASSERT_TRUE(env->CreateDirIfMissing("/wal").ok());
  for (size_t i = 0; i < writes.size(); i++) {
    SCOPED_TRACE(i);
    for (const bool noted : {false, true}) {
      std::vector<Bytes> records;
      for (char sequence = 1; sequence <= 2; sequence++) {
        Batch batch;
        EXPECT_TRUE(batch.Put("k", Bytes(40'000, 'v')).ok());
        writes[i](batch);
        if (noted && sequence == 2) {
          EXPECT_TRUE(batch.PutLogData(encode_sync_note(2)).ok());
        }
        records.push_back(batch.Data());
        records.back()[0] = sequence;
      }
      Bytes log = wal_with_records(records);
      log[100] = 'x';  // in the first, which the second says is durable
      files->replace_file("/wal/000007.log", log);
      const auto limits = check_wals(*env, "/wal", 0);
      ASSERT_EQ(limits.has_value(), !noted);
      if (noted) {
        EXPECT_EQ(limits.error().code, Code::corrupt);
      }
    }
  }
}

TEST(AnyFile, RandomInputs) {
  Random random(test_seed(11));
  for (uint64_t round = 0; round < test_rounds(10'000); round++) {
    const Bytes input = random.bytes(random.below(random.one_in(10) ? 2000 : 60));
    for (const StoreFuzzTarget& target : store_fuzz_targets) target.run(input);
  }
}

TEST(AnyFile, MutatedFiles) {
  Random random(test_seed(12));
  for (size_t i = 0; i < std::size(samples); i++) {
    for (uint64_t round = 0; round < test_rounds(2000); round++) {
      Bytes input = samples[i](random);
      for (uint64_t changes = random.below(4); changes > 0 && !input.empty(); changes--)
        mutate(random, input);
      store_fuzz_targets[i].run(input);
    }
  }
}

}  // namespace
}  // namespace trellis
