#include "engine/faulty_engine.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/memory_engine.h"

namespace trellis {
namespace {

Commit put(ByteView key, ByteView value) {
  Commit commit;
  commit.writes.put(key, value);
  return commit;
}

bool holds(Engine& engine, ByteView key) {
  Value value;
  EXPECT_TRUE(engine.get(key, value).has_value());
  return value.found();
}

Bytes numbered(int number) { return "k" + std::to_string(number); }

TEST(FaultyEngine, PassesEverythingWithoutFaults) {
  MemoryEngine memory;
  FaultyEngine engine(memory);
  for (int i = 0; i < 1000; i++) ASSERT_TRUE(commit(engine, put(numbered(i), "v")).has_value());
  const FaultCounts counts = engine.counts();
  EXPECT_EQ(counts.commits + counts.maybes_applied + counts.maybes_dropped + counts.delays, 0u);
  EXPECT_TRUE(holds(memory, numbered(999)));
}

TEST(FaultyEngine, AnswersAreTrueAboutWhatWasApplied) {
  MemoryEngine memory;
  FaultyEngine engine(memory, {.seed = 7, .fail_commit_one_in = 5, .maybe_one_in = 5});
  uint64_t failed = 0;
  uint64_t maybe_there = 0;
  uint64_t maybe_not = 0;
  for (int i = 0; i < 1000; i++) {
    const Status status = commit(engine, put(numbered(i), "v"));
    const bool there = holds(memory, numbered(i));
    if (status.has_value()) {
      EXPECT_TRUE(there);
    } else if (status.error().code == Code::maybe) {
      (there ? maybe_there : maybe_not)++;
    } else {
      EXPECT_EQ(status.error().code, Code::unavailable);
      EXPECT_FALSE(there);
      failed++;
    }
  }
  const FaultCounts counts = engine.counts();
  EXPECT_GT(failed, 0u);
  EXPECT_GT(maybe_there, 0u);
  EXPECT_GT(maybe_not, 0u);
  EXPECT_EQ(counts.commits, failed);
  EXPECT_EQ(counts.maybes_applied, maybe_there);
  EXPECT_EQ(counts.maybes_dropped, maybe_not);
}

TEST(FaultyEngine, ConflictsOnlyWhereSomethingIsExpected) {
  MemoryEngine memory;
  FaultyEngine engine(memory, {.conflict_one_in = 1});
  EXPECT_TRUE(commit(engine, put("k", "v")).has_value());
  Commit expecting = put("k", "w");
  expecting.expectations.push_back({"k", std::nullopt, "v"});
  const Status status = commit(engine, expecting);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::conflict);
  EXPECT_EQ(engine.counts().conflicts, 1u);
}

TEST(FaultyEngine, OneSeedIsOneRun) {
  const auto run = [](uint64_t seed) {
    MemoryEngine memory;
    FaultyEngine engine(memory, {.seed = seed, .fail_commit_one_in = 3, .maybe_one_in = 3});
    std::vector<int> answers;
    for (int i = 0; i < 200; i++) {
      const Status status = commit(engine, put("k", "v"));
      answers.push_back(status.has_value() ? -1 : static_cast<int>(status.error().code));
    }
    return answers;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(FaultyEngine, ReadsFailBeforeOrAfterTheVisits) {
  MemoryEngine memory;
  ASSERT_TRUE(commit(memory, put("k", "v")).has_value());
  FaultyEngine engine(memory, {.fail_read_one_in = 1});
  Value value;
  EXPECT_FALSE(engine.get("k", value).has_value());
  const ByteView key = "k";
  EXPECT_FALSE(engine.multi_get({&key, 1}, {&value, 1}).has_value());
  size_t visits = 0;
  for (int i = 0; i < 100; i++) {
    EXPECT_FALSE(engine
                     .scan({},
                           [&](ByteView, ByteView) {
                             visits++;
                             return Visit::go_on;
                           })
                     .has_value());
  }
  EXPECT_GT(visits, 0u);
  EXPECT_LT(visits, 100u);
  EXPECT_EQ(engine.counts().reads, 102u);
}

TEST(FaultyEngine, CrashBeforeACommit) {
  MemoryEngine memory;
  FaultyEngine engine(memory);
  engine.crash_at(CrashPoint::before_commit, 2);
  EXPECT_TRUE(commit(engine, put("a", "v")).has_value());
  const Status status = commit(engine, put("b", "v"));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::unavailable);
  EXPECT_EQ(status.error().message, "crashed");
  EXPECT_TRUE(engine.crashed());
  Value value;
  EXPECT_FALSE(engine.get("a", value).has_value());
  EXPECT_FALSE(engine.scan({}, [](ByteView, ByteView) { return Visit::go_on; }).has_value());
  EXPECT_FALSE(engine.wait_durable(engine.last_ticket()).has_value());
  EXPECT_FALSE(engine.blocks().remove(KeyspaceId{1}, DataId{1}, 0, 1).has_value());
  EXPECT_FALSE(commit(engine, put("c", "v")).has_value());
  engine.restart();
  EXPECT_TRUE(holds(engine, "a"));
  EXPECT_FALSE(holds(engine, "b"));
  EXPECT_FALSE(holds(engine, "c"));
  EXPECT_EQ(engine.counts().crashes, 1u);
}

// Those before the crash in one call were applied, but their answers are lost as well.
TEST(FaultyEngine, CrashAfterACommitLosesTheAnswers) {
  MemoryEngine memory;
  FaultyEngine engine(memory);
  engine.crash_at(CrashPoint::after_commit, 2);
  const Commit wanted[] = {put("a", "v"), put("b", "v"), put("c", "v")};
  const Commit* const commits[] = {&wanted[0], &wanted[1], &wanted[2]};
  Status outcomes[3];
  engine.commit_many(commits, outcomes);
  const Code codes[] = {Code::maybe, Code::maybe, Code::unavailable};
  for (size_t i = 0; i < 3; i++) {
    ASSERT_FALSE(outcomes[i].has_value()) << i;
    EXPECT_EQ(outcomes[i].error().code, codes[i]) << i;
  }
  EXPECT_TRUE(holds(memory, "a"));
  EXPECT_TRUE(holds(memory, "b"));
  EXPECT_FALSE(holds(memory, "c"));
}

TEST(FaultyEngine, CrashBeforeDurableThenReopen) {
  auto store = std::make_shared<MemoryStore>(MemoryStore::Crashable::yes);
  MemoryEngine first(store, MemoryEngine::Use::alone);
  FaultyEngine engine(first);
  engine.crash_at(CrashPoint::before_durable, 1);
  Commit wanted = put("k", "v");
  wanted.durability = Durability::always;
  const Status status = commit(engine, wanted);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::maybe);
  Random random(1);
  const auto report = store->crash(random);
  MemoryEngine second(store, MemoryEngine::Use::alone);
  engine.restart(second);
  EXPECT_EQ(holds(engine, "k"), report.kept == 1);
}

TEST(FaultyEngine, BlocksFailAndCrash) {
  MemoryEngine memory;
  FaultyEngine engine(memory, {.fail_block_one_in = 1});
  const BlockId block{KeyspaceId{1}, DataId{1}, 0};
  const BlockWrite write{block, std::nullopt, "v"};
  EXPECT_FALSE(engine.blocks().write({&write, 1}).has_value());
  engine.set_options({});
  engine.crash_at(CrashPoint::before_block, 1);
  EXPECT_FALSE(engine.blocks().write({&write, 1}).has_value());
  engine.restart();
  Value value;
  ASSERT_TRUE(engine.blocks().read({&block, 1}, {&value, 1}).has_value());
  EXPECT_FALSE(value.found());
  EXPECT_EQ(engine.counts().blocks, 1u);
}

TEST(FaultyEngine, DelaysPassOnTheGivenClock) {
  MemoryEngine memory;
  FakeClock clock(0);
  FaultyEngine engine(memory, {.delay_one_in = 2, .delay_us_max = 50, .clock = &clock});
  for (int i = 0; i < 100; i++) ASSERT_TRUE(commit(engine, put("k", "v")).has_value());
  EXPECT_GT(engine.counts().delays, 0u);
  EXPECT_GT(clock.monotonic_us(), 0u);
}

TEST(FaultyEngine, ThreadsShareTheDice) {
  MemoryEngine memory;
  FaultyEngine engine(memory, {.fail_commit_one_in = 4});
  std::atomic<uint64_t> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; i++) {
        if (!commit(engine, put("k", "v")).has_value()) failed++;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(failed.load(), 0u);
  EXPECT_EQ(engine.counts().commits, failed.load());
}

}  // namespace
}  // namespace trellis
