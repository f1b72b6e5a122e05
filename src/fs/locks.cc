#include "fs/locks.h"

#include <algorithm>
#include <tuple>

#include "codec/fs_keys.h"
#include "fs/file_system.h"
#include "fs/fs_error.h"
#include "fs/sessions.h"

namespace trellis {
namespace {

// A lock may also become free without word to this process: when a session expires, or where others
// share the map.
constexpr uint64_t lock_poll_alone_ms = 1'000;
constexpr uint64_t lock_poll_shared_ms = 50;
// For ever, as far as a clock in nanoseconds can add it.
constexpr uint64_t lock_wait_ms_max = 100ull * 365 * 24 * 3'600 * 1'000;
// Sessions that are gone, of which one attempt after the other clears one away.
constexpr size_t gone_holders_max = 32;

bool is_same_owner(const FsLock& a, const FsLock& b) {
  return a.session == b.session && a.owner == b.owner;
}

auto place_of(const FsLock& lock) { return std::tuple(lock.session, lock.owner, lock.first); }

bool is_before(const FsLock& a, const FsLock& b) { return place_of(a) < place_of(b); }

unsigned char key_word_of(FileSystem::LockKind kind) {
  return kind == FileSystem::LockKind::flock ? 0 : 1;
}

struct StoredLocks {
  Bytes key;
  Value stored;
  LockList list;
};

template <class Map>
Result<StoredLocks> read_locks(Map& map, KeyspaceId keyspace, InodeId inode, unsigned char kind) {
  StoredLocks locks{encode(FsLockKey{keyspace, inode, kind}), {}, {}};
  TRY(map.get(locks.key, locks.stored));
  if (!locks.stored.found()) return locks;
  auto list = LockList::decode(locks.stored.bytes());
  if (!list)
    return fs_error::corrupt(
        fmt::format("locks of inode {}: {}", inode.value, list.error().message));
  locks.list = std::move(*list);
  return locks;
}

void write_locks(CountedView& view, const StoredLocks& locks) {
  if (!locks.list.locks().empty())
    view.put(locks.key, locks.list.encode(), locks.stored);
  else if (locks.stored.found())
    view.remove(locks.key, locks.stored);
}

FsLock with_range_of(FileSystem::LockKind kind, FsLock lock) {
  if (kind == FileSystem::LockKind::posix) return lock;
  lock.first = 0;
  lock.last = UINT64_MAX;
  return lock;
}

}  // namespace

// --- the list ---

Result<LockList> LockList::decode(ByteView stored) {
  TRY_ASSIGN(const FsLocks bytes, trellis::decode<FsLocks>(stored));
  if (bytes.locks.size() % fs_lock_bytes != 0)
    return Error{Code::corrupt, "a list of locks is cut short"};
  LockList list;
  for (size_t at = 0; at < bytes.locks.size(); at += fs_lock_bytes) {
    TRY_ASSIGN(const FsLock lock, trellis::decode<FsLock>(bytes.locks.substr(at, fs_lock_bytes)));
    list.locks_.push_back(lock);
  }
  return list;
}

Bytes LockList::encode() const {
  Bytes bytes;
  bytes.reserve(locks_.size() * fs_lock_bytes);
  for (const FsLock& lock : locks_) append(bytes, lock);
  return trellis::encode(FsLocks{bytes});
}

const FsLock* LockList::conflict(const FsLock& wanted) const {
  const auto found = std::find_if(locks_.begin(), locks_.end(), [&](const FsLock& lock) {
    return lock.first <= wanted.last && wanted.first <= lock.last && !is_same_owner(lock, wanted) &&
           (lock.type == FileLockType::exclusive || wanted.type == FileLockType::exclusive);
  });
  return found == locks_.end() ? nullptr : &*found;
}

void LockList::set(const FsLock& wanted) {
  clear(wanted);
  FsLock joined = wanted;
  // With neighbours of the same type it is one lock.
  std::erase_if(locks_, [&](const FsLock& lock) {
    if (!is_same_owner(lock, wanted) || lock.type != wanted.type) return false;
    const bool is_left = lock.last < wanted.first && lock.last + 1 == wanted.first;
    const bool is_right = wanted.last < lock.first && wanted.last + 1 == lock.first;
    if (is_left) joined.first = lock.first;
    if (is_right) joined.last = lock.last;
    return is_left || is_right;
  });
  locks_.insert(std::upper_bound(locks_.begin(), locks_.end(), joined, is_before), joined);
}

void LockList::clear(const FsLock& range) {
  std::vector<FsLock> rests;
  std::erase_if(locks_, [&](const FsLock& lock) {
    if (!is_same_owner(lock, range) || lock.last < range.first || range.last < lock.first)
      return false;
    if (lock.first < range.first) {
      rests.push_back(lock);
      rests.back().last = range.first - 1;
    }
    if (lock.last > range.last) {
      rests.push_back(lock);
      rests.back().first = range.last + 1;
    }
    return true;
  });
  for (const FsLock& rest : rests)
    locks_.insert(std::upper_bound(locks_.begin(), locks_.end(), rest, is_before), rest);
}

void LockList::drop(SessionId session) {
  std::erase_if(locks_, [&](const FsLock& lock) { return lock.session == session; });
}

Status drop_locks(CountedView& view, KeyspaceId keyspace, InodeId inode, SessionId session) {
  for (const unsigned char kind : {0, 1}) {
    TRY_ASSIGN(StoredLocks locks, read_locks(view, keyspace, inode, kind));
    const size_t before = locks.list.locks().size();
    locks.list.drop(session);
    if (locks.list.locks().size() != before) write_locks(view, locks);
  }
  return {};
}

// --- locks of a file system ---

Result<std::optional<FsLock>> FileSystem::try_lock(InodeId inode, LockKind kind,
                                                   const FsLock& wanted,
                                                   std::span<const SessionId> gone) {
  const Bytes held_key = encode(FsOpenUnlinkedKey{keyspace(), wanted.session, inode});
  Scope scope = Scope::in(keyspace());
  scope.shared(encode(FsSessionKey{keyspace(), wanted.session}))
      .exclusive(held_key)
      .exclusive(encode(FsInodeKey{keyspace(), inode}));
  for (const SessionId session : gone) scope.exclusive(encode(FsSessionKey{keyspace(), session}));
  std::optional<FsLock> blocker;
  const auto run = [&](CountedView& view) -> Status {
    blocker.reset();
    TRY(check_session(view, keyspace(), wanted.session, tenant_->map().clock.unix_ms()));
    if (!open_files_.is_open(wanted.session, inode)) return fs_error::not_open(inode);
    TRY_ASSIGN(StoredLocks locks, read_locks(view, keyspace(), inode, key_word_of(kind)));
    for (const SessionId session : gone) {
      TRY_ASSIGN(const bool is_over,
                 bury_session(view, keyspace(), session, tenant_->map().clock.unix_ms(), false));
      if (is_over) locks.list.drop(session);
    }
    if (const FsLock* const found = locks.list.conflict(wanted); found != nullptr) {
      blocker = *found;
      return {};
    }
    locks.list.set(wanted);
    if (locks.list.locks().size() > file_locks_max) return fs_error::too_many_locks();
    write_locks(view, locks);
    Value held;
    TRY(view.get(held_key, held));
    if (!held.found()) view.put(held_key, fs_held_value, held);
    return {};
  };
  TRY(tenant_->collect(Model::fs, scope, run));
  return blocker;
}

Result<std::optional<FsLock>> FileSystem::lock_over_gone(InodeId inode, LockKind kind,
                                                         const FsLock& wanted) {
  std::vector<SessionId> gone;
  for (;;) {
    // One is enough: those before it are cleared away.
    TRY_ASSIGN(const auto blocker, try_lock(inode, kind, wanted, gone));
    if (!blocker || gone.size() == gone_holders_max) return blocker;
    TRY_ASSIGN(const bool is_over, is_gone(blocker->session));
    if (!is_over) return blocker;
    gone.push_back(blocker->session);
  }
}

Result<std::string> FileSystem::name_of_holder(const FsLock& lock) {
  Value stored;
  TRY(tenant_->map().engine.get(encode(FsSessionKey{keyspace(), lock.session}), stored));
  std::string client = "unknown";
  if (stored.found())
    if (const auto session = decode<FsSession>(stored.bytes())) client = quote(session->client);
  return fmt::format("process {} of session {} (client {}), {} from byte {} to {}", lock.process,
                     lock.session.value, client,
                     lock.type == FileLockType::exclusive ? "exclusively" : "shared", lock.first,
                     lock.last);
}

Status FileSystem::lock(const Caller& caller, InodeId inode, LockKind kind, FsLock wanted,
                        uint64_t wait_ms) {
  wanted = with_range_of(kind, wanted);
  if (wanted.first > wanted.last) return fs_error::invalid("a lock needs at least one byte");
  TRY(tenant_->admit(caller, Access::read));
  using Time = std::chrono::steady_clock;
  const Time::time_point end =
      Time::now() + std::chrono::milliseconds(std::min(wait_ms, lock_wait_ms_max));
  const uint64_t poll_ms = tenant_->map().latched() ? lock_poll_alone_ms : lock_poll_shared_ms;
  for (;;) {
    const uint64_t seen = lock_waits_.releases();
    TRY_ASSIGN(const auto blocker, lock_over_gone(inode, kind, wanted));
    if (!blocker) {
      lock_waits_.released();  // of a lock that was exclusive there may be less now
      return {};
    }
    TRY_ASSIGN(const std::string holder, name_of_holder(*blocker));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Time::now());
    if (left.count() <= 0) return fs_error::would_block(holder);
    const uint64_t pause_ms = std::min<uint64_t>(poll_ms, static_cast<uint64_t>(left.count()));
    // Of circles of flock nobody expects to hear.
    if (kind == LockKind::flock)
      lock_waits_.wait(seen, pause_ms);
    else if (!lock_waits_.wait_for_holder({wanted.session, wanted.owner},
                                          {blocker->session, blocker->owner}, seen, pause_ms))
      return fs_error::deadlock(holder);
  }
}

Status FileSystem::unlock(const Caller& caller, InodeId inode, LockKind kind, FsLock range) {
  range = with_range_of(kind, range);
  if (range.first > range.last) return fs_error::invalid("a lock needs at least one byte");
  Scope scope = Scope::in(keyspace());
  scope.exclusive(encode(FsInodeKey{keyspace(), inode}));
  const auto run = [&](CountedView& view) -> Status {
    TRY_ASSIGN(StoredLocks locks, read_locks(view, keyspace(), inode, key_word_of(kind)));
    const std::vector<FsLock> before = locks.list.locks();
    locks.list.clear(range);
    if (locks.list.locks().size() > file_locks_max) return fs_error::too_many_locks();
    if (locks.list.locks() != before) write_locks(view, locks);
    return {};
  };
  TRY(keep_books(caller, scope, run));
  lock_waits_.released();
  return {};
}

Result<std::optional<FsLock>> FileSystem::test_lock(const Caller& caller, InodeId inode,
                                                    LockKind kind, FsLock wanted) {
  wanted = with_range_of(kind, wanted);
  if (wanted.first > wanted.last) return fs_error::invalid("a lock needs at least one byte");
  TRY(tenant_->admit(caller, Access::read));
  TRY_ASSIGN(StoredLocks locks,
             read_locks(tenant_->map().engine, keyspace(), inode, key_word_of(kind)));
  while (const FsLock* const found = locks.list.conflict(wanted)) {
    const FsLock blocker = *found;
    TRY_ASSIGN(const bool is_over, is_gone(blocker.session));
    if (!is_over) return std::optional<FsLock>(blocker);
    locks.list.drop(blocker.session);
  }
  return std::optional<FsLock>();
}

}  // namespace trellis
