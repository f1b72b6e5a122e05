// Which sessions of this process have which files open, and how often.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "base/strong_id.h"

namespace trellis {

// Any thread.
class OpenFiles {
 public:
  void open(SessionId session, InodeId inode) {
    const std::lock_guard lock(mutex_);
    opened_[{inode, session}]++;
  }
  // Whether the session has it open no more.
  bool close(SessionId session, InodeId inode) {
    const std::lock_guard lock(mutex_);
    const auto found = opened_.find({inode, session});
    if (found == opened_.end()) return true;
    if (--found->second > 0) return false;
    opened_.erase(found);
    return true;
  }
  bool is_open(SessionId session, InodeId inode) const {
    const std::lock_guard lock(mutex_);
    return opened_.contains({inode, session});
  }
  std::vector<SessionId> holders(InodeId inode) const {
    const std::lock_guard lock(mutex_);
    std::vector<SessionId> sessions;
    for (auto at = opened_.lower_bound({inode, SessionId{0}});
         at != opened_.end() && at->first.first == inode; ++at)
      sessions.push_back(at->first.second);
    return sessions;
  }
  // All that the session has open.
  std::vector<InodeId> of(SessionId session) const {
    const std::lock_guard lock(mutex_);
    std::vector<InodeId> inodes;
    for (const auto& [what, times] : opened_)
      if (what.second == session) inodes.push_back(what.first);
    return inodes;
  }
  void forget(SessionId session) {
    const std::lock_guard lock(mutex_);
    std::erase_if(opened_, [&](const auto& entry) { return entry.first.second == session; });
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<InodeId, SessionId>, uint32_t> opened_;
};

}  // namespace trellis
