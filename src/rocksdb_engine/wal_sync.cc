#include "rocksdb_engine/wal_sync.h"

#include <fmt/format.h>
#include <rocksdb/db.h>

namespace trellis {

WalSync::WalSync(rocksdb::DB& db, LogFiles& logs, std::chrono::microseconds everysec_period)
    : db_(db), logs_(logs), period_(everysec_period), thread_([this] { run(); }) {}

WalSync::~WalSync() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

uint64_t WalSync::last_ticket() const { return db_.GetLatestSequenceNumber(); }

Status WalSync::wait_durable(uint64_t ticket) {
  if (durable() >= ticket) return {};
  std::unique_lock lock(mutex_);
  while (syncing_ && durable() < ticket) synced_.wait(lock);
  if (durable() >= ticket) return {};
  if (failed()) {
    lock.unlock();
    return failure(Code::maybe);
  }
  // This thread syncs for everybody who came before now; who comes meanwhile waits for the next.
  syncing_ = true;
  lock.unlock();
  Status status = sync();
  lock.lock();
  syncing_ = false;
  lock.unlock();
  synced_.notify_all();
  return status;
}

Status WalSync::sync() {
  const uint64_t covered = last_ticket();
  const rocksdb::IOStatus status = logs_.sync();
  if (status.ok()) {
    durable_.store(covered, std::memory_order_release);
    syncs_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  {
    const std::lock_guard lock(mutex_);
    reason_ = status.ToString();
  }
  failed_.store(true, std::memory_order_release);
  return failure(Code::maybe);
}

Error WalSync::failure(Code code) const {
  const std::lock_guard lock(mutex_);
  return {code,
          fmt::format("the disk failed to sync the log, so commits since the last sync may be "
                      "lost; reads still work. Check the disk, then restart trellis ({})",
                      reason_)};
}

void WalSync::sync_soon() {
  // Once per period the flag is down; only then does a commit pay for the lock.
  if (soon_.load(std::memory_order_relaxed) || soon_.exchange(true)) return;
  const std::lock_guard lock(mutex_);
  wake_.notify_one();
}

void WalSync::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    wake_.wait(lock, [this] { return stop_ || soon_.load(); });
    const bool stopping = wake_.wait_for(lock, period_, [this] { return stop_; });
    if (stopping) return;
    lock.unlock();
    // Down before the sync: what is written during the sync raises it again.
    soon_.store(false);
    discard(wait_durable(last_ticket()));  // a failure stays in failed() and fails later commits
    lock.lock();
  }
}

}  // namespace trellis
