// The locks of one inode of one kind: what POSIX says of ranges of bytes, in memory.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "codec/fs_values.h"
#include "tenant/tenant.h"

namespace trellis {

constexpr size_t file_locks_max = 10'000;

class LockList {
 public:
  static Result<LockList> decode(ByteView stored);
  Bytes encode() const;

  const std::vector<FsLock>& locks() const { return locks_; }
  // The first that `wanted` cannot be beside: of another owner, with a byte in common, and one of
  // the two exclusive. May be null.
  const FsLock* conflict(const FsLock& wanted) const;
  // What the owner has of these bytes is this lock from now on. REQUIRES: there is no conflict.
  void set(const FsLock& wanted);
  // The owner has nothing of these bytes any more. What it has beside them stays.
  void clear(const FsLock& range);
  // All of a session.
  void drop(SessionId session);

 private:
  std::vector<FsLock> locks_;  // by owner and first byte; those of one owner do not overlap
};

// Gives back what the session has locked of the inode, in a transaction that holds it.
Status drop_locks(CountedView& view, KeyspaceId keyspace, InodeId inode, SessionId session);

}  // namespace trellis
