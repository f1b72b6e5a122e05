#include "cluster_engine/range_patience.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <semaphore>
#include <thread>

#include "cluster_engine/cluster_engine.h"
#include "cluster_engine/cluster_home.h"
#include "cluster_engine/range_audit.h"
#include "cluster_engine/range_lookup.h"
#include "cluster_engine/range_sweeper.h"
#include "object_store/fake_object_store.h"
#include "object_store/faulty_object_store.h"
#include "support/expect_ok.h"

namespace trellis {
namespace {

constexpr uint64_t patience_us = 1'000;

enum class Moving : uint8_t { split, merge };

// Somebody splits [k, ..) at "m", or merges it back; a page of one entry at each step that the test
// lets pass.
class SlowChange {
 public:
  explicit SlowChange(Moving moving) : moving_(moving) {
    EXPECT_OK(bootstrap_ranges(store_));
    auto engine = ClusterEngine::open(store_, clock_, {.beat_interval_us = 0});
    Commit puts;
    for (int i = 0; i < 20; ++i) puts.writes.put(fmt::format("r{:02}", i), "v");
    EXPECT_OK(commit(**engine, puts));
    if (moving == Moving::merge)
      EXPECT_OK(split_range(store_, *find_range(store_, "r05"), "r05", RangeId{2}));
    client_.before_each([this](const PassedPoint& passed) {
      if (!passed.point.ends_with(".copy") || !gated_) return;
      arrived_.release();
      go_.acquire();
    });
  }
  ~SlowChange() {
    if (!thread_.joinable()) return;
    gated_ = false;
    go_.release();
    thread_.join();
  }

  // Returns at the first page.
  void begin() {
    thread_ = std::thread([this] {
      const RangeHeader left = *find_range(store_, "a");
      const RangeChangeOptions pages{.page_entries = 1};
      outcome_ = moving_ == Moving::split
                     ? split_range(client_, left, "r05", RangeId{2}, 0, pages)
                     : merge_ranges(client_, left, *find_range(store_, "r05"), pages);
      done_ = true;
      arrived_.release();
    });
    arrived_.acquire();
  }
  // One page more, or the end of it.
  void step() {
    if (done_) return;
    ++steps_;
    go_.release();
    arrived_.acquire();
  }
  void die() {
    client_.kill();
    while (!done_) step();
  }

  FakeObjectStore& store() { return store_; }
  FakeClock& clock() { return clock_; }
  const Status& outcome() const { return outcome_; }
  bool done() const { return done_; }
  int steps() const { return steps_; }
  // The one that cannot be written while it is changed.
  RangeHeader barred() { return *find_range(store_, "r10"); }
  size_t ranges() {
    const Result<RangeAudit> audit = audit_ranges(store_);
    EXPECT_TRUE(audit->problems.empty());
    return audit->ranges;
  }
  size_t ranges_before() const { return moving_ == Moving::split ? 1 : 2; }
  size_t ranges_after() const { return moving_ == Moving::split ? 2 : 1; }

 private:
  const Moving moving_;
  FakeObjectStore store_;
  FakeClock clock_{0};
  FaultyObjectStore client_{store_};
  std::thread thread_;
  std::binary_semaphore arrived_{0};
  std::counting_semaphore<> go_{0};
  std::atomic<bool> gated_ = true;
  std::atomic<bool> done_ = false;
  Status outcome_;
  int steps_ = 0;
};

class RangePatience : public testing::TestWithParam<Moving> {
 protected:
  // A client for which each look at what it waits for takes its time, and sees one more page.
  std::unique_ptr<FaultyObjectStore> looking_client() {
    auto client = std::make_unique<FaultyObjectStore>(change_.store());
    client->before_each([this](const PassedPoint& passed) {
      if (passed.point != "wait.read") return;
      change_.clock().advance_ms(1);
      change_.step();
    });
    return client;
  }
  void expect_not_disturbed() {
    EXPECT_TRUE(change_.done());
    EXPECT_OK(change_.outcome());
    EXPECT_GT(change_.steps(), 10);
    EXPECT_EQ(change_.ranges(), change_.ranges_after());
  }

  SlowChange change_{GetParam()};
};

TEST_P(RangePatience, WhatMovesIsNotSettledHoweverLongItTakes) {
  change_.begin();
  Patience patience(change_.clock(), patience_us);
  while (!change_.done()) {
    for (int look = 0; look < 2; ++look) {
      ASSERT_OK(wait_or_settle(change_.store(), change_.barred(), patience));
      change_.clock().advance_ms(1);
    }
    change_.step();
  }
  expect_not_disturbed();
}

TEST_P(RangePatience, WhatDoesNotMoveIsSettledByWhoComesNext) {
  change_.begin();
  for (int i = 0; i < 3; ++i) change_.step();
  change_.die();
  Patience patience(change_.clock(), patience_us);
  int looks = 0;
  for (; change_.barred().state != RangeState::live && looks < 100; ++looks) {
    ASSERT_OK(wait_or_settle(change_.store(), change_.barred(), patience));
    change_.clock().advance_ms(1);
  }
  EXPECT_GT(looks, 3);
  EXPECT_LT(looks, 10);
  EXPECT_EQ(change_.ranges(), change_.ranges_before());
}

// It was stopped, not those that it looks at.
TEST_P(RangePatience, AnObserverThatWasAwayForHoursLooksAgainFirst) {
  change_.begin();
  Patience patience(change_.clock(), patience_us);
  ASSERT_OK(wait_or_settle(change_.store(), change_.barred(), patience));
  change_.clock().advance_ms(3'600'000);
  ASSERT_OK(wait_or_settle(change_.store(), change_.barred(), patience));
  while (!change_.done()) change_.step();
  expect_not_disturbed();
}

TEST_P(RangePatience, AWriterWaits) {
  const auto client = looking_client();
  const auto engine = std::move(*ClusterEngine::open(
      *client, change_.clock(), {.patience_us = 3 * patience_us, .beat_interval_us = 0}));
  change_.begin();
  Commit wanted;
  wanted.writes.put("r10", "new");
  ASSERT_OK(commit(*engine, wanted));
  expect_not_disturbed();
  Value value;
  ASSERT_OK(engine->get("r10", value));
  EXPECT_EQ(value.bytes(), "new");
}

TEST_P(RangePatience, AHomeWaits) {
  const auto client = looking_client();
  ClusterHome home(*client, change_.clock(), [] { return RangeId{9}; },
                   {.patience_us = 3 * patience_us});
  const RangeDescriptor range = *home.find("r10");
  change_.begin();
  EXPECT_CODE(home.split({range, "r12"}), Code::conflict);  // it is another one after that
  expect_not_disturbed();
}

TEST_P(RangePatience, AWalkWaits) {
  const auto client = looking_client();
  ClusterHome home(*client, change_.clock(), [] { return RangeId{9}; },
                   {.patience_us = 3 * patience_us});
  const RangeDescriptor range = *home.find("r10");
  change_.begin();
  size_t seen = 0;
  const auto count = [&](ByteView key, ByteView) {
    seen += key >= "r05" ? 1 : 0;
    return Visit::go_on;
  };
  ASSERT_OK(home.walk(range, count, [] { return Visit::go_on; }));
  EXPECT_EQ(seen, 15u);
  while (!change_.done()) change_.step();  // what is split can be read all the time
  expect_not_disturbed();
}

TEST_P(RangePatience, ASweeperLeavesAloneWhatMoves) {
  change_.begin();
  RangeSweeper sweeper(change_.store());
  while (!change_.done()) {
    EXPECT_EQ(sweeper.sweep().value_or(9), 0u);
    change_.step();
  }
  expect_not_disturbed();
}

INSTANTIATE_TEST_SUITE_P(All, RangePatience, testing::Values(Moving::split, Moving::merge),
                         [](const auto& info) {
                           return info.param == Moving::split ? "split" : "merge";
                         });

}  // namespace
}  // namespace trellis
