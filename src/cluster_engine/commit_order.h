// Which commits of a batch may be made at the same time, and threads that make them.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "engine/engine.h"

namespace trellis {

// The indexes of all commits, in chains: those of one are to be made in its order, as one of them
// writes what another one writes or relies on; chains have nothing to do with each other.
std::vector<std::vector<size_t>> commit_chains(std::span<const Commit* const> commits);

// Threads: any.
class CommitPool {
 public:
  explicit CommitPool(size_t threads_max) : threads_max_(threads_max) {}
  // REQUIRES: nobody is in run
  ~CommitPool();

  // task(0) to task(count - 1), in the caller's thread and those of the pool; returns when all are
  // done. The threads are started by the first call that has use for them.
  void run(size_t count, FunctionRef<void(size_t)> task);

 private:
  struct Job {
    FunctionRef<void(size_t)> task;
    size_t count;
    size_t taken = 0;
    size_t done = 0;
  };
  // One task of the job. REQUIRES: the lock is held, and one is left to be taken
  void run_one(std::unique_lock<std::mutex>& lock, Job& job);
  void work();

  const size_t threads_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job*> jobs_;  // with tasks that nobody has taken
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace trellis
