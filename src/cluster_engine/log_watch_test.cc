#include "cluster_engine/log_watch.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/commit_run.h"

namespace trellis {
namespace {

constexpr unsigned unchanged_max = 3;

class LogWatchTest : public testing::Test {
 protected:
  struct Client {
    explicit Client(FakeObjectStore& objects, Clock& clock, uint64_t beat_interval_us = 0)
        : store(objects),
          engine(std::move(*ClusterEngine::open(store, clock,
                                                {.patience_us = 500,
                                                 .beat_interval_us = beat_interval_us,
                                                 .unchanged_beats_max = unchanged_max}))) {}
    FaultyObjectStore store;
    std::unique_ptr<ClusterEngine> engine;
  };
  bool has_log(const Client& client) {
    bool found = false;
    store_.list(log_object_name(client.engine->incarnation()), [&](ByteView) { found = true; });
    return found;
  }

  FakeObjectStore store_;
  FakeClock clock_{0};
};

TEST_F(LogWatchTest, WhoBeatsLivesAndWhoStopsIsSwept) {
  Client watcher(store_, clock_), living(store_, clock_), dying(store_, clock_);
  for (int round = 0; round < 10; round++) {
    for (Client* client : {&dying, &living}) ASSERT_OK(client->engine->beat());
    ASSERT_OK(watcher.engine->watch());
    EXPECT_TRUE(has_log(dying));
  }
  dying.store.kill();
  EXPECT_CODE(dying.engine->beat(), Code::unavailable);
  for (unsigned look = 0; look < unchanged_max; look++) {
    EXPECT_TRUE(has_log(dying)) << look;
    ASSERT_OK(living.engine->beat());
    ASSERT_OK(watcher.engine->watch());
  }
  EXPECT_FALSE(has_log(dying));
  EXPECT_TRUE(has_log(living));
}

TEST_F(LogWatchTest, ABeatThatIsNotSeenIsNotABeatThatStandsStill) {
  Client watcher(store_, clock_), living(store_, clock_);
  for (unsigned look = 0; look < 3 * unchanged_max; look++) {
    if (look % unchanged_max == 0) {
      for (uint64_t nth = 1; nth <= 2; nth++)
        watcher.store.plan({"watch.read", 2 * look + nth, FaultMode::error});
      EXPECT_CODE(watcher.engine->watch(), Code::unavailable);
    } else {
      ASSERT_OK(watcher.engine->watch());
    }
  }
  EXPECT_TRUE(has_log(living));
}

TEST_F(LogWatchTest, OneWhoIsTakenForDeadRefusesUntilItHasStartedAgain) {
  ASSERT_OK(bootstrap_ranges(store_));
  ASSERT_OK(split_range(store_, *find_range(store_, "m"), "m", RangeId{2}));
  Client watcher(store_, clock_), slow(store_, clock_);
  for (unsigned look = 0; look <= unchanged_max; look++) ASSERT_OK(watcher.engine->watch());
  EXPECT_FALSE(has_log(slow));
  Commit across, in_one;
  for (const char* key : {"a", "z"}) across.writes.put(key, "v");
  in_one.writes.put("a", "one");
  EXPECT_CODE(commit(*slow.engine, across), Code::unavailable);
  EXPECT_CODE(commit(*slow.engine, in_one), Code::unavailable);  // by now it knows
  Value value;
  ASSERT_OK(slow.engine->get("a", value));
  EXPECT_FALSE(value.found());

  const uint64_t before = slow.engine->incarnation();
  ASSERT_OK(slow.engine->beat());
  EXPECT_NE(slow.engine->incarnation(), before);
  EXPECT_OK(commit(*slow.engine, across));
  ASSERT_OK(watcher.engine->get("z", value));
  EXPECT_EQ(value.bytes(), "v");
}

TEST_F(LogWatchTest, ALogThatCannotBeSweptDoesNotKeepTheOthers) {
  Client watcher(store_, clock_);
  std::vector<std::unique_ptr<Client>> dead;
  for (int i = 0; i < 5; i++) dead.push_back(std::make_unique<Client>(store_, clock_));
  for (const auto& client : dead) client->store.kill();
  const Bytes damaged = log_object_name(dead[2]->engine->incarnation());
  store_.write("damage", damaged, {.changes = {OmapSet{"no decision", "x"}}});
  for (unsigned look = 0; look < unchanged_max; look++) ASSERT_OK(watcher.engine->watch());
  const Status swept = watcher.engine->watch();
  EXPECT_CODE(swept, Code::corrupt);
  EXPECT_TRUE(swept.error().message.starts_with("1 of 5 logs ")) << swept.error().message;
  for (size_t i = 0; i < dead.size(); i++) EXPECT_EQ(has_log(*dead[i]), i == 2) << i;
}

TEST_F(LogWatchTest, AnEngineBeatsByItself) {
  Client dying(store_, clock_);
  dying.store.kill();
  Client watcher(store_, clock_, 1'000);
  while (has_log(dying)) std::this_thread::yield();
  EXPECT_TRUE(has_log(watcher));
}

// A slow one, at each of its operations, and with each way in which it may end.
TEST(WrongFence, LosesNothingThatWasAnsweredAndDoesNoHarm) {
  const FaultMode modes[] = {FaultMode::timed_out, FaultMode::lost, FaultMode::delayed};
  size_t runs = 0, done = 0, refused = 0;
  for (const Reach reach : {Reach::one_range, Reach::three_ranges}) {
    std::vector<PassedPoint> points;
    {
      CommitRun run({reach, Meanwhile::nothing});
      const size_t before = run.committer().passed().size();
      ASSERT_OK(run.commit());
      const std::vector<PassedPoint> passed = run.committer().passed();
      points.assign(passed.begin() + static_cast<ptrdiff_t>(before), passed.end());
    }
    for (const PassedPoint& point : points) {
      for (size_t mode = 0; mode <= std::size(modes); mode++) {
        SCOPED_TRACE(point.point + " " + std::to_string(point.nth) + ", " + std::to_string(mode));
        const bool has_fault = mode < std::size(modes);
        CommitRun run({reach, Meanwhile::nothing});
        bool is_fenced = false;
        run.committer().before_each([&](const PassedPoint& now) {
          if (is_fenced || now.point != point.point || now.nth != point.nth) return;
          is_fenced = true;
          run.sweep_committer();
        });
        if (has_fault) run.committer().plan({point.point, point.nth, modes[mode]});
        const Status outcome = run.commit();
        EXPECT_TRUE(is_fenced);
        run.release();
        const State state = run.witness();
        runs++;
        if (outcome.has_value()) {
          done++;
          EXPECT_EQ(state, committed_state(reach));
        } else if (outcome.error().code == Code::maybe) {
          EXPECT_TRUE(has_fault) << outcome.error().message;
          EXPECT_TRUE(state == before_commit || state == committed_state(reach));
        } else {
          refused++;
          EXPECT_EQ(outcome.error().code, Code::unavailable) << outcome.error().message;
          EXPECT_EQ(state, before_commit);
        }
        // It goes on under another name; what it had seen is as it was, or not.
        ASSERT_OK(run.committer_engine().beat());
        const Status again = run.commit();
        if (state == before_commit)
          EXPECT_OK(again);
        else
          EXPECT_CODE(again, Code::conflict);
        EXPECT_EQ(run.witness(), committed_state(reach));
      }
    }
  }
  EXPECT_GT(runs, 30u);
  EXPECT_GT(done, 5u);
  EXPECT_GT(refused, 5u);
}

}  // namespace
}  // namespace trellis
