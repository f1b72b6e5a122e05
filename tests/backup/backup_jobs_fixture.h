// A real store whose keyspaces are backed up and restored by jobs.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "backup/backups.h"
#include "backup/stream.h"
#include "base/random.h"
#include "codec/address.h"
#include "codec/fs_keys.h"
#include "codec/local_keys.h"
#include "codec/redis_keys.h"
#include "codec/system_keys.h"
#include "durability/temporary_folder.h"
#include "range/embedded_home.h"
#include "raw/raw.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"
#include "tenant/collector.h"
#include "tenant/gc.h"

namespace trellis {
inline const Caller admin{Role::server_admin, "root"};
using Entries = std::map<Bytes, Bytes>;

inline Result<std::unique_ptr<Engine>> open_engine(const std::filesystem::path& path,
                                                   const Clock& clock) {
  TRY_ASSIGN(
      auto engine,
      open_rocksdb_engine(
          {.path = path, .clock = clock, .cache_bytes = size_t{8} << 20, .background_threads = 1}));
  return engine;
}

class BackupJobsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto engine = open_engine(folder_.path() / "store", clock_);
    ASSERT_OK(engine);
    engine_ = std::move(*engine);
    open();
  }

  // As a process that was killed: nothing is known but what is stored.
  void open(std::function<Status(std::string_view)> at_step = {}) {
    backups_.reset();
    keyspaces_.reset();
    transactor_ =
        std::make_unique<Transactor>(*engine_, clock_, TransactOptions{.check_scope = true});
    map_.emplace(MapHandle{*engine_, *transactor_, clock_, Durability::off});
    auto keyspaces = Keyspaces::open(*map_);
    ASSERT_OK(keyspaces);
    keyspaces_ = std::move(*keyspaces);
    gc_ = std::make_unique<Gc>(*map_, keyspaces_->changes());
    collector_ = std::make_unique<Collector>(*keyspaces_, *gc_);
    collector_->own(Model::raw, raw_);
    BackupsOptions options{.work = folder_.path() / "store" / "backups",
                           .open_copy = [this](const std::filesystem::path& path) {
                             return open_engine(path, clock_);
                           }};
    options.skip_redis_versions = [this](uint64_t end) {
      skipped_to_ = end;
      return Status();
    };
    options.at_step = std::move(at_step);
    options.unit_bytes = unit_bytes_;
    backups_ = std::make_unique<Backups>(*keyspaces_, *collector_, std::move(options));
    ASSERT_OK(backups_->start());
  }

  KeyspaceId make(const std::string& name) {
    const auto keyspace = keyspaces_->create(
        {.name = name, .id = {}, .config = {{"c", "d"}}, .request_id = {}}, admin);
    EXPECT_OK(keyspace);
    return keyspace ? keyspace->id : KeyspaceId{};
  }

  void put(const std::string& name, ByteView key, ByteView value, uint64_t ttl_ms = 0) {
    const auto tenant = keyspaces_->tenant(name);
    ASSERT_OK(tenant);
    ASSERT_OK(raw_.put(**tenant, admin, key, value, {.ttl_ms = ttl_ms}));
  }

  // Random values, so that they fill several chunks.
  void fill(const std::string& name, Random& random, int count) {
    for (int i = 0; i < count; i++) {
      Bytes value;
      for (uint64_t n = random.below(1'000); n > 0; n--) append_be64(value, random.next());
      put(name, "key" + std::to_string(random.below(1'000'000)), value,
          random.below(4) == 0 ? 1'000'000 + random.below(1'000'000) : 0);
    }
  }

  // All that a keyspace stores, without its id.
  Entries entries_of(const std::string& name) {
    Entries entries;
    const auto keyspace = keyspaces_->load(name);
    EXPECT_OK(keyspace);
    if (!keyspace) return entries;
    for (const auto& [begin, end] : keyspace_intervals(keyspace->id)) {
      std::optional<Bytes> from = begin;
      while (from) {
        auto page = engine_->scan({.begin = *from, .end = end}, [&](ByteView key, ByteView value) {
          entries[Bytes(key.substr(0, 1)) + Bytes(key.substr(4))] = value;
          return Visit::go_on;
        });
        EXPECT_OK(page);
        from = page ? std::move(page->resume) : std::nullopt;
      }
    }
    return entries;
  }

  JobStatus wait(const Result<JobStatus>& begun) {
    EXPECT_OK(begun);
    if (!begun) return {};
    for (;;) {
      const auto now = backups_->job(begun->id);
      EXPECT_OK(now);
      if (!now || (now->state != JobState::running && now->state != JobState::paused))
        return now.value_or(JobStatus());
      std::this_thread::yield();
    }
  }
  void wait_for_all() {
    for (const JobStatus& job : backups_->jobs()) wait(job);
  }

  std::filesystem::path repository() const { return folder_.path() / "repository"; }

  JobStatus create(const std::string& keyspace) {
    return wait(backups_->create({.repository = repository(), .keyspace = keyspace, .threads = 2}));
  }
  JobStatus restore(const std::string& name, const std::string& backup = "",
                    const std::string& keyspace = "") {
    return wait(backups_->restore(
        {.repository = repository(), .backup = backup, .keyspace = keyspace, .name = name}, admin));
  }

  void expect_same(const std::string& name, const Entries& expected) {
    EXPECT_TRUE(entries_of(name) == expected) << name;
    const auto tenant = keyspaces_->tenant(name);
    ASSERT_OK(tenant);
    const auto figures = (*tenant)->figures();
    const auto counted = recount(*engine_, (*tenant)->id());
    ASSERT_OK(figures);
    ASSERT_OK(counted);
    EXPECT_EQ(*figures, *counted);
    // Every note has its entry of the due index.
    for (const auto& [key, value] : entries_of(name)) {
      Bytes stored = "x";
      append_be24(stored, (*tenant)->id().value);
      stored += key.substr(1);
      const auto note = decode<GarbageKey>(stored);
      if (key[0] != 'x' || !note) continue;
      Value due;
      ASSERT_OK(engine_->get(
          encode(KeyspaceDueKey{due_bucket(note->due_ms), (*tenant)->id(), DueJob::garbage, {}}),
          due));
      EXPECT_TRUE(due.found());
    }
  }

  size_t files_in(const std::filesystem::path& path) {
    size_t count = 0;
    std::error_code failed;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path, failed))
      count += entry.is_regular_file() ? 1 : 0;
    return count;
  }
  // Of restores that are under way, with all that belongs to them.
  size_t restore_records() {
    const auto page = engine_->scan(
        {.begin = encode(KeyspaceRestoreKey{KeyspaceId{0}, {}}),
         .end = prefix_end(encode(KeyspaceRestoreKey{KeyspaceId{keyspace_id_max}, {}}))},
        [](ByteView, ByteView) { return Visit::go_on; });
    EXPECT_OK(page);
    return page ? page->entries : 0;
  }
  size_t work_left() { return files_in(folder_.path() / "store" / "backups"); }

  TemporaryFolder folder_;
  FakeClock clock_{1'700'000'000'000};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Transactor> transactor_;
  std::optional<MapHandle> map_;
  Raw raw_;
  std::unique_ptr<Keyspaces> keyspaces_;
  std::unique_ptr<Gc> gc_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<Backups> backups_;
  uint64_t skipped_to_ = 0;
  uint64_t unit_bytes_ = 64 << 20;
};

}  // namespace trellis
