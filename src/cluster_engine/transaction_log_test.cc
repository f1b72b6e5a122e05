#include "cluster_engine/transaction_log.h"

#include <gtest/gtest.h>

#include "support/commit_run.h"

namespace trellis {
namespace {

// A decision that was made and not answered is gone with its log: nobody can know it any more.
TEST(TransactionLog, TheDecisionOfAClientThatIsSweptMeanwhileIsUnknown) {
  CommitRun run({Reach::three_ranges, Meanwhile::nothing});
  run.committer().plan({.point = "decide", .mode = FaultMode::timed_out});
  run.committer().before_each([&](const PassedPoint& passed) {
    if (passed.point == "decide.look" && passed.nth == 1) run.sweep_committer();
  });
  EXPECT_CODE(run.commit(), Code::maybe);
  EXPECT_EQ(run.witness(), after_commit);
}

TEST(TransactionLog, AClientThatWasSweptBeforeItDecidedHasNotCommitted) {
  for (const char* const point : {"decide", "decide.look"}) {
    SCOPED_TRACE(point);
    CommitRun run({Reach::three_ranges, Meanwhile::nothing});
    run.committer().plan({.point = "decide", .mode = FaultMode::lost});
    run.committer().before_each([&](const PassedPoint& passed) {
      if (passed.point == point && passed.nth == 1) run.sweep_committer();
    });
    const Status outcome = run.commit();
    ASSERT_FALSE(outcome.has_value());
    EXPECT_TRUE(outcome.error().code == Code::maybe || outcome.error().code == Code::unavailable)
        << outcome.error().message;
    EXPECT_EQ(run.witness(), before_commit);
  }
}

// The copy that an unfinished merge has put behind the end of a range is no part of it.
TEST(TransactionLog, IntentsBehindTheEndOfARangeAreResolvedWhereTheyBelong) {
  FakeObjectStore objects(FakeObjectStoreLimits{.read_entries = 5});
  FakeClock clock(0);
  ASSERT_OK(bootstrap_ranges(objects));
  ASSERT_OK(split_range(objects, *find_range(objects, "m"), "m", RangeId{2}));
  CommitClient committer(objects, clock);
  Commit wanted;
  for (char i = '0'; i <= '9'; i++) wanted.writes.put(Bytes("a") + i, "new");
  wanted.writes.put("z", "new");

  // Between the decision and what follows its range is split, and half merged again.
  FaultyObjectStore merger(objects);
  committer.store.before_each([&](const PassedPoint& passed) {
    if (passed.point != "resolve" || passed.nth != 1) return;
    ASSERT_OK(split_range(objects, *find_range(objects, "a3"), "a3", RangeId{3}));
    merger.plan({.point = "merge.commit", .mode = FaultMode::crash_before});
    const RangeHeader left = *find_range(objects, "a0");
    EXPECT_FALSE(merge_ranges(merger, left, *find_range(objects, left.end)).has_value());
  });
  ASSERT_OK(commit(*committer.engine, wanted));

  CommitClient witness(objects, clock);
  for (char i = '0'; i <= '9'; i++) {
    Value value;
    ASSERT_OK(witness.engine->get(Bytes("a") + i, value));
    EXPECT_TRUE(value.found()) << i;
  }
}

}  // namespace
}  // namespace trellis
