// How much room the disk has left, looked at once in a while by a thread, not by each write.
//
//   free >= reserve       everything is committed
//   free <  reserve       check() refuses: whoever adds data asks it before
//   free <  reserve / 4   check_floor() refuses: nothing is committed, so that flushes and
//                         compactions, which free room, do not run into a full disk
//
// Threads: every call from any thread.
#pragma once

#include <rocksdb/env.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"

namespace trellis {

class RoomWatch {
 public:
  // Without a reserve it watches nothing. `env` must outlive it.
  RoomWatch(rocksdb::Env& env, std::string path, uint64_t reserve_bytes,
            std::chrono::milliseconds period);
  ~RoomWatch();
  RoomWatch(const RoomWatch&) = delete;
  RoomWatch& operator=(const RoomWatch&) = delete;

  // Code::no_space, reason disk_nearly_full.
  Status check() const { return is_low() ? Status(refusal()) : Status(); }
  Status check_floor() const {
    return free_bytes_.load(std::memory_order_relaxed) < reserve_bytes_ / 4 ? Status(refusal())
                                                                            : Status();
  }
  bool is_low() const { return free_bytes_.load(std::memory_order_relaxed) < reserve_bytes_; }
  uint64_t reserve_bytes() const { return reserve_bytes_; }

 private:
  void look();
  void run();
  Error refusal() const;

  rocksdb::Env& env_;
  const std::string path_;
  const uint64_t reserve_bytes_;
  const std::chrono::milliseconds period_;
  std::atomic<uint64_t> free_bytes_{UINT64_MAX};  // as it was seen last

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

// 0 if the system does not say.
uint64_t free_bytes(rocksdb::Env& env, const std::string& path);

}  // namespace trellis
