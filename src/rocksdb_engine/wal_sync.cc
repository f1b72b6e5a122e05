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
    disk_full_ = status.IsNoSpace();
  }
  failed_.store(true, std::memory_order_release);
  return failure(Code::maybe);
}

Error WalSync::failure(Code code) const {
  const std::lock_guard lock(mutex_);
  return {code,
          fmt::format(
              "the {}, so commits since the last sync may be lost; reads still work. {}, "
              "then restart trellis ({})",
              disk_full_ ? "disk was full when the log was synced" : "disk failed to sync the log",
              disk_full_ ? "Free some space" : "Check the disk", reason_)};
}

Status WalSync::check() const {
  if (failed()) return failure(Code::unavailable);
  switch (logs_.trouble()) {
    case LogFiles::Trouble::none: break;
    case LogFiles::Trouble::disk_full:
      return Error{Code::no_space,
                   "the disk was full when the log was written, nothing was written; reads still "
                   "work. Free some space; if writes do not resume within seconds, restart "
                   "trellis"};
    case LogFiles::Trouble::disk_failed:
      return Error{Code::unavailable,
                   "the disk failed to take a write of the log; reads still work. Check the disk, "
                   "then restart trellis"};
  }
  return {};
}

void WalSync::sync_soon() {
  // Once per period nobody waits yet; only then does a commit pay for the clock and the lock.
  Time none = nobody;
  if (soon_since_.load() != nobody) return;
  if (!soon_since_.compare_exchange_strong(none, std::chrono::steady_clock::now())) return;
  const std::lock_guard lock(mutex_);
  wake_.notify_one();
}

void WalSync::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    wake_.wait(lock, [this] { return stop_ || soon_since_.load() != nobody; });
    // From the first commit on and not from now: it may have come long ago, during the last sync.
    const Time due = soon_since_.load() + period_;
    const bool stopping = wake_.wait_until(lock, due, [this] { return stop_; });
    if (stopping) return;
    lock.unlock();
    // Before the sync: what is written during it is the first to wait for the next.
    soon_since_.store(nobody);
    discard(wait_durable(last_ticket()));  // a failure stays in failed() and fails later commits
    lock.lock();
  }
}

}  // namespace trellis
