#include "net/worker_pool.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/log.h"

namespace trellis {

struct WorkerPool::Impl {
  struct Lane {
    std::deque<std::function<void()>> queue;
    unsigned running = 0;
    bool in_turn = false;
  };

  void work();
  // REQUIRES of both: the mutex is held.
  void give_turn(uint64_t id, Lane& lane);
  std::function<void()> take(uint64_t& id);

  unsigned lane_threads_max = 1;
  std::mutex mutex;
  std::condition_variable changed;
  std::unordered_map<uint64_t, Lane> lanes;  // with jobs that wait or run
  std::deque<uint64_t> turns;                // of those that may start one
  size_t queued = 0;
  bool stops = false;
  std::mutex joining;  // so that a second stop() waits for the first
  std::vector<std::thread> threads;
};

void WorkerPool::Impl::give_turn(uint64_t id, Lane& lane) {
  const bool may_start = id == 0 || lane.running < lane_threads_max;
  if (lane.in_turn || lane.queue.empty() || !may_start) return;
  lane.in_turn = true;
  turns.push_back(id);
  changed.notify_one();
}

std::function<void()> WorkerPool::Impl::take(uint64_t& id) {
  id = turns.front();
  turns.pop_front();
  Lane& lane = lanes[id];
  std::function<void()> job = std::move(lane.queue.front());
  lane.queue.pop_front();
  lane.in_turn = false;
  ++lane.running;
  --queued;
  if (stops && queued == 0) changed.notify_all();
  give_turn(id, lane);
  return job;
}

void WorkerPool::Impl::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return !turns.empty() || (stops && queued == 0); });
    if (turns.empty()) return;
    uint64_t id = 0;
    std::function<void()> job = take(id);
    lock.unlock();
    try {
      job();
    } catch (const std::exception& error) {
      log_error("a job of the worker pool threw", {{"what", error.what()}});
    }
    job = nullptr;  // what it holds may be slow to destroy: not under the lock
    lock.lock();
    Lane& lane = lanes[id];
    --lane.running;
    give_turn(id, lane);
    if (lane.running == 0 && lane.queue.empty()) lanes.erase(id);
  }
}

WorkerPool::WorkerPool(unsigned threads) : impl_(std::make_unique<Impl>()) {
  ASSERT(threads > 0);
  impl_->lane_threads_max = threads - threads / 4;
  for (unsigned i = 0; i < threads; ++i) {
    impl_->threads.emplace_back([impl = impl_.get()] { impl->work(); });
  }
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::submit(std::function<void()> job, uint64_t lane) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->stops) return;
  Impl::Lane& into = impl_->lanes[lane];
  into.queue.push_back(std::move(job));
  ++impl_->queued;
  impl_->give_turn(lane, into);
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
