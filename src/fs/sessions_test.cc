#include "fs/sessions.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "fs/fs_fixture.h"
#include "fs/names.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

class SessionsTest : public FsFixture {
 protected:
  SessionId begin(std::string_view client = "test") {
    const auto session = fs_->begin_session(reader, client);
    EXPECT_OK(session);
    return session ? *session : SessionId{0};
  }
  bool exists(InodeId inode) {
    const auto seen = see_inode(memory_, id_, inode);
    EXPECT_OK(seen);
    return seen && seen->has_value();
  }
  bool is_held(SessionId session, InodeId inode) {
    Value held;
    EXPECT_OK(memory_.get(encode(FsOpenUnlinkedKey{id_, session, inode}), held));
    return held.found();
  }
  bool is_stored(SessionId session) {
    Value stored;
    EXPECT_OK(memory_.get(encode(FsSessionKey{id_, session}), stored));
    return stored.found();
  }
  // Of all kinds, due or not.
  size_t fs_notes() {
    size_t notes = 0;
    const auto [begin, end] = keyspace_interval(KeyMode::txn, id_);
    EXPECT_OK(memory_.scan({.begin = begin, .end = end}, [&](ByteView key, ByteView) {
      const auto note = decode<GarbageKey>(key);
      notes += note && note->model == Model::fs ? 1 : 0;
      return Visit::go_on;
    }));
    return notes;
  }
  size_t held_files() {
    const Bytes prefix = encode(FsSessionKey{id_, SessionId{0}}).substr(0, 6);
    size_t held = 0;
    EXPECT_OK(
        memory_.scan({.begin = prefix, .end = prefix_end(prefix)}, [&](ByteView key, ByteView) {
          held += decode<FsOpenUnlinkedKey>(key).has_value() ? 1 : 0;
          return Visit::go_on;
        }));
    return held;
  }
};

TEST_P(SessionsTest, AnOpenFileStaysWithoutNamesUntilItIsClosed) {
  const SessionId session = begin();
  const InodeId file = make_file(root_inode, "f", "content");
  ASSERT_OK(fs_->open_file(reader, session, file));
  ASSERT_OK(fs_->open_file(reader, session, file));
  ASSERT_OK(fs_->unlink(writer, root_inode, "f"));
  check();
  collect_all();
  EXPECT_EQ(stat(file).links, 0u);
  EXPECT_EQ(stat(file).size, 7u);
  // The session may open it again, as /proc/self/fd lets it; nobody else.
  ASSERT_OK(fs_->open_file(reader, session, file));
  EXPECT_EQ(fs_->open_file(reader, begin(), file).error().reason, "stale");
  for (int time = 0; time < 2; time++) ASSERT_OK(fs_->close_file(reader, session, file));
  collect_all();
  EXPECT_TRUE(exists(file));
  ASSERT_OK(fs_->close_file(reader, session, file));
  collect_all();
  EXPECT_FALSE(exists(file));
  EXPECT_EQ(held_files(), 0u);
  check();
}

TEST_P(SessionsTest, EveryHolderCounts) {
  const SessionId first = begin();
  const SessionId second = begin();
  const InodeId file = make_file(root_inode, "f", "content");
  const InodeId other = make_file(root_inode, "g", "more");
  ASSERT_OK(fs_->open_file(reader, first, file));
  ASSERT_OK(fs_->open_file(reader, second, file));
  // Replaced by a rename, which is as good as an unlink.
  ASSERT_OK(fs_->rename(writer, root_inode, "g", root_inode, "f"));
  EXPECT_EQ(stat(other).links, 1u);
  // Both in one millisecond: each leaves a note of its own.
  ASSERT_OK(fs_->close_file(reader, first, file));
  collect_all();
  EXPECT_TRUE(exists(file));
  ASSERT_OK(fs_->close_file(reader, second, file));
  check();
  collect_all();
  EXPECT_FALSE(exists(file));
  check();
}

TEST_P(SessionsTest, OpenDirectoriesStayToo) {
  const SessionId session = begin();
  const InodeId empty = make_directory(root_inode, "empty");
  const InodeId full = make_directory(root_inode, "full");
  const InodeId file = make_file(full, "f");
  for (const InodeId directory : {empty, full})
    ASSERT_OK(fs_->open_file(reader, session, directory));
  ASSERT_OK(fs_->open_file(reader, session, file));
  ASSERT_OK(fs_->remove_directory(writer, root_inode, "empty"));
  ASSERT_OK(fs_->remove_tree(writer, root_inode, "full"));
  EXPECT_TRUE(names(empty).empty());
  ASSERT_OK(fs_->close_file(reader, session, full));
  collect_all();
  EXPECT_TRUE(exists(empty));
  EXPECT_TRUE(exists(file));
  ASSERT_OK(fs_->end_session(reader, session));
  collect_all();
  for (const InodeId gone : {empty, full, file}) EXPECT_FALSE(exists(gone)) << gone.value;
  check();
}

TEST_P(SessionsTest, ASessionEndsWithAllThatItHeld) {
  const SessionId session = begin();
  std::vector<InodeId> files;
  for (int i = 0; i < 20; i++) {
    files.push_back(make_file(root_inode, "f" + std::to_string(i)));
    ASSERT_OK(fs_->open_file(reader, session, files.back()));
    if (i % 2 == 1) continue;
    ASSERT_OK(fs_->unlink(writer, root_inode, "f" + std::to_string(i)));
  }
  ASSERT_OK(fs_->end_session(reader, session));
  EXPECT_FALSE(is_stored(session));
  EXPECT_EQ(held_files(), 0u);
  collect_all();
  for (size_t i = 0; i < files.size(); i++) EXPECT_EQ(exists(files[i]), i % 2 == 1) << i;
  for (const Status& refused :
       {fs_->renew_session(reader, session), fs_->open_file(reader, session, files[1])})
    EXPECT_EQ(refused.error().reason, "session_gone");
  EXPECT_OK(fs_->end_session(reader, session));  // twice is no error
  // Its note, which came with it, goes when it is due.
  clock_.advance_ms(60'000);
  collect_all();
  EXPECT_EQ(fs_notes(), 0u);
  check();
}

TEST_P(SessionsTest, WhoIsNotHeardOfIsGone) {
  const SessionId silent = begin();
  const SessionId living = begin();
  const InodeId file = make_file(root_inode, "f");
  const InodeId other = make_file(root_inode, "g");
  ASSERT_OK(fs_->open_file(reader, silent, file));
  ASSERT_OK(fs_->open_file(reader, living, other));
  ASSERT_OK(fs_->unlink(writer, root_inode, "f"));
  ASSERT_OK(fs_->unlink(writer, root_inode, "g"));
  for (int i = 0; i < 3; i++) {
    clock_.advance_ms(20'000);
    ASSERT_OK(fs_->renew_session(reader, living));
  }
  collect_all();
  EXPECT_FALSE(is_stored(silent));
  EXPECT_FALSE(exists(file));
  EXPECT_TRUE(exists(other));
  EXPECT_EQ(fs_->renew_session(reader, silent).error().reason, "session_gone");
  EXPECT_EQ(fs_notes(), 1u) << "the living one's, moved to when it may be over";
  clock_.advance_ms(59'999);
  collect_all();
  EXPECT_TRUE(is_stored(living));
  clock_.advance_ms(1);
  collect_all();
  EXPECT_FALSE(is_stored(living));
  EXPECT_FALSE(exists(other));
  EXPECT_EQ(fs_notes(), 0u);
  check();
}

TEST_P(SessionsTest, AClockThatIsSetBackEndsNothing) {
  const SessionId session = begin();
  const InodeId file = make_file(root_inode, "f");
  ASSERT_OK(fs_->open_file(reader, session, file));
  ASSERT_OK(fs_->unlink(writer, root_inode, "f"));
  const uint64_t began_ms = clock_.unix_ms();
  clock_.jump_to_ms(began_ms - 3'600'000);
  ASSERT_OK(fs_->renew_session(reader, session));
  // A note that is due by another's clock: the session lives by this one's.
  const Garbage note{.due_ms = began_ms + 60'000,
                     .target = fs_note(FsNote::session, session.value),
                     .model = Model::fs};
  ASSERT_OK(systems_->collect(*tenant_, {&note, 1}));
  EXPECT_TRUE(is_stored(session));
  EXPECT_TRUE(exists(file));
  check();
  // Set ahead it may end early, with all that it held; then it is over for good.
  clock_.jump_to_ms(began_ms + 3'600'000);
  collect_all();
  EXPECT_FALSE(exists(file));
  clock_.jump_to_ms(began_ms);
  EXPECT_EQ(fs_->renew_session(reader, session).error().reason, "session_gone");
  check();
}

TEST_P(SessionsTest, AfterACrashNothingLeaks) {
  const SessionId session = begin();
  const InodeId unlinked = make_file(root_inode, "f");
  const InodeId named = make_file(root_inode, "g");
  for (const InodeId inode : {unlinked, named}) ASSERT_OK(fs_->open_file(reader, session, inode));
  ASSERT_OK(fs_->unlink(writer, root_inode, "f"));
  const auto unnamed = fs_->make_unnamed(writer, session, root_inode, {.content = "half"});
  ASSERT_OK(unnamed);
  open_files_anew();
  collect_all();
  EXPECT_TRUE(exists(unlinked)) << "its client may come back";
  ASSERT_OK(fs_->open_file(reader, session, unlinked));
  open_files_anew();
  clock_.advance_ms(60'000);
  collect_all();
  EXPECT_FALSE(exists(unlinked));
  EXPECT_FALSE(exists(unnamed->inode));
  EXPECT_TRUE(exists(named));
  EXPECT_EQ(held_files(), 0u);
  EXPECT_EQ(fs_notes(), 0u);
  check();
}

TEST_P(SessionsTest, AnUnnamedFileIsCountedWhenItIsAdopted) {
  const SessionId session = begin();
  const InodeId directory = make_directory(root_inode, "d");
  ASSERT_OK(fs_->set_quota(writer, directory, {.bytes_max = 0, .inodes_max = 1}));
  const auto made = fs_->make_unnamed(writer, session, directory, {.content = "complete"});
  ASSERT_OK(made);
  EXPECT_EQ(made->links, 0u);
  EXPECT_EQ(fs_->tree_figures(reader, root_inode)->inodes, 1u);
  collect_all();
  const auto adopted = fs_->adopt(writer, session, made->inode, directory, "f", {});
  ASSERT_OK(adopted);
  EXPECT_EQ(adopted->links, 1u);
  EXPECT_EQ(adopted->parent, directory);
  EXPECT_EQ(fs_->lookup(reader, directory, "f")->inode, made->inode);
  EXPECT_EQ(fs_->tree_figures(reader, root_inode)->inodes, 2u);
  EXPECT_EQ(fs_->tree_figures(reader, directory)->length, 8u);
  check();
  EXPECT_FALSE(fs_->adopt(writer, session, made->inode, directory, "g", {}).has_value())
      << "once is enough";
  // The quota holds, and what is refused stays as it was.
  const auto second = fs_->make_unnamed(writer, session, directory, {.content = "no room"});
  ASSERT_OK(second);
  EXPECT_EQ(fs_->adopt(writer, session, second->inode, directory, "g", {}).error().reason,
            "directory_quota_exceeded");
  // In place of another it takes no more room.
  ASSERT_OK(fs_->adopt(writer, session, second->inode, directory, "f", {}));
  for (const InodeId inode : {made->inode, second->inode})
    ASSERT_OK(fs_->close_file(writer, session, inode));
  collect_all();
  EXPECT_FALSE(exists(made->inode)) << "it was replaced, and is closed";
  EXPECT_EQ(names(directory), std::vector<std::string>{"f"});
  EXPECT_EQ(stat(second->inode).size, 7u);
  EXPECT_EQ(held_files(), 0u);
  check();
}

// Whoever has it open then is known in memory; where others share the map it is stored.
TEST_P(SessionsTest, AnAdoptedFileIsHeldNoMoreThanOthersThatAreOpen) {
  const SessionId session = begin();
  const size_t held_with_name = GetParam() == Way::latched ? 0 : 1;
  const auto made = fs_->make_unnamed(writer, session, root_inode, {.content = "content"});
  ASSERT_OK(made);
  EXPECT_EQ(held_files(), 1u);
  ASSERT_OK(fs_->adopt(writer, session, made->inode, root_inode, "f", {}));
  EXPECT_EQ(held_files(), held_with_name);
  // It is open all the same.
  ASSERT_OK(fs_->unlink(writer, root_inode, "f"));
  EXPECT_EQ(held_files(), 1u);
  collect_all();
  EXPECT_TRUE(exists(made->inode));
  ASSERT_OK(fs_->close_file(writer, session, made->inode));
  collect_all();
  EXPECT_FALSE(exists(made->inode));
  // Locks that it has are found when its session ends.
  const auto locked = fs_->make_unnamed(writer, session, root_inode, {.content = "content"});
  ASSERT_OK(locked);
  const FsLock all{.session = session,
                   .owner = 1,
                   .first = 0,
                   .last = UINT64_MAX,
                   .process = 1,
                   .type = FileLockType::exclusive};
  ASSERT_OK(fs_->lock(writer, locked->inode, FileSystem::LockKind::posix, all));
  ASSERT_OK(fs_->adopt(writer, session, locked->inode, root_inode, "f", {}));
  ASSERT_OK(fs_->end_session(writer, session));
  EXPECT_EQ(held_files(), 0u);
  EXPECT_EQ(entries_in(encode(FsLockKey{id_, locked->inode, 0}),
                       encode(FsLockKey{id_, InodeId{locked->inode.value + 1}, 0})),
            0u);
  check();
}

TEST_P(SessionsTest, AdoptionKeepsItsConditions) {
  const SessionId session = begin();
  const auto made = fs_->make_unnamed(writer, session, root_inode, {.content = "new"});
  ASSERT_OK(made);
  const auto adopt = [&](ByteView name, FileSystem::Adoption how) -> std::string {
    const auto adopted = fs_->adopt(writer, session, made->inode, root_inode, name, how);
    return adopted ? "adopted" : std::string(adopted.error().reason);
  };
  make_file(root_inode, "there", "old");
  make_directory(root_inode, "d");
  const uint64_t version = fs_->lookup(reader, root_inode, "there")->version;
  EXPECT_EQ(adopt("there", {.replace = false}), "exists");
  EXPECT_EQ(adopt("there", {.expected = {.version = version + 1}}), "condition_failed");
  EXPECT_EQ(adopt("absent", {.expected = {.version = version}}), "condition_failed");
  EXPECT_EQ(adopt("d", {}), "is_a_directory");
  EXPECT_EQ(adopt("d", {.expected = {.version = 1}}), "is_a_directory");
  EXPECT_EQ(adopt("a/b", {}), "illegal_name");
  EXPECT_EQ(fs_->adopt(writer, begin(), made->inode, root_inode, "x", {}).error().reason, "stale")
      << "another session's";
  check();
  EXPECT_EQ(adopt("there", {.expected = {.version = version}}), "adopted");
  EXPECT_EQ(fs_->lookup(reader, root_inode, "there")->inode, made->inode);
  EXPECT_EQ(
      fs_->make_unnamed(writer, session, root_inode, {.type = FileType::directory}).error().reason,
      "not_permitted");
  EXPECT_EQ(fs_->make_unnamed(writer, SessionId{9}, root_inode, {}).error().reason, "session_gone");
  check();
}

TEST_P(SessionsTest, WhoMayOnlyReadMayOpen) {
  const InodeId file = make_file(root_inode, "f");
  const SessionId session = begin();
  ASSERT_OK(fs_->open_file(reader, session, file));
  ASSERT_OK(fs_->close_file(reader, session, file));
  EXPECT_FALSE(fs_->make_unnamed(reader, session, root_inode, {}).has_value());
  ASSERT_OK(fs_->renew_session(reader, session));
  EXPECT_EQ(fs_->begin_session(reader, std::string(256, 'c')).error().reason, "invalid_argument");
  EXPECT_EQ(fs_->open_file(reader, session, InodeId{999'999}).error().reason, "stale");
}

// Whoever opened it has it, whatever comes at the same moment; afterwards nothing is left.
TEST_P(SessionsTest, OpenAndUnlinkDoNotMissEachOther) {
  const uint64_t seed = test_seed(6);
  SCOPED_TRACE(seed);
  const int rounds = static_cast<int>(test_rounds(200));
  for (int round = 0; round < rounds; round++) {
    const InodeId file = make_file(root_inode, "f", "content");
    std::atomic<int> ready{0};
    const auto meet = [&] {
      ready++;
      while (ready < 3) std::this_thread::yield();
    };
    const SessionId sessions[] = {begin(), begin()};
    Status opened[2];
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 2; i++)
      threads.emplace_back([&, i] {
        meet();
        opened[i] = fs_->open_file(reader, sessions[i], file);
        EXPECT_TRUE(!opened[i] || exists(file));
      });
    meet();
    EXPECT_OK(fs_->unlink(writer, root_inode, "f"));
    for (std::thread& thread : threads) thread.join();
    collect_all();
    EXPECT_EQ(exists(file), opened[0] || opened[1]) << round;
    for (size_t i = 0; i < 2; i++) {
      EXPECT_TRUE(opened[i] || opened[i].error().reason == "stale");
      ASSERT_OK(fs_->end_session(reader, sessions[i]));
    }
    collect_all();
    ASSERT_FALSE(exists(file)) << round;
  }
  check();
}

// Sessions that end while their files lose their names.
TEST_P(SessionsTest, EndAndUnlinkDoNotMissEachOther) {
  const int rounds = static_cast<int>(test_rounds(200));
  for (int round = 0; round < rounds; round++) {
    const InodeId file = make_file(root_inode, "f");
    const SessionId session = begin();
    ASSERT_OK(fs_->open_file(reader, session, file));
    std::thread ends([&] { EXPECT_OK(fs_->end_session(reader, session)); });
    EXPECT_OK(fs_->unlink(writer, root_inode, "f"));
    ends.join();
    collect_all();
    ASSERT_FALSE(exists(file)) << round;
    ASSERT_EQ(held_files(), 0u) << round;
  }
  check();
}

// Two processes that share a map, which know of each other only what is stored.
class TwoProcessesTest : public SessionsTest {
 protected:
  void SetUp() override {
    SessionsTest::SetUp();
    auto keyspaces = Keyspaces::open(other_map_, {});
    ASSERT_OK(keyspaces);
    other_keyspaces_ = std::move(*keyspaces);
    auto tenant = other_keyspaces_->tenant(id_);
    ASSERT_OK(tenant);
    auto opened = FileSystem::open(*tenant);
    ASSERT_OK(opened);
    other_ = *opened;
  }

  Transactor other_transactor_{memory_, clock_, transact_options_};
  MapHandle other_map_{memory_, other_transactor_, clock_};
  std::unique_ptr<Keyspaces> other_keyspaces_;
  std::shared_ptr<FileSystem> other_;
};

TEST_P(TwoProcessesTest, WhatOneHasOpenStaysThoughTheOtherRemovesIt) {
  const SessionId session = begin();
  const InodeId file = make_file(root_inode, "f", "content");
  ASSERT_OK(fs_->open_file(reader, session, file));
  ASSERT_OK(other_->unlink(writer, root_inode, "f"));
  collect_all();
  EXPECT_EQ(stat(file).size, 7u);
  const auto session_there = other_->begin_session(reader, "there");
  ASSERT_OK(session_there);
  EXPECT_EQ(other_->open_file(reader, *session_there, file).error().reason, "stale");
  ASSERT_OK(fs_->close_file(reader, session, file));
  collect_all();
  EXPECT_FALSE(exists(file));
  tenant_->doubt_figures();
  check();
}

TEST_P(TwoProcessesTest, OpenAndUnlinkDoNotMissEachOther) {
  const int rounds = static_cast<int>(test_rounds(100));
  for (int round = 0; round < rounds; round++) {
    const InodeId file = make_file(root_inode, "f", "content");
    const SessionId session = begin();
    Status opened;
    std::thread opens([&] { opened = fs_->open_file(reader, session, file); });
    EXPECT_OK(other_->unlink(writer, root_inode, "f"));
    opens.join();
    collect_all();
    ASSERT_EQ(exists(file), opened.has_value()) << round;
    ASSERT_OK(other_->end_session(reader, session));
    collect_all();
    ASSERT_FALSE(exists(file)) << round;
    ASSERT_EQ(held_files(), 0u) << round;
  }
  check();
}

TEST_P(TwoProcessesTest, LocksHoldForBoth) {
  const InodeId file = make_file(root_inode, "f");
  const SessionId here = begin();
  const SessionId there = *other_->begin_session(reader, "there");
  ASSERT_OK(fs_->open_file(reader, here, file));
  ASSERT_OK(other_->open_file(reader, there, file));
  const auto lock_of = [](SessionId session) {
    return FsLock{session, 1, 0, 9, 1, FileLockType::exclusive};
  };
  constexpr auto posix = FileSystem::LockKind::posix;
  ASSERT_OK(fs_->lock(reader, file, posix, lock_of(here)));
  EXPECT_EQ(other_->lock(reader, file, posix, lock_of(there)).error().reason, "would_block");
  Status waited;
  std::thread waits([&] { waited = other_->lock(reader, file, posix, lock_of(there), 600'000); });
  ASSERT_OK(fs_->unlock(reader, file, posix, lock_of(here)));
  waits.join();
  EXPECT_OK(waited);
  EXPECT_EQ(fs_->lock(reader, file, posix, lock_of(here)).error().reason, "would_block");
}

INSTANTIATE_TEST_SUITE_P(Ways, TwoProcessesTest, testing::Values(Way::expecting), way_name);
INSTANTIATE_TEST_SUITE_P(Ways, SessionsTest, testing::Values(Way::latched, Way::expecting),
                         way_name);

}  // namespace
}  // namespace trellis
