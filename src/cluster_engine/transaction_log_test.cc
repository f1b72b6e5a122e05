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

}  // namespace
}  // namespace trellis
