#include "fs/locks.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <thread>

#include "base/random.h"
#include "fs/fs_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using LockKind = FileSystem::LockKind;

FsLock lock_of(uint64_t session, uint64_t owner, uint64_t first, uint64_t last, FileLockType type) {
  return {SessionId{session}, owner, first, last, static_cast<uint32_t>(owner), type};
}
constexpr FileLockType shared = FileLockType::shared;
constexpr FileLockType exclusive = FileLockType::exclusive;

// --- the list ---

TEST(LockList, SplitsJoinsAndChangesRanges) {
  LockList list;
  list.set(lock_of(1, 1, 10, 29, exclusive));
  list.set(lock_of(1, 1, 15, 19, shared));  // in the middle: three
  EXPECT_EQ(list.locks(),
            (std::vector{lock_of(1, 1, 10, 14, exclusive), lock_of(1, 1, 15, 19, shared),
                         lock_of(1, 1, 20, 29, exclusive)}));
  list.set(lock_of(1, 1, 15, 19, exclusive));  // one again
  EXPECT_EQ(list.locks(), (std::vector{lock_of(1, 1, 10, 29, exclusive)}));
  list.clear(lock_of(1, 1, 0, 9, shared));
  list.clear(lock_of(1, 2, 10, 29, shared));
  EXPECT_EQ(list.locks().size(), 1u) << "neither beside it nor of another owner";
  list.clear(lock_of(1, 1, 12, 12, shared));
  EXPECT_EQ(list.locks(),
            (std::vector{lock_of(1, 1, 10, 11, exclusive), lock_of(1, 1, 13, 29, exclusive)}));
  list.clear(lock_of(1, 1, 0, UINT64_MAX, shared));
  EXPECT_TRUE(list.locks().empty());
}

TEST(LockList, ReachesToTheLastByteThereIs) {
  LockList list;
  list.set(lock_of(1, 1, UINT64_MAX, UINT64_MAX, exclusive));
  list.set(lock_of(1, 1, 0, 0, exclusive));
  EXPECT_EQ(list.locks().size(), 2u) << "the first byte does not follow the last";
  list.set(lock_of(1, 1, 0, UINT64_MAX, exclusive));
  EXPECT_EQ(list.locks(), (std::vector{lock_of(1, 1, 0, UINT64_MAX, exclusive)}));
  list.clear(lock_of(1, 1, UINT64_MAX, UINT64_MAX, shared));
  EXPECT_EQ(list.locks(), (std::vector{lock_of(1, 1, 0, UINT64_MAX - 1, exclusive)}));
}

TEST(LockList, RefusesBytesThatAreNone) {
  LockList list;
  list.set(lock_of(1, 2, 3, 4, shared));
  const Bytes bytes = list.encode();
  EXPECT_EQ(LockList::decode(bytes)->locks(), list.locks());
  EXPECT_TRUE(LockList::decode(LockList().encode())->locks().empty());
  for (size_t size = 0; size < bytes.size(); size++)
    EXPECT_EQ(LockList::decode(ByteView(bytes).substr(0, size)).has_value(), size == 1) << size;
  EXPECT_FALSE(LockList::decode(bytes + '\0').has_value());
}

// What each owner has of each byte: as simple as it gets.
class ByteLocks {
 public:
  static constexpr uint64_t bytes = 24;
  using Owner = std::pair<uint64_t, uint64_t>;

  bool conflicts(const FsLock& wanted) const {
    for (uint64_t byte = wanted.first; byte <= wanted.last; byte++)
      for (const auto& [owner, type] : locked_[byte])
        if (owner != owner_of(wanted) && (type == exclusive || wanted.type == exclusive))
          return true;
    return false;
  }
  void set(const FsLock& wanted) {
    for (uint64_t byte = wanted.first; byte <= wanted.last; byte++)
      locked_[byte][owner_of(wanted)] = wanted.type;
  }
  void clear(const FsLock& range) {
    for (uint64_t byte = range.first; byte <= range.last; byte++)
      locked_[byte].erase(owner_of(range));
  }
  void drop(uint64_t session) {
    for (auto& byte : locked_)
      std::erase_if(byte, [&](const auto& lock) { return lock.first.first == session; });
  }
  // The least locks that say so.
  std::vector<FsLock> locks() const {
    std::map<Owner, std::vector<FsLock>> found;
    for (uint64_t byte = 0; byte < bytes; byte++)
      for (const auto& [owner, type] : locked_[byte]) {
        std::vector<FsLock>& of_owner = found[owner];
        if (!of_owner.empty() && of_owner.back().last + 1 == byte && of_owner.back().type == type)
          of_owner.back().last = byte;
        else
          of_owner.push_back(lock_of(owner.first, owner.second, byte, byte, type));
      }
    std::vector<FsLock> all;
    for (const auto& [owner, locks] : found) all.insert(all.end(), locks.begin(), locks.end());
    return all;
  }

 private:
  static Owner owner_of(const FsLock& lock) { return {lock.session.value, lock.owner}; }
  std::array<std::map<Owner, FileLockType>, bytes> locked_;
};

FsLock random_lock(Random& random) {
  const uint64_t first = random.below(ByteLocks::bytes);
  const uint64_t last = first + random.below(ByteLocks::bytes - first);
  return lock_of(1 + random.below(3), 1 + random.below(2), first, last,
                 random.below(2) == 0 ? shared : exclusive);
}

TEST(LockList, IsWhatLockedBytesAre) {
  const uint64_t seed = test_seed(20261116);
  SCOPED_TRACE(seed);
  Random random(seed);
  LockList list;
  ByteLocks model;
  size_t refused = 0;
  for (uint64_t step = 0; step < test_rounds(50'000); step++) {
    const FsLock lock = random_lock(random);
    const uint64_t what = random.below(20);
    if (what == 0) {
      list.drop(lock.session);
      model.drop(lock.session.value);
    } else if (what < 8) {
      list.clear(lock);
      model.clear(lock);
    } else {
      const FsLock* const conflict = list.conflict(lock);
      ASSERT_EQ(conflict != nullptr, model.conflicts(lock)) << step;
      refused += conflict != nullptr ? 1 : 0;
      if (conflict == nullptr) {
        list.set(lock);
        model.set(lock);
      }
    }
    ASSERT_EQ(list.locks(), model.locks()) << step;
    if (step % 16 == 0) {
      const auto again = LockList::decode(list.encode());
      ASSERT_OK(again);
      list = *again;
    }
  }
  EXPECT_GT(refused, 100u);
}

// --- of files ---

class LocksTest : public FsFixture {
 protected:
  void SetUp() override {
    FsFixture::SetUp();
    file_ = make_file(root_inode, "f");
    for (SessionId& session : sessions_) session = begin("client");
  }
  SessionId begin(std::string_view client) {
    const auto session = fs_->begin_session(reader, client);
    EXPECT_OK(session);
    EXPECT_OK(fs_->open_file(reader, *session, file_));
    return *session;
  }
  Status lock(size_t session, uint64_t owner, uint64_t first, uint64_t last, FileLockType type,
              uint64_t wait_ms = 0) {
    return fs_->lock(reader, file_, LockKind::posix,
                     lock_of(sessions_[session].value, owner, first, last, type), wait_ms);
  }
  Status unlock(size_t session, uint64_t owner, uint64_t first, uint64_t last) {
    return fs_->unlock(reader, file_, LockKind::posix,
                       lock_of(sessions_[session].value, owner, first, last, shared));
  }
  Status flock(size_t session, uint64_t owner, FileLockType type, uint64_t wait_ms = 0) {
    return fs_->lock(reader, file_, LockKind::flock,
                     lock_of(sessions_[session].value, owner, 0, 0, type), wait_ms);
  }
  std::vector<FsLock> stored(unsigned char kind = 1) {
    Value value;
    EXPECT_OK(memory_.get(encode(FsLockKey{id_, file_, kind}), value));
    if (!value.found()) return {};
    const auto list = LockList::decode(value.bytes());
    EXPECT_OK(list);
    return list->locks();
  }
  static std::string reason(const Status& status) {
    return status ? "" : std::string(status.error().reason);
  }

  InodeId file_;
  std::array<SessionId, 3> sessions_;
};

TEST_P(LocksTest, ConflictsAreRefusedByName) {
  ASSERT_OK(lock(0, 7, 0, 99, exclusive));
  const Status refused = lock(1, 7, 50, 50, shared);
  EXPECT_EQ(reason(refused), "would_block");
  EXPECT_EQ(refused.error().code, Code::busy);
  EXPECT_NE(
      refused.error().message.find("process 7 of session " + std::to_string(sessions_[0].value)),
      std::string::npos)
      << refused.error().message;
  EXPECT_EQ(reason(lock(0, 8, 50, 50, shared)), "would_block") << "owners of one session, too";
  EXPECT_OK(lock(0, 7, 50, 50, shared));
  EXPECT_OK(lock(1, 7, 50, 50, shared));
  EXPECT_EQ(reason(lock(0, 7, 50, 50, exclusive)), "would_block");
  EXPECT_EQ(stored().size(), 4u) << "what was refused changed nothing";
  ASSERT_OK(unlock(1, 7, 0, UINT64_MAX));
  EXPECT_OK(lock(0, 7, 50, 50, exclusive));
  EXPECT_EQ(stored().size(), 1u);

  const auto test = [&](uint64_t first, uint64_t last) {
    return fs_->test_lock(reader, file_, LockKind::posix,
                          lock_of(sessions_[1].value, 7, first, last, shared));
  };
  EXPECT_EQ(*test(99, 200), lock_of(sessions_[0].value, 7, 0, 99, exclusive));
  EXPECT_EQ(*test(100, 200), std::nullopt);
  check();
}

TEST_P(LocksTest, KindsSeeNothingOfEachOther) {
  ASSERT_OK(flock(0, 1, exclusive));
  ASSERT_OK(lock(1, 1, 0, 9, exclusive));
  EXPECT_EQ(reason(flock(1, 1, shared)), "would_block");
  ASSERT_OK(flock(0, 1, shared));
  ASSERT_OK(flock(1, 1, shared));
  EXPECT_EQ(stored(0).size(), 2u);
  ASSERT_OK(
      fs_->unlock(reader, file_, LockKind::flock, lock_of(sessions_[0].value, 1, 5, 5, shared)));
  EXPECT_EQ(stored(0).size(), 1u) << "all of it";
  check();
}

TEST_P(LocksTest, OnlyOpenFilesAreLocked) {
  const InodeId other = make_file(root_inode, "g");
  const FsLock wanted = lock_of(sessions_[0].value, 1, 0, 9, exclusive);
  EXPECT_EQ(reason(fs_->lock(reader, other, LockKind::posix, wanted)), "not_open");
  EXPECT_EQ(reason(lock(0, 1, 9, 8, shared)), "invalid_argument");
  EXPECT_EQ(reason(fs_->lock(reader, file_, LockKind::posix, lock_of(999, 1, 0, 9, shared))),
            "session_gone");
}

TEST_P(LocksTest, TheLastCloseGivesThemBack) {
  ASSERT_OK(fs_->open_file(reader, sessions_[0], file_));
  ASSERT_OK(lock(0, 1, 0, 9, exclusive));
  ASSERT_OK(flock(0, 1, exclusive));
  ASSERT_OK(fs_->close_file(reader, sessions_[0], file_));
  EXPECT_EQ(reason(lock(1, 1, 0, 0, shared)), "would_block");
  ASSERT_OK(fs_->close_file(reader, sessions_[0], file_));
  EXPECT_OK(lock(1, 1, 0, 0, shared));
  EXPECT_OK(flock(1, 1, shared));
  check();
}

TEST_P(LocksTest, SessionsThatAreGoneHaveNone) {
  for (const size_t session : {0, 1}) ASSERT_OK(lock(session, 1, 0, 9, shared));
  ASSERT_OK(lock(0, 1, 20, 29, exclusive));
  clock_.advance_ms(30'000);
  ASSERT_OK(fs_->renew_session(reader, sessions_[2]));
  ASSERT_OK(fs_->renew_session(reader, sessions_[1]));
  clock_.advance_ms(30'000);
  // The first one is over. What it has counts for nobody, before and after it is cleared away.
  const FsLock wanted = lock_of(sessions_[2].value, 1, 20, 29, exclusive);
  EXPECT_EQ(*fs_->test_lock(reader, file_, LockKind::posix, wanted), std::nullopt);
  EXPECT_EQ(reason(lock(2, 1, 0, 9, exclusive)), "would_block") << "the second one lives";
  EXPECT_OK(lock(2, 1, 20, 29, exclusive));
  EXPECT_EQ(stored(), (std::vector{lock_of(sessions_[1].value, 1, 0, 9, shared), wanted}));
  // It cannot come back and believe that it has it still, even if a clock is set back.
  clock_.jump_to_ms(start_ms);
  EXPECT_EQ(reason(fs_->renew_session(reader, sessions_[0])), "session_gone");
  clock_.jump_to_ms(start_ms + 60'000);
  collect_all();
  EXPECT_EQ(stored().size(), 2u);
  clock_.advance_ms(60'000);
  collect_all();
  EXPECT_TRUE(stored().empty());
  check();
}

TEST_P(LocksTest, AfterACrashTheyStayUntilTheSessionIsOver) {
  ASSERT_OK(lock(0, 1, 0, 9, exclusive));
  open_files_anew();
  sessions_[1] = begin("next");
  EXPECT_EQ(reason(lock(1, 1, 0, 0, shared)), "would_block");
  clock_.advance_ms(59'999);
  ASSERT_OK(fs_->renew_session(reader, sessions_[1]));
  clock_.advance_ms(1);
  EXPECT_OK(lock(1, 1, 0, 0, shared));
  collect_all();
  EXPECT_EQ(stored().size(), 1u);
  check();
}

TEST_P(LocksTest, OfACrashedProcessKeepTheFileToo) {
  ASSERT_OK(lock(0, 1, 0, 9, exclusive));
  open_files_anew();
  ASSERT_OK(fs_->unlink(writer, root_inode, "f"));
  collect_all();
  EXPECT_EQ(stored().size(), 1u);
  EXPECT_EQ(stat(file_).links, 0u) << "its session may come back";
  clock_.advance_ms(60'000);
  collect_all();
  EXPECT_TRUE(stored().empty());
  EXPECT_EQ(fs_->stat(reader, file_).error().reason, "stale");
  // From now on nobody holds what this process does not know of: a small file goes at once.
  const InodeId next = make_file(root_inode, "next");
  ASSERT_OK(fs_->unlink(writer, root_inode, "next"));
  EXPECT_EQ(fs_->stat(reader, next).has_value(), GetParam() == Way::expecting);
  check();
}

TEST_P(LocksTest, ThereAreNotTooMany) {
  LockList full;
  for (uint64_t i = 0; i < file_locks_max; i++)
    full.set(lock_of(sessions_[0].value, 1, 2 * i, 2 * i, shared));
  ASSERT_EQ(full.locks().size(), file_locks_max);
  const Bytes key = encode(FsLockKey{id_, file_, 1});
  ASSERT_OK(
      tenant_->collect(Model::fs, Scope::in(id_).exclusive(key), [&](CountedView& view) -> Status {
        Value old;
        TRY(view.get(key, old));
        view.put(key, full.encode(), old);
        return {};
      }));
  EXPECT_EQ(reason(lock(1, 1, 0, 0, shared)), "too_many_locks");
  EXPECT_OK(lock(0, 1, 0, 2, shared));
  EXPECT_EQ(stored().size(), file_locks_max - 1);
  ASSERT_OK(lock(0, 1, 1'000'000, 1'000'002, shared));
  EXPECT_EQ(reason(unlock(0, 1, 1'000'001, 1'000'001)), "too_many_locks");
  EXPECT_EQ(stored().size(), file_locks_max);
  ASSERT_OK(unlock(0, 1, 0, UINT64_MAX));
  EXPECT_TRUE(stored().empty());
  check();
}

TEST_P(LocksTest, WhoWaitsIsWokenByARelease) {
  ASSERT_OK(lock(0, 1, 0, 9, exclusive));
  Status waited;
  std::thread waiter([&] { waited = lock(1, 1, 5, 14, exclusive, 600'000); });
  // It is refused as long as the lock is held, and gets it as soon as it is not.
  ASSERT_OK(unlock(0, 1, 0, 4));
  EXPECT_EQ(reason(lock(1, 2, 5, 5, exclusive)), "would_block");
  ASSERT_OK(unlock(0, 1, 5, 9));
  waiter.join();
  EXPECT_OK(waited);
  EXPECT_EQ(stored(), (std::vector{lock_of(sessions_[1].value, 1, 5, 14, exclusive)}));

  ASSERT_OK(flock(1, 1, exclusive));
  std::thread second([&] { waited = flock(2, 1, shared, 600'000); });
  ASSERT_OK(fs_->close_file(reader, sessions_[1], file_));
  second.join();
  EXPECT_OK(waited);
}

TEST_P(LocksTest, WaitingEnds) {
  ASSERT_OK(lock(0, 1, 0, 9, exclusive));
  EXPECT_EQ(reason(lock(1, 1, 0, 0, shared, 20)), "would_block");
  ASSERT_OK(flock(0, 1, exclusive));
  EXPECT_EQ(reason(flock(1, 1, shared, 20)), "would_block");
}

TEST_P(LocksTest, CirclesAreFound) {
  for (uint64_t i = 0; i < 3; i++) ASSERT_OK(lock(i, 1, i, i, exclusive));
  // Each waits for the next one. Whoever closes the circle is refused; the others go on.
  std::array<Status, 3> waited;
  std::vector<std::thread> waiters;
  for (size_t i = 0; i < 3; i++)
    waiters.emplace_back([&, i] {
      waited[i] = lock(i, 1, (i + 1) % 3, (i + 1) % 3, exclusive, UINT64_MAX);
      EXPECT_OK(unlock(i, 1, 0, UINT64_MAX));
    });
  for (std::thread& waiter : waiters) waiter.join();
  size_t circles = 0;
  for (const Status& status : waited) {
    EXPECT_TRUE(status || status.error().reason == "deadlock");
    circles += status ? 0 : 1;
  }
  EXPECT_EQ(circles, 1u);
  EXPECT_TRUE(stored().empty());
}

// Several clients count up what only the lock protects.
TEST_P(LocksTest, ExclusiveMeansAlone) {
  constexpr int times = 50;
  int counted = 0;
  std::vector<std::thread> clients;
  for (size_t i = 0; i < sessions_.size(); i++)
    clients.emplace_back([&, i] {
      for (int time = 0; time < times; time++) {
        EXPECT_OK(lock(i, 1, 3, 5, exclusive, 600'000));
        counted++;
        EXPECT_OK(unlock(i, 1, 3, 5));
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(counted, times * 3);
  check();
}

TEST_P(LocksTest, AreWhatLockedBytesAre) {
  const uint64_t seed = test_seed(20261117);
  SCOPED_TRACE(seed);
  Random random(seed);
  ByteLocks model;
  for (uint64_t step = 0; step < test_rounds(2'000); step++) {
    FsLock wanted = random_lock(random);
    wanted.session = sessions_[wanted.session.value - 1];
    if (random.below(40) == 0) {
      ASSERT_OK(fs_->end_session(reader, wanted.session));
      model.drop(wanted.session.value);
      for (SessionId& session : sessions_)
        if (session == wanted.session) session = begin("again");
    } else if (random.below(3) == 0) {
      ASSERT_OK(fs_->unlock(reader, file_, LockKind::posix, wanted));
      model.clear(wanted);
    } else {
      const Status locked = fs_->lock(reader, file_, LockKind::posix, wanted);
      ASSERT_EQ(locked.has_value(), !model.conflicts(wanted)) << step;
      if (locked) model.set(wanted);
    }
    ASSERT_EQ(stored(), model.locks()) << step;
  }
  check();
}

INSTANTIATE_TEST_SUITE_P(Ways, LocksTest, testing::Values(Way::latched, Way::expecting), way_name);

}  // namespace
}  // namespace trellis
