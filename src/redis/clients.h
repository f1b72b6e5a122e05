// The connections that are open, whatever loop they are on. What a client is told of others is of
// its own keyspace only: the callers here say which.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/function_ref.h"
#include "redis/session.h"

namespace trellis {

// Any thread.
class Clients {
 public:
  explicit Clients(Clock& clock) : clock_(clock) {}
  ~Clients();

  void add(Session& session);
  void remove(Session& session);  // when it returns, nobody knows of it any more

  // To change what others read of a session.
  template <class Change>
  void change(const Change& fn) {
    const std::lock_guard lock(mutex_);
    fn();
  }
  // All of that keyspace but those that close, the oldest first, which neither change nor go
  // meanwhile.
  void for_each(KeyspaceId keyspace, FunctionRef<void(Session& session)> visit);

  // The session's next command waits for the end of a pause. False: it is over already.
  bool hold(Session& session, bool is_write);
  // The pause of a keyspace was changed: whoever need not wait any longer goes on.
  void release();

 private:
  void keep_time();
  // Those whose pause is over go on. When the next one ends; 0: nobody waits.
  uint64_t release_due(uint64_t now_ms);

  Clock& clock_;
  std::mutex mutex_;
  std::map<uint64_t, Session*> sessions_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  std::thread timer_;  // none before somebody waits
};

}  // namespace trellis
