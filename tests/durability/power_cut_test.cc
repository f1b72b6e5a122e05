// Cuts the power under load, again and again on the same store, and looks at what is left.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "stamped_commits.h"
#include "support/power_loss_file_system.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock::time_point;
Time now() { return std::chrono::steady_clock::now(); }

// Lane `lane` had acknowledged commit n at this time.
struct Acknowledged {
  Time time;
  uint64_t n;
};

class PowerCut : public testing::Test {
 protected:
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

  void SetUp() override {
    setup_log(LogLevel::error, LogFormat::text);  // RocksDB warns of every cut
    random_ = Random(test_seed(20240607));
    files_->set_write_hook([this](const std::string&, std::string&) {
      if (writes_left_.fetch_sub(1) == 0) cut();
      if (now() >= cut_after_.load() && cut_after_.exchange(Time::max()) != Time::max()) cut();
      return rocksdb::IOStatus::OK();
    });
  }

  void cut() {
    cut_time_ = now();
    files_->cut_power(cut_random_);
    cut_ = true;
  }

  Result<std::unique_ptr<RocksdbEngine>> open() {
    return open_rocksdb_engine({.path = "/store",
                                .clock = clock_,
                                .cache_bytes = 8 << 20,
                                .everysec_period = everysec_period_,
                                .env = env_.get()});
  }

  // After a cut; sometimes cuts again while the store opens.
  std::unique_ptr<RocksdbEngine> reopen() {
    while (true) {
      files_->restore_power();
      cut_ = false;
      writes_left_ = -1;
      if (random_.one_in(4)) arm(12);
      auto engine = open();
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

  void run_lane(Engine& engine, StampedCommits& commits, size_t lane, Durability durability,
                uint64_t seed) {
    Random random(seed);
    while (commits.step(engine, lane, durability, random).has_value()) {
      acknowledged_[lane].push_back({now(), commits.acknowledged(lane)});
    }
  }

  // Runs until the power is cut and returns what must have survived.
  LanePositions run(RocksdbEngine& engine, const LanePositions& found, Durability durability) {
    StampedCommits commits(found);
    std::vector<std::thread> threads;
    for (size_t lane = 0; lane < lanes; lane++) {
      acknowledged_[lane].clear();
      threads.emplace_back(
          [&, lane, seed = random_.next()] { run_lane(engine, commits, lane, durability, seed); });
    }
    for (std::thread& thread : threads) thread.join();
    promised_in_last_round_ = 0;
    LanePositions promised = found;  // opening the store has made those durable
    for (size_t lane = 0; lane < lanes; lane++) {
      for (const Acknowledged& one : acknowledged_[lane]) {
        acknowledged_commits_++;
        if (durability == Durability::always || (durability == Durability::everysec &&
                                                 one.time < cut_time_.load() - promised_within_)) {
          promised[lane] = one.n;
          promised_in_last_round_++;
        }
      }
      begun_[lane] = commits.begun(lane);
    }
    return promised;
  }

  template <class Arm>
  void round(Durability durability, Arm arm_for_load) {
    std::unique_ptr<RocksdbEngine> engine = reopen();
    ASSERT_NE(engine, nullptr);
    const Result<LanePositions> before = find_positions(*engine);
    ASSERT_TRUE(before.has_value()) << to_string(before.error());
    arm_for_load();
    const LanePositions promised = run(*engine, *before, durability);
    engine.reset();
    engine = reopen();
    ASSERT_NE(engine, nullptr);
    const Result<LanePositions> after = find_positions(*engine);
    ASSERT_TRUE(after.has_value()) << to_string(after.error());
    for (size_t lane = 0; lane < lanes; lane++) {
      EXPECT_GE((*after)[lane], promised[lane]) << "lane " << lane;
      EXPECT_LE((*after)[lane], begun_[lane]) << "lane " << lane;
      if (!acknowledged_[lane].empty()) {
        lost_ +=
            acknowledged_[lane].back().n - std::min(acknowledged_[lane].back().n, (*after)[lane]);
      }
    }
    engine.reset();
    ASSERT_FALSE(cut_);
  }

  void print_figures(uint64_t cuts) const {
    std::cout << fmt::format(
        "{} cuts under load, {} while opening; {} commits acknowledged, {} of them lost\n", cuts,
        cuts_while_opening_, acknowledged_commits_, lost_);
  }

  SystemClock clock_;
  Random random_{0};
  Random cut_random_{0};
  std::shared_ptr<PowerLossFileSystem> files_ = std::make_shared<PowerLossFileSystem>();
  std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(files_);
  std::chrono::microseconds everysec_period_ = 5ms;
  // Sanitizers are too slow for a promise that leaves 0.2 s for two syncs.
  const std::chrono::milliseconds promised_within_ = test_scale() == "quick" ? 2s : 1s;
  std::atomic<int64_t> writes_left_{-1};
  std::atomic<bool> cut_{false};
  std::atomic<Time> cut_time_{};
  std::atomic<Time> cut_after_{Time::max()};
  std::array<std::vector<Acknowledged>, lanes> acknowledged_;
  LanePositions begun_{};
  uint64_t acknowledged_commits_ = 0;
  uint64_t promised_in_last_round_ = 0;
  uint64_t lost_ = 0;
  uint64_t cuts_while_opening_ = 0;
};

TEST_F(PowerCut, AlwaysLosesNothingAcknowledged) {
  const uint64_t cuts = test_rounds(80);
  for (uint64_t i = 0; i < cuts && !HasFailure(); i++) {
    SCOPED_TRACE(i);
    round(Durability::always, [this] { arm(2000); });
  }
  print_figures(cuts);
  EXPECT_EQ(lost_, 0);
}

TEST_F(PowerCut, EverysecLosesAtMostTheLastSecond) {
  const uint64_t cuts = test_rounds(60);
  for (uint64_t i = 0; i < cuts && !HasFailure(); i++) {
    SCOPED_TRACE(i);
    // Most cuts come soon, and some late enough for the bound to mean something.
    if (i % 10 != 0) {
      round(Durability::everysec, [this] { arm(2000); });
    } else {
      // The first with the period that everybody has.
      everysec_period_ =
          i == 0 ? RocksdbOptions{.path = {}, .clock = clock_}.everysec_period : 400ms;
      round(Durability::everysec, [this] { arm_after(promised_within_ + 500ms); });
      EXPECT_GT(promised_in_last_round_, 0);
      everysec_period_ = 5ms;
    }
  }
  print_figures(cuts);
}

TEST_F(PowerCut, OffLosesNoPartOfACommit) {
  const uint64_t cuts = test_rounds(60);
  for (uint64_t i = 0; i < cuts && !HasFailure(); i++) {
    SCOPED_TRACE(i);
    round(Durability::off, [this] { arm(2000); });
  }
  print_figures(cuts);
  EXPECT_TRUE(test_scale() == "quick" || lost_ > 0)
      << "no cut lost anything: the test tests nothing";
}

}  // namespace
}  // namespace trellis
