// Who waits for the disk, how often it is asked, and what is said when it fails.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <thread>

#include "store_fixture.h"

namespace trellis {
namespace {

using namespace std::chrono_literals;

class Syncs : public StoreFixture {
 protected:
  void SetUp() override {
    StoreFixture::SetUp();
    files_->set_sync_hook([this](const std::string& path) {
      if (!path.ends_with(".log")) return rocksdb::IOStatus::OK();
      std::unique_lock lock(mutex_);
      log_syncs_++;
      last_sync_began_ = std::chrono::steady_clock::now();
      changed_.notify_all();
      changed_.wait(lock, [this] { return !held_; });
      return fail_ ? fail_with_ : rocksdb::IOStatus::OK();
    });
  }
  void set_held(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  uint64_t log_syncs() {
    const std::lock_guard lock(mutex_);
    return log_syncs_;
  }
  bool wait_for_syncs(uint64_t count, std::chrono::milliseconds patience = 60s) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return log_syncs_ >= count; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t log_syncs_ = 0;
  bool held_ = false;
  std::chrono::steady_clock::time_point last_sync_began_;
  std::atomic<bool> fail_{false};
  rocksdb::IOStatus fail_with_ = rocksdb::IOStatus::IOError("the disk broke");
};

// While one sync runs, everybody else commits; the next sync serves them all.
TEST_F(Syncs, OneSyncServesAllWhoWait) {
  auto engine = open();
  const uint64_t before = log_syncs();
  set_held(true);
  constexpr size_t committers = 32;
  std::atomic<size_t> ordered{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < committers; i++) {
    threads.emplace_back([&, i] {
      Commit one;
      one.writes.put(std::to_string(i), "v");
      const Commit* const commits[] = {&one};
      Status outcomes[1];
      const CommitTicket ticket = engine->commit_many(commits, outcomes);
      EXPECT_TRUE(outcomes[0].has_value());
      if (++ordered == committers) set_held(false);
      EXPECT_TRUE(engine->wait_durable(ticket).has_value());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t syncs = log_syncs() - before;
  std::cout << committers << " commits waited for " << syncs << " syncs\n";
  EXPECT_LE(syncs, 2);
  EXPECT_GE(syncs, 1);
}

TEST_F(Syncs, HoweverTheFolderIsSpelled) {
  ASSERT_TRUE(env_->CreateDirIfMissing("/other").ok());
  for (const char* spelled : {"/store", "/store/", "//store", "/other/../store/.", "/./store//"}) {
    SCOPED_TRACE(spelled);
    RocksdbOptions there = options();
    there.path = spelled;
    const auto engine = open_rocksdb_engine(there);
    ASSERT_TRUE(engine.has_value()) << to_string(engine.error());
    const uint64_t before = log_syncs();
    ASSERT_TRUE(put(**engine, "a", "1", Durability::always).has_value());
    EXPECT_EQ(log_syncs(), before + 1);
  }
}

TEST_F(Syncs, WhatIsDurableWaitsForNothing) {
  auto engine = open();
  ASSERT_TRUE(put(*engine, "a", "1", Durability::always).has_value());
  const uint64_t before = log_syncs();
  EXPECT_TRUE(engine->wait_durable(engine->last_ticket()).has_value());
  EXPECT_TRUE(put(*engine, "b", "1", Durability::off).has_value());
  EXPECT_EQ(log_syncs(), before);
  EXPECT_EQ(engine->figures().wal_syncs, before - 1);  // the first was for the identity record
}

TEST_F(Syncs, EverysecSyncsSoonAndOnlyIfThereIsSomething) {
  RocksdbOptions with_period = options();
  with_period.everysec_period = 20ms;
  auto engine = open_rocksdb_engine(with_period);
  ASSERT_TRUE(engine.has_value());
  for (int i = 0; i < 3; i++) {
    const uint64_t before = log_syncs();
    ASSERT_TRUE(put(**engine, "off", "1", Durability::off).has_value());
    ASSERT_TRUE(put(**engine, "soon", std::to_string(i), Durability::everysec).has_value());
    EXPECT_EQ(log_syncs(), before) << "a commit waited for the disk";
    ASSERT_TRUE(wait_for_syncs(before + 1));
    // Durable now; a cut keeps it. The engine's own word for it follows the disk's.
    ASSERT_TRUE((*engine)->wait_durable((*engine)->last_ticket()).has_value());
    EXPECT_EQ(log_syncs(), before + 1);
  }
  Random random(1);
  files_->cut_power(random);
  engine->reset();
  files_->restore_power();
  EXPECT_EQ(get(*open(), "soon"), "2");
}

// What is committed while a slow sync runs waits for that one and for the rest of its own period,
// but for no new period after the sync.
TEST_F(Syncs, ASlowSyncDoesNotPutOffTheNext) {
  constexpr auto period = 500ms;
  RocksdbOptions with_period = options();
  with_period.everysec_period = period;
  auto engine = open_rocksdb_engine(with_period);
  ASSERT_TRUE(engine.has_value());
  const uint64_t before = log_syncs();
  set_held(true);
  ASSERT_TRUE(put(**engine, "a", "1", Durability::everysec).has_value());
  ASSERT_TRUE(wait_for_syncs(before + 1));  // and there it hangs
  ASSERT_TRUE(put(**engine, "b", "1", Durability::everysec).has_value());
  // Until its period is over. The disk is not asked again meanwhile.
  EXPECT_FALSE(wait_for_syncs(before + 2, period));
  const auto released = std::chrono::steady_clock::now();
  set_held(false);
  ASSERT_TRUE(wait_for_syncs(before + 2));
  const std::lock_guard lock(mutex_);
  EXPECT_LT(last_sync_began_ - released, period);
}

TEST_F(Syncs, StoppingDoesNotWaitForThePeriod) {
  RocksdbOptions with_period = options();
  with_period.everysec_period = 1h;
  auto engine = open_rocksdb_engine(with_period);
  ASSERT_TRUE(engine.has_value());
  ASSERT_TRUE(put(**engine, "a", "1", Durability::everysec).has_value());
  engine->reset();  // would hang
  Random random(1);
  files_->cut_power(random);
  files_->restore_power();
  EXPECT_EQ(get(*open(), "a"), "1") << "closing did not sync";
}

TEST_F(Syncs, AFailedSyncIsAMaybeAndStopsCommits) {
  auto engine = open();
  ASSERT_TRUE(put(*engine, "a", "1", Durability::always).has_value());
  fail_ = true;
  const Status unknown = put(*engine, "b", "1", Durability::always);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, Code::maybe);
  fail_ = false;  // too late: the kernel may have dropped the pages
  const Status refused = put(*engine, "c", "1", Durability::always);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::unavailable);
  EXPECT_NE(refused.error().message.find("restart trellis"), std::string::npos);
  EXPECT_EQ(engine->wait_durable(engine->last_ticket()).error().code, Code::maybe);
  EXPECT_EQ(get(*engine, "a"), "1");
  EXPECT_EQ(get(*engine, "c"), "(none)");
  const BlockWrite block{{KeyspaceId{1}, DataId{1}, 0}, std::nullopt, "bytes"};
  const Status blocks = engine->blocks().write({&block, 1});
  ASSERT_FALSE(blocks.has_value());
  EXPECT_EQ(blocks.error().code, Code::unavailable);
  engine.reset();
  EXPECT_EQ(get(*open(), "a"), "1");
}

// Unlike a write, a sync that found the disk full is not tried again.
TEST_F(Syncs, ADiskThatIsFullAtTheSyncNeedsARestart) {
  auto engine = open();
  fail_with_ = rocksdb::IOStatus::NoSpace("the disk is full");
  fail_ = true;
  EXPECT_EQ(put(*engine, "a", "1", Durability::always).error().code, Code::maybe);
  fail_ = false;
  const Status refused = put(*engine, "b", "1");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::unavailable);
  EXPECT_NE(refused.error().message.find("Free some space, then restart trellis"),
            std::string::npos)
      << refused.error().message;
  EXPECT_EQ(refused.error().message.find("resume"), std::string::npos);
  engine.reset();
  EXPECT_TRUE(put(*open(), "b", "1", Durability::always).has_value());
}

TEST_F(Syncs, AFailedWriteIsAMaybeAndStopsCommits) {
  auto engine = open();
  ASSERT_TRUE(put(*engine, "a", "1", Durability::always).has_value());
  std::atomic<bool> broken{true};
  files_->set_write_hook([&](const std::string& path, std::string&) {
    return broken && path.ends_with(".log") ? rocksdb::IOStatus::IOError("the disk broke")
                                            : rocksdb::IOStatus::OK();
  });
  EXPECT_EQ(put(*engine, "b", "1").error().code, Code::maybe);
  EXPECT_EQ(put(*engine, "c", "1").error().code, Code::unavailable);
  EXPECT_EQ(get(*engine, "a"), "1");
  engine.reset();
  broken = false;
  engine = open();
  EXPECT_EQ(get(*engine, "a"), "1");
  EXPECT_TRUE(put(*engine, "d", "1", Durability::always).has_value());
}

// A reader that saw a value and then waits for the latest ticket must not lose it.
TEST_F(Syncs, TheLatestTicketCoversWhatWasRead) {
  auto engine = open();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; i++) {
      if (!put(*engine, "k", std::to_string(i)).has_value()) return;  // the power is off
    }
  });
  Bytes seen;
  while (seen.empty() || seen == "(none)") seen = get(*engine, "k");
  for (int round = 0; round < 50; round++) {
    seen = get(*engine, "k");
    ASSERT_TRUE(engine->wait_durable(engine->last_ticket()).has_value());
  }
  Random random(7);
  files_->cut_power(random);
  stop = true;
  writer.join();
  engine.reset();
  files_->restore_power();
  EXPECT_GE(std::stoi(get(*open(), "k")), std::stoi(seen));
}

}  // namespace
}  // namespace trellis
