// Every single fault of a commit, and every pair of one in the commit and one in whoever helps:
// what was answered is there, what was refused is not, nothing is ever half there or there twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "support/commit_run.h"

namespace trellis {
namespace {

constexpr int looks_max = 2;  // of one kind, that are made to fail

// One operation that does it all, or the decision.
bool may_be_unknown(const Fault& fault) {
  return fault.point.starts_with("commit") || fault.point.starts_with("decide");
}

bool is_crash(FaultMode mode) {
  return mode == FaultMode::crash_before || mode == FaultMode::crash_after;
}
bool holds_back(FaultMode mode) {
  return mode == FaultMode::delayed || mode == FaultMode::duplicated;
}

class CommitCrash : public testing::Test {
 protected:
  // The points that the committer passes in its commit, and the helper in its read after it.
  static std::vector<PassedPoint> points_of_commit(const Scenario& scenario) {
    CommitRun run(scenario);
    const size_t before = run.committer().passed().size();
    EXPECT_OK(run.commit());
    std::vector<PassedPoint> points = run.committer().passed();
    points.erase(points.begin(), points.begin() + static_cast<ptrdiff_t>(before));
    return points;
  }

  // Checks what the answer promises, and says which state it is.
  static void expect_as_answered(const Scenario& scenario, bool may_be_unknown,
                                 const Status& outcome, const State& state) {
    const State committed = committed_state(scenario.reach);
    if (outcome.has_value()) {
      EXPECT_EQ(state, committed);
    } else if (outcome.error().code == Code::maybe) {
      EXPECT_TRUE(may_be_unknown) << outcome.error().message;
      EXPECT_TRUE(state == before_commit || state == committed) << testing::PrintToString(state);
    } else {
      EXPECT_EQ(outcome.error().code, Code::unavailable) << outcome.error().message;
      EXPECT_EQ(state, before_commit);
    }
  }

  // What is late arrives before anybody looks, after somebody has, or after somebody has written.
  enum class Late : uint8_t { before_looks, after_looks, after_writes };

  void single(const Scenario& scenario, const Fault& fault, Late late) {
    SCOPED_TRACE(testing::Message() << fault.point << " " << fault.nth << " "
                                    << to_string(fault.mode) << " late " << static_cast<int>(late));
    CommitRun run(scenario);
    run.committer().plan(fault);
    const Status outcome = run.commit();
    if (late == Late::before_looks) run.release();
    const State seen = run.witness();
    expect_as_answered(scenario, may_be_unknown(fault), outcome, seen);
    if (late == Late::after_looks) {
      run.release();
      const State again = run.witness();
      // Across ranges, what was seen is decided. An operation on one range may still be on its way.
      if (scenario.reach == Reach::three_ranges || outcome.has_value()) {
        EXPECT_EQ(again, seen);
      } else {
        expect_as_answered(scenario, may_be_unknown(fault), outcome, again);
      }
    }
    EXPECT_OK(run.write_as_witness());
    if (late == Late::after_writes) run.release();
    EXPECT_EQ(run.witness(), after_writer);
    cases_++;
  }

  void pair(const Scenario& scenario, const Fault& first, const Fault& second) {
    SCOPED_TRACE(testing::Message()
                 << first.point << " " << first.nth << " " << to_string(first.mode) << ", then "
                 << second.point << " " << second.nth << " " << to_string(second.mode));
    CommitRun run(scenario);
    run.committer().plan(first);
    const Status outcome = run.commit();
    run.helper().plan(second);
    Status helped;
    const State by_helper = run.help(helped);
    const bool unknown = may_be_unknown(first);
    if (helped.has_value()) expect_as_answered(scenario, unknown, outcome, by_helper);
    const State seen = run.witness();
    expect_as_answered(scenario, unknown, outcome, seen);
    if (helped.has_value()) {
      EXPECT_EQ(seen, by_helper);
    }
    run.release();
    EXPECT_EQ(run.witness(), seen);
    EXPECT_OK(run.write_as_witness());
    EXPECT_EQ(run.witness(), after_writer);
    cases_++;
  }

  // Both of the committer, who goes on after the first one. What is late arrives when somebody has
  // looked, or written.
  void pair_of_one(const Scenario& scenario, const Fault& first, const Fault& second, Late late) {
    SCOPED_TRACE(testing::Message()
                 << first.point << " " << first.nth << " " << to_string(first.mode) << ", and "
                 << second.point << " " << second.nth << " " << to_string(second.mode) << " late "
                 << static_cast<int>(late));
    CommitRun run(scenario);
    run.committer().plan(first);
    run.committer().plan(second);
    const Status outcome = run.commit();
    const bool unknown = may_be_unknown(first) || may_be_unknown(second);
    const State seen = run.witness();
    expect_as_answered(scenario, unknown, outcome, seen);
    if (late == Late::after_looks) {
      run.release();
      const State again = run.witness();
      if (scenario.reach == Reach::three_ranges || outcome.has_value()) {
        EXPECT_EQ(again, seen);
      } else {
        expect_as_answered(scenario, unknown, outcome, again);
      }
    }
    EXPECT_OK(run.write_as_witness());
    run.release();
    EXPECT_EQ(run.witness(), after_writer);
    cases_++;
  }

  // What the committer passes behind a fault that it survives.
  static std::vector<PassedPoint> points_behind(const Scenario& scenario, const Fault& first) {
    CommitRun run(scenario);
    run.committer().plan(first);
    discard(run.commit());
    std::vector<PassedPoint> points = run.committer().passed();
    const auto at = std::ranges::find_if(points, [&](const PassedPoint& point) {
      return point.point == first.point && point.nth == first.nth;
    });
    EXPECT_NE(at, points.end());
    points.erase(points.begin(), at + 1);
    return points;
  }

  size_t cases_ = 0;
};

TEST_F(CommitCrash, EverySingleFault) {
  for (const Reach reach : {Reach::one_range, Reach::three_ranges}) {
    for (const Meanwhile meanwhile : {Meanwhile::nothing, Meanwhile::splits}) {
      const Scenario scenario{reach, meanwhile};
      const std::vector<PassedPoint> points = points_of_commit(scenario);
      for (const PassedPoint& point : points)
        for (const FaultMode mode : fault_modes)
          for (const Late late : {Late::before_looks, Late::after_looks, Late::after_writes}) {
            single(scenario, {point.point, point.nth, mode}, late);
            if (HasFailure()) return;
          }
      std::cout << points.size() << " points\n";
    }
  }
  std::cout << cases_ << " cases\n";
  EXPECT_GT(cases_, 500u);
}

TEST_F(CommitCrash, EveryPairOfACommitterAndAHelper) {
  for (const Meanwhile meanwhile : {Meanwhile::nothing, Meanwhile::splits}) {
    const Scenario scenario{Reach::three_ranges, meanwhile};
    for (const PassedPoint& point : points_of_commit(scenario)) {
      if (!point.is_write) continue;  // a read that fails is as the crash before the next write
      for (const FaultMode mode : fault_modes) {
        const Fault first{point.point, point.nth, mode};
        std::vector<PassedPoint> met;
        {
          CommitRun run(scenario);
          run.committer().plan(first);
          discard(run.commit());
          const size_t before = run.helper().passed().size();
          Status status;
          run.help(status);
          met = run.helper().passed();
          met.erase(met.begin(), met.begin() + static_cast<ptrdiff_t>(before));
        }
        std::map<std::string, int> looks;
        for (const PassedPoint& next : met) {
          // Looking at an intent again and again differs in nothing.
          if (!next.is_write && ++looks[next.point] > looks_max) continue;
          for (const FaultMode second : fault_modes) {
            pair(scenario, first, {next.point, next.nth, second});
            if (HasFailure()) return;
          }
        }
      }
    }
  }
  std::cout << cases_ << " cases\n";
  EXPECT_GT(cases_, 1'000u);
}

TEST_F(CommitCrash, EveryPairOfOneCommitter) {
  for (const Reach reach : {Reach::one_range, Reach::three_ranges}) {
    for (const Meanwhile meanwhile : {Meanwhile::nothing, Meanwhile::splits}) {
      const Scenario scenario{reach, meanwhile};
      for (const PassedPoint& point : points_of_commit(scenario)) {
        for (const FaultMode mode : fault_modes) {
          if (is_crash(mode)) continue;
          const Fault first{point.point, point.nth, mode};
          std::map<std::string, int> looks;
          for (const PassedPoint& next : points_behind(scenario, first)) {
            if (!next.is_write && ++looks[next.point] > looks_max) continue;
            for (const FaultMode second : fault_modes)
              for (const Late late : {Late::after_looks, Late::after_writes}) {
                if (late == Late::after_writes && !holds_back(mode) && !holds_back(second))
                  continue;
                pair_of_one(scenario, first, {next.point, next.nth, second}, late);
                if (HasFailure()) return;
              }
          }
        }
      }
    }
  }
  std::cout << cases_ << " cases\n";
  EXPECT_GT(cases_, 1'000u);
}

}  // namespace
}  // namespace trellis
