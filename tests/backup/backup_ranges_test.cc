// The same of a store that is cut into ranges.
#include "backup/backup_jobs_fixture.h"

namespace trellis {
namespace {

// A store that is cut into ranges, with Redis keys of many lengths.
class BackupRangesTest : public BackupJobsTest {
 protected:
  void SetUp() override {
    BackupJobsTest::SetUp();
    unit_bytes_ = 300'000;
    open();
    auto home =
        EmbeddedHome::open(*engine_, clock_,
                           {.next_id = [this]() -> Result<RangeId> { return RangeId{++last_id_}; },
                            .durability = Durability::off});
    ASSERT_OK(home);
    home_ = std::move(*home);
  }

  // About 1.5 MB, counted as a model does.
  void fill_redis(const std::string& name) {
    const auto tenant = keyspaces_->tenant(name);
    ASSERT_OK(tenant);
    const KeyspaceId id = (*tenant)->id();
    const auto put_some = [&](CountedView& view) -> Status {
      const auto put_one = [&](const Bytes& key, const Bytes& value, bool is_key) -> Status {
        Value old;
        TRY(view.get(key, old));
        if (is_key && !old.found()) view.count_keys(1);
        view.put(key, value, old);
        keys_.push_back(key);
        return {};
      };
      for (int i = 0; i < 20; i++) {
        const Bytes user_key = random_.bytes(1 + random_.below(30));
        TRY(put_one(encode(RedisMetadataKey{id, {"0", user_key}}), random_.bytes(20), true));
        for (uint64_t field = random_.below(30); field > 0; field--)
          TRY(put_one(encode(RedisSubKey{id, {{"0", user_key, 7}, random_.bytes(8)}}),
                      random_.bytes(150), false));
      }
      return {};
    };
    for (int i = 0; i < 25; i++)
      ASSERT_OK((*tenant)->write(admin, Model::redis, Scope::all_of(id), put_some));
  }

  void split(int count) {
    for (int i = 0; i < count; i++) {
      Bytes at;
      ASSERT_OK(append_address(at, keys_[random_.below(keys_.size())]));
      const auto range = home_->find(at);
      ASSERT_OK(range);
      if (range->start < at) ASSERT_OK(home_->split({.range = *range, .at = at}));
    }
  }

  size_t units_of(const std::string& backup) {
    return Repository::open(repository())->get_manifest(backup)->unit_bounds.size() + 1;
  }

  Random random_{test_seed(91)};
  uint64_t last_id_ = 1;
  std::unique_ptr<EmbeddedHome> home_;
  std::vector<Bytes> keys_;
};

TEST_F(BackupRangesTest, WhatIsRestoredIsWhatWasThereWithSplitsBetweenAndDuring) {
  make("a");
  make("b");
  fill("b", random_, 100);
  for (int round = 0; round < 3; round++) {
    fill_redis("a");
    split(200);
    clock_.advance_ms(10);
    const auto begun = backups_->create(
        {.repository = repository(), .keyspace = round == 2 ? "" : "a", .threads = 3});
    split(100);
    const JobStatus job = wait(begun);
    ASSERT_EQ(job.state, JobState::done) << job.error->message;
    EXPECT_TRUE(job.warnings.empty());
    EXPECT_GT(units_of(job.backup), 3U);
    EXPECT_LE(job.progress.bytes_done, job.progress.bytes_total);
    const std::string name = "restored-" + std::to_string(round);
    ASSERT_EQ(restore(name, job.backup, "a").state, JobState::done);
    expect_same(name, entries_of("a"));
    if (round < 2) {
      EXPECT_EQ(job.entries, entries_of("a").size());
    }
  }
}

TEST_F(BackupRangesTest, SplitsAloneAddNothing) {
  make("a");
  fill_redis("a");
  split(20);
  const JobStatus first = create("a");
  ASSERT_EQ(first.state, JobState::done);
  EXPECT_GT(first.added_bytes, 1'000'000U);
  EXPECT_GT(units_of(first.backup), 3U);
  split(500);
  clock_.advance_ms(10);
  const JobStatus second = create("a");
  EXPECT_EQ(second.added_bytes, 0U);
  EXPECT_EQ(second.entries, first.entries);
  clock_.advance_ms(10);
  const JobStatus whole = create("");
  ASSERT_EQ(whole.state, JobState::done);
  split(500);
  clock_.advance_ms(10);
  // The records of the ranges themselves are new.
  const JobStatus whole_again = create("");
  EXPECT_LT(whole_again.added_bytes, 200'000U);
  clock_.advance_ms(10);
  EXPECT_EQ(create("a").added_bytes, 0U);  // cut as the last of "a" was
}

TEST_F(BackupRangesTest, AnInterruptedOneGoesOnWithTheUnitsThatItBeganWith) {
  make("a");
  fill_redis("a");
  split(100);
  const Entries entries = entries_of("a");
  for (int crash_at = 0, done = 0; done == 0; crash_at += 5) {
    std::atomic<int> steps{0};
    open([&](std::string_view point) -> Status {
      if (steps++ < crash_at) return {};
      return Error{Code::unavailable, "crashed at: " + std::string(point), job_stopped};
    });
    std::filesystem::remove_all(repository());
    const JobStatus crashed = create("a");
    done = crashed.state == JobState::done ? 1 : 0;
    unit_bytes_ = crash_at % 2 == 0 ? 100'000 : 10'000'000;  // it would cut otherwise now
    open();
    unit_bytes_ = 300'000;
    wait_for_all();
    const std::string name = "restored-" + std::to_string(crash_at);
    ASSERT_EQ(restore(name, crashed.backup).state, JobState::done);
    EXPECT_TRUE(entries_of(name) == entries) << crash_at;
  }
}

// A backup does not need it: it says so, and holds everything.
TEST_F(BackupRangesTest, ADamagedDirectoryIsToldOf) {
  make("a");
  fill_redis("a");
  split(50);
  Commit damage;
  damage.writes.put(encode(RangeDescriptorKey{home_->find("x")->start}), "nonsense");
  ASSERT_OK(commit(*engine_, damage));
  const JobStatus job = create("a");
  ASSERT_EQ(job.state, JobState::done);
  ASSERT_EQ(job.warnings.size(), 1U);
  EXPECT_NE(job.warnings[0].find("trellis range verify"), std::string::npos) << job.warnings[0];
  ASSERT_EQ(restore("b").state, JobState::done);
  expect_same("b", entries_of("a"));
}

}  // namespace
}  // namespace trellis
