// Threads for work that may block, fed by one queue.
#pragma once

#include <functional>
#include <memory>

namespace trellis {

class WorkerPool {
 public:
  explicit WorkerPool(unsigned threads);  // REQUIRES: threads > 0
  ~WorkerPool();                          // stops
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Any thread. Jobs start in the order given. An exception of a job is logged and ends only the
  // job. After stop() the job is destroyed without being run.
  void submit(std::function<void()> job);

  // Runs what is queued and waits for it. Any thread but a worker; the second call waits too.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trellis
