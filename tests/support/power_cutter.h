// A store that loses power under load: at a random write, or at the first one after some time.
//
//   PowerCutter cutter(seed);
//   auto engine = cutter.reopen(options);      // sometimes cuts while it opens, and opens again
//   cutter.arm(2000);                          // then write until everything fails
//   engine.reset();
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "base/random.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "support/power_loss_file_system.h"

namespace trellis {

class PowerCutter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit PowerCutter(uint64_t seed) : random_(seed) {
    files_->set_write_hook([this](const std::string&, std::string&) {
      if (writes_left_.fetch_sub(1) == 0) cut();
      if (now() >= cut_after_.load() && cut_after_.exchange(Time::max()) != Time::max()) cut();
      return rocksdb::IOStatus::OK();
    });
  }

  // Cuts at a random write of any file from now on: in a log, a table, a manifest, while opening.
  void arm(uint64_t writes_max) {
    cut_random_ = Random(random_.next());
    writes_left_ = static_cast<int64_t>(random_.below(writes_max));
  }
  // Cuts at the first write after this time.
  void arm_after(std::chrono::milliseconds delay) {
    cut_random_ = Random(random_.next());
    cut_after_ = now() + delay;
  }

  // Null, and a failure, if what a cut left does not open.
  std::unique_ptr<RocksdbEngine> reopen(RocksdbOptions options) {
    options.env = env_.get();
    while (true) {
      files_->restore_power();
      cut_ = false;
      writes_left_ = -1;
      if (random_.one_in(4)) arm(12);
      auto engine = open_rocksdb_engine(options);
      if (engine.has_value() && !cut_) {
        writes_left_ = -1;
        if (!cut_) return std::move(*engine);
      }
      if (!cut_) {
        ADD_FAILURE() << to_string(engine.error());
        return nullptr;
      }
      cuts_while_opening_++;
    }
  }

  bool is_cut() const { return cut_; }
  Time cut_time() const { return cut_time_; }
  uint64_t cuts_while_opening() const { return cuts_while_opening_; }
  Random& random() { return random_; }

 private:
  static Time now() { return std::chrono::steady_clock::now(); }
  void cut() {
    cut_time_ = now();
    cut_ = true;  // before others can notice
    files_->cut_power(cut_random_);
  }

  Random random_;
  Random cut_random_{0};
  std::shared_ptr<PowerLossFileSystem> files_ = std::make_shared<PowerLossFileSystem>();
  std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(files_);
  std::atomic<int64_t> writes_left_{-1};
  std::atomic<bool> cut_{false};
  std::atomic<Time> cut_time_{};
  std::atomic<Time> cut_after_{Time::max()};
  uint64_t cuts_while_opening_ = 0;
};

}  // namespace trellis
