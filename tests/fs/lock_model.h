// Locks of files as simple as can be: for each owner what of each byte it has. For tests, which
// lock a few bytes only.
#pragma once

#include <array>
#include <map>
#include <tuple>

#include "fs/file_system.h"

namespace trellis {

class LockModel {
 public:
  using Kind = FileSystem::LockKind;
  static constexpr uint64_t bytes = 6;

  // Whether somebody else has what is in the way.
  bool is_locked(uint64_t inode, Kind kind, const FsLock& wanted) const {
    for (const auto& [whose, held] : held_) {
      const auto& [of_inode, of_kind, session, owner] = whose;
      if (of_inode != inode || of_kind != kind ||
          (session == wanted.session && owner == wanted.owner))
        continue;
      const auto [first, last] = range(kind, wanted);
      for (uint64_t at = first; at <= last; at++)
        if (held[at] == exclusive || (held[at] != none && wanted.type == FileLockType::exclusive))
          return true;
    }
    return false;
  }
  void set(uint64_t inode, Kind kind, const FsLock& lock, bool is_held) {
    const auto [first, last] = range(kind, lock);
    const State state = !is_held ? none : lock.type == FileLockType::exclusive ? exclusive : shared;
    for (uint64_t at = first; at <= last; at++)
      held_[{inode, kind, lock.session, lock.owner}][at] = state;
  }
  void close(uint64_t inode, SessionId session) {
    std::erase_if(held_, [&](const auto& entry) {
      return std::get<0>(entry.first) == inode && std::get<2>(entry.first) == session;
    });
  }
  void clear() { held_.clear(); }

 private:
  enum State : uint8_t { none, shared, exclusive };
  static std::pair<uint64_t, uint64_t> range(Kind kind, const FsLock& lock) {
    return kind == Kind::flock ? std::pair<uint64_t, uint64_t>(0, bytes - 1)
                               : std::pair(lock.first, lock.last);
  }

  std::map<std::tuple<uint64_t, Kind, SessionId, uint64_t>, std::array<State, bytes>> held_;
};

}  // namespace trellis
