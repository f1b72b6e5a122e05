#include "rocksdb_engine/room_watch.h"

#include <fmt/format.h>

#include "base/log.h"

namespace trellis {

uint64_t free_bytes(rocksdb::Env& env, const std::string& path) {
  uint64_t bytes = 0;
  env.GetFreeSpace(path, &bytes).PermitUncheckedError();
  return bytes;
}

RoomWatch::RoomWatch(rocksdb::Env& env, std::string path, uint64_t reserve_bytes,
                     std::chrono::milliseconds period)
    : env_(env), path_(std::move(path)), reserve_bytes_(reserve_bytes), period_(period) {
  if (reserve_bytes_ == 0) return;
  look();
  thread_ = std::thread([this] { run(); });
}

RoomWatch::~RoomWatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void RoomWatch::look() {
  uint64_t bytes = 0;
  // A disk that does not answer has other troubles, and they show in the writes.
  if (!env_.GetFreeSpace(path_, &bytes).ok()) return;
  const bool was_low = is_low();
  free_bytes_.store(bytes, std::memory_order_relaxed);
  if (is_low() == was_low) return;
  if (is_low())
    log_warn("the disk is nearly full: what adds data is refused",
             {{"free_bytes", bytes}, {"reserve_bytes", reserve_bytes_}});
  else
    log_info("the disk has room again", {{"free_bytes", bytes}});
}

void RoomWatch::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, period_, [this] { return stop_; })) {
    lock.unlock();
    look();
    lock.lock();
  }
}

Error RoomWatch::refusal() const {
  const uint64_t bytes = free_bytes_.load(std::memory_order_relaxed);
  return {Code::no_space,
          fmt::format("the disk is nearly full: {} MiB are free, and {} MiB are kept "
                      "(disk-reserve-bytes). {}, free some space or make the disk larger; writes "
                      "resume by themselves",
                      bytes >> 20, reserve_bytes_ >> 20,
                      bytes < reserve_bytes_ / 4 ? "Not even deletes are taken: remove other files"
                                                 : "Reads and deletes work: delete something"),
          "disk_nearly_full", 1'000};
}

}  // namespace trellis
