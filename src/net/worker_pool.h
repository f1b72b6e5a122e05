// Threads for work that may block, fair to those who it is for: each has a lane. Lanes take turns,
// and none has all threads, so that who has much to do makes nobody else wait for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace trellis {

class WorkerPool {
 public:
  explicit WorkerPool(unsigned threads);  // REQUIRES: threads > 0
  ~WorkerPool();                          // stops
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Any thread. Jobs of a lane start in the order given; lane 0 may have all threads. An exception
  // of a job is logged and ends only the job. After stop() the job is destroyed without being run.
  void submit(std::function<void()> job, uint64_t lane = 0);

  // Runs what is queued and waits for it. Any thread but a worker; the second call waits too.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trellis
