// Jobs on a real store: what is restored is what was there, whatever interrupts them.
#include "backup/backup_jobs_fixture.h"

namespace trellis {
namespace {

TEST_F(BackupJobsTest, WhatIsRestoredIsWhatWasThereAtEachOfManyTimes) {
  Random random(11);
  make("a");
  make("b");
  fill("b", random, 300);
  const Bytes versions = encode(SystemKey{SystemKey::redis_version_generator});
  Commit mark;
  mark.writes.put(versions, "123456789");
  ASSERT_OK(commit(*engine_, mark));
  std::map<std::string, Entries> by_backup;
  uint64_t first_added = 0;
  for (int round = 0; round < 4; round++) {
    if (round == 0) fill("a", random, 600);
    // Near each other: what is far from them stays as it is.
    for (int i = 0; i < 10; i++)
      put("a", "key5" + std::to_string(i), std::to_string(random.next()));
    clock_.advance_ms(10);
    const JobStatus job = create(round == 2 ? "" : "a");
    ASSERT_EQ(job.state, JobState::done) << job.error->message;
    by_backup[job.backup] = entries_of("a");
    if (round == 0) first_added = job.added_bytes;
    if (round == 1 || round == 3) {
      EXPECT_LT(job.added_bytes, first_added);
    }
  }
  EXPECT_EQ(work_left(), 0U);
  int number = 0;
  for (const auto& [backup, entries] : by_backup) {
    const std::string name = "restored-" + std::to_string(number++);
    const JobStatus job = restore(name, backup, "a");
    ASSERT_EQ(job.state, JobState::done) << job.error->message;
    expect_same(name, entries);
    EXPECT_EQ(skipped_to_, 123456789U);
    EXPECT_EQ(keyspaces_->load(name)->config, (Config{{"c", "d"}}));
  }
  const JobStatus verified = wait(backups_->verify({.repository = repository()}));
  EXPECT_EQ(verified.state, JobState::done);
}

// Nothing comes twice: the second of two without a change in between costs nothing.
TEST_F(BackupJobsTest, WithoutAChangeNothingIsAdded) {
  Random random(12);
  make("a");
  fill("a", random, 500);
  EXPECT_GT(create("a").added_bytes, 0U);
  EXPECT_EQ(create("a").added_bytes, 0U);
  const auto ids = Repository::open(repository())->ids();
  ASSERT_EQ(ids->size(), 2U);
  const Entries entries = entries_of("a");
  EXPECT_EQ(*backups_->remove(repository(), ids->front()), 0U);  // the other needs it all
  EXPECT_EQ(restore("b").state, JobState::done);
  expect_same("b", entries);
  EXPECT_GT(*backups_->remove(repository(), ids->back()), 0U);
  EXPECT_EQ(files_in(repository() / "chunks"), 0U);
}

TEST_F(BackupJobsTest, ABackupInterruptedAtAnyStepGoesOn) {
  Random random(13);
  unit_bytes_ = 500'000;  // several
  make("a");
  fill("a", random, 500);
  const Entries entries = entries_of("a");
  for (int crash_at = 0;; crash_at++) {
    std::atomic<int> steps{0};
    open([&](std::string_view point) -> Status {
      if (steps++ < crash_at) return {};
      return Error{Code::unavailable, "crashed at: " + std::string(point), job_stopped};
    });
    const JobStatus crashed = create("a");
    if (crashed.state == JobState::done) {
      EXPECT_GT(crash_at, 5);
      break;
    }
    SCOPED_TRACE(crashed.error->message);
    // What is written meanwhile is not of the instant that it goes on at.
    put("a", "later", std::to_string(crash_at));
    open();
    ASSERT_EQ(backups_->jobs().size(), 1U);
    wait_for_all();
    ASSERT_EQ(backups_->jobs()[0].state, JobState::done);
    EXPECT_EQ(work_left(), 0U);
    const std::string name = "restored-" + std::to_string(crash_at);
    ASSERT_EQ(restore(name, crashed.backup).state, JobState::done);
    Entries restored = entries_of(name);
    EXPECT_EQ(restored.erase("rlater"), crash_at == 0 ? 0U : 1U);
    Entries now = entries_of("a");
    now.erase("rlater");
    for (Entries* some : {&restored, &now})  // counters know of it too
      std::erase_if(*some, [](const auto& entry) { return entry.first.starts_with("xk"); });
    EXPECT_TRUE(restored == now);
  }
}

TEST_F(BackupJobsTest, ARestoreInterruptedAtAnyStepGoesOnAndIsNeverHalfSeen) {
  Random random(14);
  make("a");
  fill("a", random, 500);
  const Entries entries = entries_of("a");
  ASSERT_EQ(create("a").state, JobState::done);
  for (int crash_at = 0;; crash_at++) {
    std::atomic<int> steps{0};
    open([&](std::string_view point) -> Status {
      if (steps++ < crash_at) return {};
      return Error{Code::unavailable, "crashed at: " + std::string(point), job_stopped};
    });
    const std::string name = "restored-" + std::to_string(crash_at);
    const JobStatus crashed = restore(name);
    if (crashed.state == JobState::done) {
      EXPECT_GT(crash_at, 5);
      break;
    }
    SCOPED_TRACE(crashed.error->message);
    const auto half = keyspaces_->load(name);
    if (half && half->state != KeyspaceState::enabled) {
      const auto tenant = keyspaces_->tenant(name);
      ASSERT_OK(tenant);
      EXPECT_CODE((*tenant)->admit(admin, Access::read), Code::denied);
    } else if (half) {
      EXPECT_TRUE(entries_of(name) == entries);
    }
    open();
    wait_for_all();
    ASSERT_EQ(backups_->jobs().size(), 1U);
    EXPECT_EQ(backups_->jobs()[0].id, crashed.id);
    ASSERT_EQ(backups_->jobs()[0].state, JobState::done);
    EXPECT_EQ(work_left(), 0U);
    expect_same(name, entries);
    Value record;
    ASSERT_OK(engine_->get(encode(KeyspaceRestoreKey{keyspaces_->load(name)->id, {}}), record));
    EXPECT_FALSE(record.found());
  }
}

TEST_F(BackupJobsTest, ARestoreThatFailsAtAnyStepIsTriedAgain) {
  Random random(19);
  make("a");
  fill("a", random, 300);
  const Entries entries = entries_of("a");
  ASSERT_EQ(create("a").state, JobState::done);
  std::atomic<int> steps{0};
  std::atomic<int> fail_at{0};
  open([&](std::string_view point) -> Status {
    if (steps++ != fail_at) return {};
    return Error{Code::unavailable, "failed at: " + std::string(point)};
  });
  for (;; fail_at++) {
    steps = 0;
    const std::string name = "restored-" + std::to_string(fail_at);
    const JobStatus failed = restore(name);
    if (failed.state == JobState::done) break;
    SCOPED_TRACE(failed.error->message);
    const JobStatus again = wait(backups_->resume(failed.id));
    ASSERT_EQ(again.state, JobState::done) << again.error->message;
    expect_same(name, entries);
  }
  EXPECT_GT(fail_at, 5);
}

TEST_F(BackupJobsTest, DamageIsFoundBeforeAnythingIsWritten) {
  Random random(15);
  make("a");
  fill("a", random, 500);
  ASSERT_EQ(create("a").state, JobState::done);
  const Entries before = entries_of("a");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(repository()))
    if (entry.is_regular_file() && entry.path().filename() != "TRELLIS-BACKUPS")
      files.push_back(entry.path());
  ASSERT_GT(files.size(), 2U);
  for (const auto& file : files) {
    SCOPED_TRACE(file.string());
    std::stringstream whole;
    whole << std::ifstream(file).rdbuf();
    Bytes bytes = whole.str();
    bytes[bytes.size() * 3 / 4] = static_cast<char>(bytes[bytes.size() * 3 / 4] ^ 1);
    std::ofstream(file, std::ios::trunc) << bytes;
    const auto begun = backups_->restore({.repository = repository(), .name = "b"}, admin);
    const std::optional<Error> error =
        begun ? wait(begun).error : std::optional<Error>(begun.error());
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->reason, "backup_damaged");
    EXPECT_NE(error->message.find(file.filename().string()), std::string::npos) << error->message;
    EXPECT_CODE(keyspaces_->load("b"), Code::not_found);
    const JobStatus verified = wait(backups_->verify({.repository = repository()}));
    EXPECT_EQ(verified.state, JobState::failed);
    EXPECT_EQ(verified.damage.size(), 1U);
    std::ofstream(file, std::ios::trunc) << whole.str();
  }
  std::filesystem::remove(files[0]);
  EXPECT_EQ(wait(backups_->verify({.repository = repository()})).damage.size(),
            files[0].extension() == ".backup" ? 0U : 1U);
}

// With every checksum right: whoever makes such a backup can make those too.
TEST_F(BackupJobsTest, WhatNoStoreHoldsIsRefused) {
  Keyspace shop;
  shop.id = KeyspaceId{7};
  shop.name = "shop";
  const auto owned = [&](char mode, ByteView rest) {
    Bytes key(1, mode);
    append_be24(key, shop.id.value);
    return key + Bytes(rest);
  };
  const std::pair<Bytes, Bytes> bad[] = {
      {owned('x', "kdb\x01\x01"), "no number"},  // a counter
      {owned('x', "dm"), "v"},                   // cut short
      {"\x01siden", "another store"},
      {owned('x', "g"), "a note"},
      {"x", "v"},
      {"\xff", "v"},
  };
  int number = 0;
  const auto restore_of = [&](const Entries& entries) {
    std::filesystem::remove_all(repository());
    Repository made = std::move(*Repository::open_or_make(repository()));
    ChunkCutter cutter;
    for (const auto& [key, value] : entries) cutter.add(key, value);
    const EntryChunk chunk = cutter.take();
    EXPECT_OK(made.put_chunk(chunk));
    EXPECT_OK(made.put_manifest(
        {.id = "crafted", .store = Bytes(16, 's'), .keyspaces = {shop}, .chunks = {chunk.facts}}));
    return restore("crafted-" + std::to_string(number++));
  };
  const std::pair<Bytes, Bytes> good{owned('r', "key"), "v"};
  EXPECT_EQ(restore_of({good}).state, JobState::done);
  const std::pair<Bytes, Bytes> of_a_later_model{owned('x', "?new"),
                                                 "v"};  // but its owner is clear
  const JobStatus carried = restore_of({good, of_a_later_model});
  EXPECT_EQ(carried.state, JobState::done);
  EXPECT_EQ(entries_of(carried.keyspace).at("x?new"), "v");
  for (const auto& entry : bad) {
    SCOPED_TRACE(to_hex(entry.first));
    const JobStatus job = restore_of({good, entry});
    ASSERT_EQ(job.state, JobState::failed);
    EXPECT_EQ(job.error->reason, "backup_damaged") << job.error->message;
    EXPECT_CODE(keyspaces_->load(job.keyspace), Code::not_found);
  }
}

// What a store has come to hold by damage does not keep the rest from being restored.
TEST_F(BackupJobsTest, WhatMakesNoSenseIsLeftOut) {
  Random random(23);
  const KeyspaceId a = make("a");
  fill("a", random, 50);
  const Entries entries = entries_of("a");
  const auto owned = [&](ByteView rest) {
    Bytes key = "x";
    append_be24(key, a.value);
    return key + Bytes(rest);
  };
  Commit damage;
  for (const ByteView rest : {ByteView("dm"), ByteView("g"), ByteView("gnote")})
    damage.writes.put(owned(rest), "v");
  damage.writes.put("x", "v");
  damage.writes.put("q", "v");
  ASSERT_OK(commit(*engine_, damage));
  for (const char* const of : {"a", ""}) {
    const JobStatus made = create(of);
    ASSERT_EQ(made.state, JobState::done) << made.error->message;
    const std::string name = std::string("restored") + of;
    ASSERT_EQ(restore(name, made.backup, "a").state, JobState::done);
    EXPECT_TRUE(entries_of(name) == entries);
  }
}

TEST_F(BackupJobsTest, OnlyTheLatestThatFailedKeepsACopyOfTheStore) {
  Random random(24);
  make("a");
  fill("a", random, 50);
  std::atomic<bool> fails{true};
  open([&](std::string_view point) -> Status {
    if (!fails || point != "copied") return {};
    return Error{Code::unavailable, "no luck"};
  });
  const JobStatus first = create("a");
  ASSERT_EQ(first.state, JobState::failed);
  EXPECT_GT(first.copy_bytes, 0U);
  clock_.advance_ms(1'000);
  const JobStatus second = create("a");
  ASSERT_EQ(second.state, JobState::failed);
  EXPECT_GT(second.copy_bytes, 0U);
  EXPECT_EQ(backups_->job(first.id)->state, JobState::canceled);
  EXPECT_EQ(backups_->job(first.id)->copy_bytes, 0U);
  EXPECT_CODE(backups_->resume(first.id), Code::conflict);
  fails = false;
  EXPECT_EQ(wait(backups_->resume(second.id)).state, JobState::done);
  EXPECT_EQ(work_left(), 0U);
}

TEST_F(BackupJobsTest, OtherFoldersAreRefused) {
  make("a");
  const auto create_in = [&](const std::filesystem::path& path) {
    return backups_->create({.repository = path, .keyspace = "a"});
  };
  EXPECT_CODE(create_in("relative"), Code::invalid);
  std::filesystem::create_directory(folder_.path() / "other");
  std::ofstream(folder_.path() / "other" / "thesis.tex") << "precious";
  EXPECT_CODE(create_in(folder_.path() / "other"), Code::invalid);
  EXPECT_CODE(create_in(folder_.path() / "other" / "thesis.tex"), Code::invalid);
  EXPECT_CODE(backups_->restore({.repository = folder_.path() / "other", .name = "b"}, admin),
              Code::not_found);
  EXPECT_CODE(backups_->create({.repository = repository(), .keyspace = "none"}), Code::not_found);
  ASSERT_EQ(create("a").state, JobState::done);
  std::ofstream(repository() / "TRELLIS-BACKUPS", std::ios::trunc) << "format 2\n";
  EXPECT_CODE(create_in(repository()), Code::unsupported);
}

// In a folder with backups of many things the latest of them is seldom the one that is meant.
TEST_F(BackupJobsTest, TheLatestIsTheLatestThatHasTheKeyspace) {
  make("a");
  make("b");
  put("a", "key", "old");
  ASSERT_EQ(create("a").state, JobState::done);
  put("a", "key", "new");
  const Entries expected = entries_of("a");
  clock_.advance_ms(10);
  ASSERT_EQ(create("").state, JobState::done);
  clock_.advance_ms(10);
  ASSERT_EQ(create("b").state, JobState::done);
  ASSERT_EQ(restore("c", "", "a").state, JobState::done);
  expect_same("c", expected);
  const auto none = backups_->restore({.repository = repository(), .keyspace = "none"}, admin);
  EXPECT_REASON(none, Code::not_found, "keyspace_not_found");
  EXPECT_NE(none.error().message.find(R"(has no keyspace "none"; it has: "b")"), std::string::npos)
      << none.error().message;
  const auto is_whole = [](const Manifest& each) { return each.whole; };
  const auto whole = Repository::open(repository())->find("", is_whole);
  ASSERT_OK(whole);
  EXPECT_TRUE(whole->whole);
}

// The folder of jobs is cleared up at every start, but not of what others put there.
TEST_F(BackupJobsTest, TheFolderOfJobsIsNoPlaceForBackups) {
  make("a");
  const std::filesystem::path work = folder_.path() / "store" / "backups";
  const auto create_in = [&](const std::filesystem::path& path) {
    return backups_->create({.repository = path, .keyspace = "a"});
  };
  EXPECT_CODE(create_in(work), Code::invalid);
  EXPECT_CODE(create_in(work / ""), Code::invalid);
  EXPECT_CODE(create_in(work / "mine"), Code::invalid);
  std::filesystem::create_directory_symlink(folder_.path() / "store", folder_.path() / "link");
  EXPECT_CODE(create_in(folder_.path() / "link" / "backups"), Code::invalid);
  for (const char* const other : {"chunks", "spool-of-mine", "restore-notes"})
    std::filesystem::create_directories(work / other);
  std::filesystem::create_directories(work / "20261116T013152-559-d84a");
  std::ofstream(work / "chunks" / "thesis.tex") << "precious";
  open();
  EXPECT_EQ(work_left(), 1U);
  EXPECT_TRUE(std::filesystem::exists(work / "chunks" / "thesis.tex"));
  EXPECT_TRUE(std::filesystem::exists(work / "spool-of-mine"));
  EXPECT_TRUE(std::filesystem::exists(work / "restore-notes"));
  EXPECT_FALSE(std::filesystem::exists(work / "20261116T013152-559-d84a"));
}

TEST_F(BackupJobsTest, APausedJobWaitsAndACanceledOneLeavesNothing) {
  Random random(16);
  make("a");
  fill("a", random, 300);
  ASSERT_EQ(create("a").state, JobState::done);
  const auto slow =
      backups_->restore({.repository = repository(), .name = "b", .bytes_per_second = 1}, admin);
  ASSERT_OK(slow);
  ASSERT_OK(backups_->pause(slow->id));
  EXPECT_EQ(backups_->job(slow->id)->state, JobState::paused);
  ASSERT_OK(backups_->resume(slow->id));
  ASSERT_OK(backups_->cancel(slow->id));
  EXPECT_EQ(wait(slow).state, JobState::canceled);
  EXPECT_REASON(backups_->cancel(slow->id), Code::conflict, "job_over");

  // One that has begun to write is buried.
  open([](std::string_view point) -> Status {
    if (point != "chunk restored") return {};
    return Error{Code::unavailable, "no disk"};
  });
  const JobStatus failed = restore("b");
  EXPECT_EQ(failed.state, JobState::failed);
  const auto half = keyspaces_->load("b");
  ASSERT_OK(half);
  ASSERT_OK(backups_->cancel(failed.id));
  EXPECT_CODE(keyspaces_->load("b"), Code::not_found);
  for (int i = 0; i < 100 && keyspaces_->load(half->id)->purged_at_s == 0; i++)
    ASSERT_OK(collector_->step());
  EXPECT_NE(keyspaces_->load(half->id)->purged_at_s, 0U);
  for (const auto& [begin, end] : keyspace_intervals(half->id)) {
    const auto page = engine_->scan({.begin = begin, .end = end},
                                    [](ByteView, ByteView) { return Visit::go_on; });
    ASSERT_OK(page);
    EXPECT_EQ(page->entries, 0U);
  }
  open();
  EXPECT_TRUE(backups_->jobs().empty());
}

TEST_F(BackupJobsTest, APausedJobIsPausedAfterARestartToo) {
  Random random(20);
  make("a");
  fill("a", random, 500);
  const Entries entries = entries_of("a");
  // At each of these a job waits in turn, is paused, and the server ends.
  std::set<std::string> paused_at;
  for (const std::string at : {"copied", "chunk written", "checked", "keyspace made",
                               "chunk restored", "versions skipped", "published"}) {
    SCOPED_TRACE(at);
    const bool is_create = at == "copied" || at == "chunk written";
    std::atomic<bool> is_there{false};
    std::atomic<bool> may_go{false};
    open([&](std::string_view point) -> Status {
      if (point != at) return {};
      is_there = true;
      while (!may_go) std::this_thread::yield();
      return Error{Code::unavailable, "crashed", job_stopped};
    });
    clock_.advance_ms(10);
    const std::string name = "restored-" + std::to_string(paused_at.size());
    const auto begun = is_create
                           ? backups_->create({.repository = repository(), .keyspace = "a"})
                           : backups_->restore({.repository = repository(), .name = name}, admin);
    ASSERT_OK(begun);
    while (!is_there) std::this_thread::yield();
    ASSERT_OK(backups_->pause(begun->id));
    may_go = true;
    wait(begun);
    open();
    ASSERT_EQ(backups_->jobs().size(), 1U);
    EXPECT_EQ(backups_->jobs()[0].state, JobState::paused);
    EXPECT_TRUE(backups_->jobs()[0].progress.paused);
    paused_at.insert(at);
    // And so it is after another one, and not once it was resumed.
    open();
    ASSERT_EQ(backups_->jobs().size(), 1U);
    EXPECT_EQ(backups_->jobs()[0].state, JobState::paused);
    ASSERT_OK(backups_->resume(begun->id));
    backups_->stop();
    open();
    wait_for_all();
    if (!backups_->jobs().empty()) {
      EXPECT_EQ(backups_->jobs()[0].state, JobState::done);
    }
    if (!is_create) expect_same(name, entries);
    EXPECT_EQ(work_left(), 0U);
    EXPECT_EQ(restore_records(), 0U);
  }
}

// Once the keyspace is given free there is no way back.
TEST_F(BackupJobsTest, CancelingARestoreThatIsPublishedComesTooLate) {
  Random random(21);
  make("a");
  fill("a", random, 100);
  const Entries entries = entries_of("a");
  ASSERT_EQ(create("a").state, JobState::done);
  std::atomic<bool> is_there{false};
  std::atomic<bool> may_go{false};
  open([&](std::string_view point) -> Status {
    if (point != "published") return {};
    is_there = true;
    while (!may_go) std::this_thread::yield();
    return {};
  });
  const auto begun = backups_->restore({.repository = repository(), .name = "b"}, admin);
  ASSERT_OK(begun);
  while (!is_there) std::this_thread::yield();
  ASSERT_OK(backups_->cancel(begun->id));
  may_go = true;
  EXPECT_EQ(wait(begun).state, JobState::done);
  expect_same("b", entries);
  EXPECT_EQ(restore_records(), 0U);
  EXPECT_EQ(work_left(), 0U);
}

// Another name of the folder is the same folder.
TEST_F(BackupJobsTest, NothingIsDeletedBesideAJobWhateverItsFolderIsCalled) {
  Random random(22);
  make("a");
  fill("a", random, 100);
  const std::string first = create("a").backup;
  const std::filesystem::path link = folder_.path() / "link";
  std::filesystem::create_directory_symlink(repository(), link);
  for (const std::filesystem::path& name : {repository() / "", link}) {
    SCOPED_TRACE(name);
    clock_.advance_ms(10);
    const auto begun =
        backups_->create({.repository = name, .keyspace = "a", .bytes_per_second = 1});
    ASSERT_OK(begun);
    EXPECT_REASON(backups_->remove(repository(), first), Code::busy, "repository_busy");
    ASSERT_OK(backups_->cancel(begun->id));
    EXPECT_EQ(wait(begun).state, JobState::canceled);
  }
  EXPECT_OK(backups_->remove(repository(), first));
}

TEST_F(BackupJobsTest, ADamagedBackupCanBeDeleted) {
  Random random(23);
  make("a");
  fill("a", random, 100);
  const std::string bad = create("a").backup;
  clock_.advance_ms(10);
  const std::string good = create("a").backup;
  std::ofstream(repository() / "backups" / (bad + ".backup"), std::ios::trunc) << "TRLBKUP";
  EXPECT_CODE(backups_->remove(repository(), good), Code::corrupt);  // what does the other need?
  EXPECT_CODE(backups_->remove(repository(), "20200101T000000-000-0000"), Code::not_found);
  EXPECT_OK(backups_->remove(repository(), bad));
  EXPECT_EQ(restore("b", good).state, JobState::done);
  EXPECT_OK(backups_->remove(repository(), good));
}

TEST_F(BackupJobsTest, AStreamThatIsDamagedLeavesNothing) {
  Random random(24);
  make("a");
  fill("a", random, 100);
  ASSERT_EQ(create("a").state, JobState::done);
  const auto spool = backups_->make_spool();
  ASSERT_OK(spool);
  std::filesystem::copy(repository(), *spool, std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(*spool / "chunks");
  const JobStatus job =
      wait(backups_->restore({.repository = *spool, .name = "b", .is_spool = true}, admin));
  EXPECT_EQ(job.state, JobState::failed);
  EXPECT_EQ(job.error->reason, "backup_damaged");
  EXPECT_EQ(work_left(), 0U);
  EXPECT_FALSE(std::filesystem::exists(*spool));
}

// It may be of another version, or readable tomorrow.
TEST_F(BackupJobsTest, AJobThatCannotBeReadIsLeftAsItIs) {
  const std::filesystem::path folder =
      folder_.path() / "store" / "backups" / "20261115T030000-000-4711";
  std::filesystem::create_directories(folder / "job");
  open();
  EXPECT_TRUE(backups_->jobs().empty());
  EXPECT_TRUE(std::filesystem::exists(folder));
  std::filesystem::remove(folder / "job");
  std::ofstream(folder / "job") << "damaged";
  open();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

// Whoever pauses a job that is just done must not leave a part of it behind.
TEST_F(BackupJobsTest, PausingAJobThatEndsLeavesNothing) {
  make("a");
  put("a", "key", "value");
  for (int i = 0; i < 20; i++) {
    const bool is_create = i % 2 == 0;
    clock_.advance_ms(10);
    const auto begun =
        is_create ? backups_->create({.repository = repository(), .keyspace = "a"})
                  : backups_->restore({.repository = repository(), .name = "b" + std::to_string(i)},
                                      admin);
    ASSERT_OK(begun);
    for (;;) {
      const auto paused = backups_->pause(begun->id);
      const auto resumed = backups_->resume(begun->id);
      if (!paused) {
        EXPECT_REASON(paused, Code::conflict, "job_over");
      }
      if (resumed) continue;
      EXPECT_REASON(resumed, Code::conflict, "job_over");
      break;
    }
    EXPECT_EQ(wait(begun).state, JobState::done);
    ASSERT_EQ(work_left(), 0U);
    ASSERT_EQ(restore_records(), 0U);
  }
}

TEST_F(BackupJobsTest, AStreamIsTheSameBackup) {
  Random random(17);
  make("a");
  fill("a", random, 500);
  const Entries entries = entries_of("a");
  Bytes stream;
  {
    auto source = backups_->open_source("a");
    ASSERT_OK(source);
    BackupStreamWriter writer(std::move(*source), 0);
    for (;;) {
      auto piece = writer.next();
      ASSERT_OK(piece);
      if (!*piece) break;
      stream += **piece;
    }
  }
  EXPECT_EQ(work_left(), 0U);
  const auto read = [&](ByteView bytes, size_t piece) -> Result<std::string> {
    std::filesystem::remove_all(repository());
    BackupStreamReader reader(std::move(*Repository::open_or_make(repository())));
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
      TRY(reader.write(bytes.substr(0, piece)));
    return reader.finish();
  };
  for (const size_t cut :
       {size_t{0}, size_t{3}, size_t{8}, size_t{12}, stream.size() / 2, stream.size() - 1})
    EXPECT_CODE(read(ByteView(stream).substr(0, cut), 4096), Code::corrupt);
  EXPECT_CODE(read(stream + "x", 4096), Code::corrupt);
  for (int i = 0; i < 8; i++) {
    Bytes bad = stream;
    bad[random.below(bad.size())] ^= 0x10;
    const auto id = read(bad, 70'000);
    // What cannot be seen in the stream is seen when it is checked.
    if (id) {
      EXPECT_EQ(restore("bad").error->reason, "backup_damaged");
    }
    EXPECT_CODE(keyspaces_->load("bad"), Code::not_found);
  }
  ASSERT_OK(read(stream, 70'000));
  ASSERT_EQ(restore("b").state, JobState::done);
  expect_same("b", entries);
}

TEST_F(BackupJobsTest, AllOfAStoreGoesIntoAnEmptyOne) {
  Random random(18);
  make("a");
  make("b");
  fill("a", random, 300);
  fill("b", random, 300);
  const JobStatus made = create("");
  ASSERT_EQ(made.state, JobState::done);
  const auto whole = [](Engine& engine) {
    Entries entries;
    std::optional<Bytes> from = Bytes();
    while (from) {
      auto page = engine.scan({.begin = *from, .end = {}}, [&](ByteView key, ByteView value) {
        if (!key.starts_with("\x01s")) entries[Bytes(key)] = value;
        return Visit::go_on;
      });
      EXPECT_OK(page);
      from = page ? std::move(page->resume) : std::nullopt;
    }
    return entries;
  };
  const RestorePlan plan{
      .repository = repository(), .backup = made.backup, .whole = true, .threads = 1};
  for (int crash_at = 0;; crash_at++) {
    const std::filesystem::path path = folder_.path() / ("new-" + std::to_string(crash_at));
    const auto run = [&](int crash) -> Status {
      TRY_ASSIGN(const auto engine, open_engine(path, clock_));
      JobControl control;
      int steps = 0;
      control.at_step = [&](std::string_view) -> Status {
        return steps++ == crash ? Status(Error{Code::unavailable, "crashed"}) : Status();
      };
      TRY(restore_store(plan, *engine, control));
      EXPECT_TRUE(whole(*engine) == whole(*engine_));
      return {};
    };
    if (run(crash_at)) {
      EXPECT_GT(crash_at, 2);
      break;
    }
    EXPECT_OK(run(-1));
  }
}

}  // namespace
}  // namespace trellis
