#include "net/worker_pool.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/log.h"

namespace trellis {

struct WorkerPool::Impl {
  void work();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool stops = false;
  std::mutex joining;  // so that a second stop() waits for the first
  std::vector<std::thread> threads;
};

void WorkerPool::Impl::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return stops || !queue.empty(); });
    if (queue.empty()) return;
    std::function<void()> job = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    try {
      job();
    } catch (const std::exception& error) {
      log_error("a job of the worker pool threw", {{"what", error.what()}});
    }
    job = nullptr;  // what it holds may be slow to destroy: not under the lock
    lock.lock();
  }
}

WorkerPool::WorkerPool(unsigned threads) : impl_(std::make_unique<Impl>()) {
  ASSERT(threads > 0);
  for (unsigned i = 0; i < threads; ++i) {
    impl_->threads.emplace_back([impl = impl_.get()] { impl->work(); });
  }
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::submit(std::function<void()> job) {
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->stops) return;
    impl_->queue.push_back(std::move(job));
  }
  impl_->changed.notify_one();
}

void WorkerPool::stop() {
  const std::lock_guard joining(impl_->joining);
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stops = true;
  }
  impl_->changed.notify_all();
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

}  // namespace trellis
