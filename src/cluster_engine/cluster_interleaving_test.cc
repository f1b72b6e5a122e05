// A commit in the middle of a split or merge, a split or merge in the middle of a commit, and help
// in the middle of either: at every operation of the one, all of the other.
#include <gtest/gtest.h>

#include <iostream>
#include <numeric>
#include <semaphore>
#include <thread>

#include "base/random.h"
#include "support/commit_run.h"

namespace trellis {
namespace {

enum class RangeStep : uint8_t { split_k, split_m, split_p, merge_km, merge_mp };
constexpr RangeStep range_steps[] = {RangeStep::split_k, RangeStep::split_m, RangeStep::split_p,
                                     RangeStep::merge_km, RangeStep::merge_mp};

Status change(ObjectStore& client, RangeStep step) {
  const auto split = [&](ByteView at) -> Status {
    TRY_ASSIGN(const RangeHeader range, find_range(client, at));
    return split_range(client, range, at, RangeId{1000 + static_cast<uint64_t>(step)});
  };
  const auto merge = [&](ByteView first, ByteView second) -> Status {
    TRY_ASSIGN(const RangeHeader left, find_range(client, first));
    TRY_ASSIGN(const RangeHeader right, find_range(client, second));
    return merge_ranges(client, left, right);
  };
  switch (step) {
    case RangeStep::split_k: return split("k2");
    case RangeStep::split_m: return split("m1");
    case RangeStep::split_p: return split("p2");
    case RangeStep::merge_km: return merge("k", "m");
    case RangeStep::merge_mp: return merge("m", "p");
  }
  return {};
}

class Interleaving : public testing::Test {
 protected:
  // How many operations it takes alone.
  static size_t operations_of(RangeStep step) {
    CommitRun run({Reach::three_ranges, Meanwhile::nothing});
    FaultyObjectStore changer(run.objects());
    EXPECT_OK(change(changer, step));
    return changer.passed().size();
  }
  // Runs `inner` before operation number `at` of the client.
  static void at_operation(FaultyObjectStore& client, size_t at, std::function<void()> inner) {
    client.before_each(
        [at, count = size_t{0}, inner = std::move(inner)](const PassedPoint&) mutable {
          if (++count == at) inner();
        });
  }
  static State read_in_order(Engine& engine, const std::vector<size_t>& places) {
    std::vector<ByteView> keys;
    for (const size_t place : places) keys.push_back(key_names[place]);
    std::vector<Value> values(keys.size());
    EXPECT_OK(engine.multi_get(keys, values));
    State state(keys.size());
    for (size_t i = 0; i < keys.size(); i++)
      if (values[i].found()) state[places[i]] = Bytes(values[i].bytes());
    return state;
  }
  static std::vector<size_t> shuffled_places(Random& random) {
    std::vector<size_t> places(std::size(key_names));
    std::iota(places.begin(), places.end(), size_t{0});
    for (size_t i = places.size(); i > 1; i--) std::swap(places[i - 1], places[random.below(i)]);
    return places;
  }
  static void expect_whole(const State& state) {
    EXPECT_TRUE(state == before_commit || state == after_commit) << testing::PrintToString(state);
  }
  void finish(CommitRun& run) {
    EXPECT_EQ(run.witness(), after_commit);
    EXPECT_OK(run.write_as_witness());
    EXPECT_EQ(run.witness(), after_writer);
    cases_++;
  }
  ~Interleaving() override { std::cout << cases_ << " cases\n"; }

  size_t cases_ = 0;
};

TEST_F(Interleaving, ACommitInASplitOrMerge) {
  for (const RangeStep step : range_steps) {
    const size_t operations = operations_of(step);
    for (size_t at = 1; at <= operations && !HasFailure(); at++) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(step) << " operation " << at);
      CommitRun run({Reach::three_ranges, Meanwhile::nothing});
      FaultyObjectStore changer(run.objects());
      at_operation(changer, at, [&] { EXPECT_OK(run.commit()); });
      discard(change(changer, step));  // it may have been given up for the commit
      finish(run);
    }
  }
}

// What was decided on and not resolved is so by a reader while the range is being changed.
TEST_F(Interleaving, HelpInASplitOrMerge) {
  for (const RangeStep step : range_steps) {
    const size_t operations = operations_of(step);
    for (size_t at = 1; at <= operations && !HasFailure(); at++) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(step) << " operation " << at);
      CommitRun run({Reach::three_ranges, Meanwhile::nothing});
      run.committer().plan({"resolve", 1, FaultMode::crash_before});
      EXPECT_OK(run.commit());
      FaultyObjectStore changer(run.objects());
      at_operation(changer, at, [&] { EXPECT_EQ(run.witness(), after_commit); });
      discard(change(changer, step));
      finish(run);
    }
  }
}

TEST_F(Interleaving, ASplitOrMergeInACommit) {
  size_t operations = 0;
  {
    CommitRun run({Reach::three_ranges, Meanwhile::nothing});
    const size_t before = run.committer().passed().size();
    EXPECT_OK(run.commit());
    operations = run.committer().passed().size() - before;
  }
  for (const RangeStep step : range_steps) {
    for (size_t at = 1; at <= operations && !HasFailure(); at++) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(step) << " operation " << at);
      CommitRun run({Reach::three_ranges, Meanwhile::nothing});
      at_operation(run.committer(), at, [&] { EXPECT_OK(change(run.objects(), step)); });
      EXPECT_OK(run.commit());
      finish(run);
    }
  }
}

// A reader that knows no range yet, in any order of keys; and at once a commit, after a split or
// merge, or one that dies before all is resolved.
TEST_F(Interleaving, ASplitOrMergeAndACommitInARead) {
  Random random(1);
  for (const RangeStep step : range_steps) {
    for (int order = 0; order < 12; order++) {
      const std::vector<size_t> places = shuffled_places(random);
      bool reached = true;
      for (size_t at = 1; reached && !HasFailure(); at++) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(step) << " operation " << at);
        CommitRun run({Reach::three_ranges, Meanwhile::nothing});
        FakeClock clock(0);
        CommitClient reader(run.objects(), clock);
        const bool changes = random.one_in(2);
        if (!changes)  // decided, and resolved in none, one or two of its ranges
          run.committer().plan({"resolve", 1 + random.below(3), FaultMode::crash_before});
        reached = false;
        at_operation(reader.store, at, [&] {
          reached = true;
          if (changes) {
            EXPECT_OK(change(run.objects(), step));
          }
          EXPECT_OK(run.commit());
        });
        expect_whole(read_in_order(*reader.engine, places));
        reader.store.before_each({});
        if (!reached) {
          EXPECT_OK(run.commit());
        }
        finish(run);
      }
    }
  }
}

// The same, with a split or merge that stands still when the read begins, and goes on in it.
TEST_F(Interleaving, AReadOverASplitOrMerge) {
  Random random(2);
  for (const RangeStep step : range_steps) {
    const size_t operations = operations_of(step);
    for (size_t stop = 1; stop <= operations; stop++) {
      const std::vector<size_t> places = shuffled_places(random);
      bool reached = true;
      for (size_t at = 1; reached && !HasFailure(); at++) {
        SCOPED_TRACE(testing::Message()
                     << static_cast<int>(step) << " stands at " << stop << ", operation " << at);
        CommitRun run({Reach::three_ranges, Meanwhile::nothing});
        FakeClock clock(0);
        CommitClient reader(run.objects(), clock);
        FaultyObjectStore changer(run.objects());
        std::binary_semaphore stands{0};
        std::binary_semaphore goes_on{0};
        at_operation(changer, stop, [&] {
          stands.release();
          goes_on.acquire();
        });
        std::thread thread([&] { discard(change(changer, step)); });
        stands.acquire();
        reached = false;
        at_operation(reader.store, at, [&] {
          reached = true;
          goes_on.release();
          thread.join();
          EXPECT_OK(run.commit());
        });
        expect_whole(read_in_order(*reader.engine, places));
        reader.store.before_each({});
        if (!reached) {
          goes_on.release();
          thread.join();
          EXPECT_OK(run.commit());
        }
        finish(run);
      }
    }
  }
}

// The one that began dies in the middle, and the commit comes after it.
TEST_F(Interleaving, ACommitAfterADeadSplitOrMerge) {
  for (const RangeStep step : range_steps) {
    const size_t operations = operations_of(step);
    for (size_t at = 1; at <= operations && !HasFailure(); at++) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(step) << " operation " << at);
      CommitRun run({Reach::three_ranges, Meanwhile::nothing});
      FaultyObjectStore changer(run.objects());
      at_operation(changer, at, [&] { changer.kill(); });
      discard(change(changer, step));
      EXPECT_OK(run.commit());
      finish(run);
    }
  }
}

}  // namespace
}  // namespace trellis
