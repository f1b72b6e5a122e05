// Loads of the RocksDB engine: what a cut leaves at any write, and of files.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "codec/keyspace_keys.h"
#include "codec/local_keys.h"
#include "codec/store_values.h"
#include "store_fixture.h"
#include "support/power_cutter.h"
#include "support/test_keyspace.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

Bytes entry(size_t i) { return encode(RawKey{ks, "load" + std::to_string(10'000'000 + i)}); }
const Bytes entries_end = encode(RawKey{ks, "loae"});

Status load(Engine& engine, size_t begin, size_t end, Commit with) {
  constexpr size_t at_once = 2'000;
  const std::unique_ptr<Load> load = engine.begin_load();
  Random random(begin + 1);
  for (; begin < end; begin += at_once) {
    WriteSet puts;
    for (size_t i = begin; i < std::min(end, begin + at_once); i++)
      puts.put(entry(i), random.bytes(1'000));
    load->put(std::move(puts));
  }
  return load->commit(std::move(with));
}

size_t entries_from(Engine& engine, size_t begin) {
  const Bytes first = entry(begin);
  size_t found = 0;
  Bytes from = first;
  for (;;) {
    const auto page = engine.scan({.begin = from, .end = entries_end}, [&](ByteView, ByteView) {
      found++;
      return Visit::go_on;
    });
    EXPECT_TRUE(page.has_value());
    if (!page || !page->resume) return found;
    from = *page->resume;
  }
}

TEST(LoadCut, AllOrNothingAtAnyWrite) {
  setup_log(LogLevel::error, LogFormat::text);  // RocksDB warns of every cut
  PowerCutter cutter(test_seed(20261118));
  Random random(test_seed(7));
  SystemClock clock;
  size_t begin = 0;
  int lost = 0;
  int whole = 0;
  for (uint64_t round = 0; round < test_rounds(30) && !testing::Test::HasFailure(); round++) {
    SCOPED_TRACE(round);
    const auto reopen = [&] {
      return cutter.reopen({.path = "/store", .clock = clock, .cache_bytes = 8 << 20});
    };
    std::unique_ptr<RocksdbEngine> engine = reopen();
    ASSERT_NE(engine, nullptr);
    const size_t end = begin + (random.one_in(3) ? 1'000 : 17'000);
    cutter.arm(60);
    Commit with;
    with.writes.put(encode(RawKey{ks, "with"}), std::to_string(round));
    Status done = load(*engine, begin, end, std::move(with));
    if (done) done = engine->wait_durable(engine->last_ticket());
    engine.reset();
    engine = reopen();
    ASSERT_NE(engine, nullptr);
    Value stored;
    ASSERT_TRUE(engine->get(encode(RawKey{ks, "with"}), stored).has_value());
    const bool is_there = stored.found() && stored.bytes() == std::to_string(round);
    stored = Value();
    EXPECT_EQ(entries_from(*engine, begin), is_there ? end - begin : 0);
    EXPECT_TRUE(is_there || !done.has_value());
    (is_there ? whole : lost)++;
    if (is_there) begin = end;
  }
  EXPECT_TRUE(test_scale() == "quick" || (lost > 0 && whole > 0));
}

class LoadFiles : public StoreFixture {
 protected:
  size_t load_files() const {
    const auto all = files_->files("/store");
    return static_cast<size_t>(std::ranges::count_if(
        all, [](const std::string& path) { return path.find("load-") != std::string::npos; }));
  }
};

TEST_F(LoadFiles, NothingStaysOfThem) {
  auto engine = open();
  ASSERT_TRUE(load(*engine, 0, 20'000, {}).has_value());
  EXPECT_EQ(load_files(), 0u);
  const size_t tables = files_ending(".sst").size();
  EXPECT_GT(tables, 1u);
  ASSERT_TRUE(load(*engine, 50'000, 50'010, {}).has_value());  // small: through the log
  EXPECT_EQ(files_ending(".sst").size(), tables);
  EXPECT_EQ(load_files(), 0u);
  {
    const std::unique_ptr<Load> given_up = engine->begin_load();
    WriteSet puts;
    puts.put(entry(60'000), "v");
    given_up->put(std::move(puts));
  }
  EXPECT_EQ(load_files(), 0u);
  EXPECT_EQ(entries_from(*engine, 0), 20'010u);
}

// As a crash between its steps would leave it.
TEST_F(LoadFiles, WhatWasNotCommittedGoesWhenTheStoreOpens) {
  auto engine = open();
  ASSERT_TRUE(load(*engine, 0, 20'000, {}).has_value());
  ASSERT_TRUE(load(*engine, 30'000, 50'000, {}).has_value());
  ASSERT_TRUE(put(*engine, encode(StoreLoadKey{3}), encode(StoreLoad{entry(30'000), entry(49'999)}),
                  Durability::always)
                  .has_value());
  engine.reset();
  files_->replace_file("/store/load-3-0.part", "half a table");
  engine = open();
  EXPECT_EQ(entries_from(*engine, 0), 20'000u);
  EXPECT_EQ(load_files(), 0u);
  EXPECT_EQ(get(*engine, encode(StoreLoadKey{3})), "(none)");
  engine.reset();
  engine = open();
  ASSERT_TRUE(load(*engine, 30'000, 50'000, {}).has_value());
  EXPECT_EQ(entries_from(*engine, 0), 40'000u);
}

// A copy of the store has a load with the commit that makes it count, or neither.
TEST_F(LoadFiles, CheckpointsBesideThem) {
  constexpr size_t each = 20'000;
  auto engine = open();
  std::atomic<bool> is_over = false;
  std::atomic<size_t> loaded = 0;
  std::thread loader([&] {
    for (size_t n = 0; !is_over && n < 100; n++) {
      Commit with;
      with.writes.put(encode(RawKey{ks, "with"}), std::to_string(n + 1));
      EXPECT_TRUE(load(*engine, n * each, (n + 1) * each, std::move(with)).has_value());
      loaded = n + 1;
    }
  });
  for (size_t copies = 0; copies < 6; copies++) {
    const size_t before = loaded;
    while (loaded == before && loaded < 100) std::this_thread::yield();
    const std::string path = "/copy" + std::to_string(copies);
    ASSERT_TRUE(engine->checkpoint(path).has_value());
    RocksdbOptions of_copy = options();
    of_copy.path = path;
    auto copy = open_rocksdb_engine(of_copy);
    ASSERT_TRUE(copy.has_value());
    const Bytes with = get(**copy, encode(RawKey{ks, "with"}));
    EXPECT_EQ(entries_from(**copy, 0), std::stoul(with) * each);
  }
  is_over = true;
  loader.join();
}

TEST_F(LoadFiles, ANoteThatMakesNoSenseIsRefused) {
  auto engine = open();
  ASSERT_TRUE(put(*engine, encode(StoreLoadKey{3}), "?", Durability::always).has_value());
  engine.reset();
  const auto refused = try_open();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::corrupt);
}

TEST_F(LoadFiles, AFullDiskIsAnErrorAndLosesNothing) {
  auto engine = open();
  ASSERT_TRUE(put(*engine, "k", "v").has_value());
  files_->set_capacity(5 << 20);
  Commit with;
  with.writes.put("with", "v");
  EXPECT_FALSE(load(*engine, 0, 20'000, std::move(with)).has_value());
  files_->set_capacity(std::nullopt);
  EXPECT_EQ(get(*engine, "with"), "(none)");
  EXPECT_EQ(get(*engine, "k"), "v");
  EXPECT_EQ(entries_from(*engine, 0), 0u);
  EXPECT_EQ(load_files(), 0u);
  engine.reset();
  engine = open();
  EXPECT_EQ(get(*engine, "k"), "v");
  ASSERT_TRUE(load(*engine, 0, 20'000, {}).has_value());
  EXPECT_EQ(entries_from(*engine, 0), 20'000u);
}

// The process goes on: what was begun is taken back at once.
TEST_F(LoadFiles, WhatIsNotTakenOverIsTakenBack) {
  auto engine = open();
  ASSERT_TRUE(put(*engine, "k", "v").has_value());
  for (const auto& error :
       {rocksdb::IOStatus::NoSpace("full"), rocksdb::IOStatus::IOError("broken")}) {
    bool is_met = false;
    files_->set_write_hook([&](const std::string& path, std::string&) {
      const bool is_table = path.ends_with(".sst");  // into which its file is copied
      is_met = is_met || is_table;
      return is_table ? error : rocksdb::IOStatus::OK();
    });
    Commit with;
    with.writes.put("with", "v");
    const Status refused = load(*engine, 0, 20'000, std::move(with));
    files_->set_write_hook(nullptr);
    ASSERT_TRUE(is_met);
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().code, Code::maybe) << refused.error().message;
    EXPECT_EQ(get(*engine, "with"), "(none)");
    EXPECT_EQ(entries_from(*engine, 0), 0u);
    EXPECT_EQ(load_files(), 0u);
    for (uint64_t number = 0; number < 3; number++)
      EXPECT_EQ(get(*engine, encode(StoreLoadKey{number})), "(none)");
  }
  ASSERT_TRUE(load(*engine, 0, 20'000, {}).has_value());
  EXPECT_EQ(entries_from(*engine, 0), 20'000u);
  engine.reset();
  engine = open();
  EXPECT_EQ(entries_from(*engine, 0), 20'000u);
  EXPECT_EQ(get(*engine, "k"), "v");
}

}  // namespace
}  // namespace trellis
