// What is left after a crash: a prefix of the order, with everything that was waited for, and
// never half a commit.
#include <atomic>
#include <thread>

#include "conformance/engine_fixture.h"
#include "engine/faulty_engine.h"

namespace trellis {
namespace {

// Commit number i of a writer: two keys that must always be there together.
Commit numbered(const std::string& writer, uint64_t number, Durability durability) {
  Commit wanted;
  Bytes suffix;
  append_be32(suffix, static_cast<uint32_t>(number));
  wanted.writes.put(raw("first " + writer + suffix), std::to_string(number));
  wanted.writes.put(raw("second " + writer + suffix), std::to_string(number));
  wanted.durability = durability;
  return wanted;
}

class CrashConformance : public EngineConformance {
 protected:
  std::vector<bool> present(const std::string& half, const std::string& writer, uint64_t count) {
    std::vector<bool> found;
    for (uint64_t i = 0; i < count; i++) {
      Bytes suffix;
      append_be32(suffix, static_cast<uint32_t>(i));
      found.push_back(get(engine(), raw(half + " " + writer + suffix)).has_value());
    }
    return found;
  }
  // How many of a writer's commits are there. They must be the first ones, and whole.
  uint64_t survivors(const std::string& writer, uint64_t count) {
    const std::vector<bool> first = present("first", writer, count);
    EXPECT_EQ(first, present("second", writer, count)) << "half a commit of writer " << writer;
    uint64_t kept = 0;
    while (kept < count && first[kept]) kept++;
    for (uint64_t i = kept; i < count; i++) {
      EXPECT_FALSE(first[i]) << "writer " << writer << ": " << i << " is there, " << kept
                             << " is not";
    }
    return kept;
  }
};

TEST_P(CrashConformance, ReopeningKeepsEverything) {
  constexpr uint64_t count = 50;
  const BlockId block{keyspace, DataId{1}, 0};
  const BlockWrite write{block, std::nullopt, "block"};
  ASSERT_OK(engine().blocks().write({&write, 1}));
  for (uint64_t i = 0; i < count; i++) {
    ASSERT_OK(commit(engine(), numbered("w", i, static_cast<Durability>(i % 3))));
  }
  Commit more;
  more.writes.remove_range(raw("first w"), raw("first x"));
  more.writes.add(counter("n"), 3);
  ASSERT_OK(commit(engine(), more));
  const Entries before = scan_all(engine(), {});
  under_test_->reopen();
  EXPECT_EQ(scan_all(engine(), {}), before);
  EXPECT_EQ(before.size(), count + 1);
  Value value;
  ASSERT_OK(engine().blocks().read({&block, 1}, {&value, 1}));
  ASSERT_TRUE(value.found());
  EXPECT_EQ(value.bytes(), "block");
}

TEST_P(CrashConformance, APrefixSurvivesWithAllThatIsDurable) {
  const size_t rounds = test_rounds(40);
  for (uint64_t seed = 1; seed <= rounds; seed++) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::string writer = "w" + std::to_string(seed);
    const uint64_t count = 1 + random.below(30);
    uint64_t durable = 0;
    for (uint64_t i = 0; i < count; i++) {
      // Written before its commit: never missing where the commit is there.
      const BlockId block{keyspace, DataId{seed}, i};
      const BlockWrite write{block, std::nullopt, "block"};
      ASSERT_OK(engine().blocks().write({&write, 1}));
      const bool wait = random.one_in(10);
      ASSERT_OK(commit(engine(), numbered(writer, i, wait ? Durability::always : Durability::off)));
      if (wait) durable = i + 1;
    }
    if (random.one_in(3)) {
      ASSERT_OK(engine().wait_durable(engine().last_ticket()));
      durable = count;
    }
    under_test_->crash(random);
    const uint64_t kept = survivors(writer, count);
    EXPECT_GE(kept, durable);
    for (uint64_t i = 0; i < kept; i++) {
      const BlockId block{keyspace, DataId{seed}, i};
      Value value;
      ASSERT_OK(engine().blocks().read({&block, 1}, {&value, 1}));
      EXPECT_TRUE(value.found()) << "commit " << i << " without its block";
    }
    if (HasFailure()) return;
  }
}

// Threads write until a crash point stops them all, each in the middle of something.
class CrashPointConformance : public CrashConformance {
 protected:
  struct Writer {
    uint64_t tried = 0;
    uint64_t durable = 0;  // answered, with Durability::always
  };
  static void write_until_crash(Engine& engine, size_t number, Writer& writer) {
    const std::string name = std::to_string(number);
    while (true) {
      const auto durability = writer.tried % 2 == 0 ? Durability::always : Durability::off;
      const Status status = commit(engine, numbered(name, writer.tried, durability));
      writer.tried++;
      if (!status.has_value()) return;
      if (durability == Durability::always) writer.durable = writer.tried;
    }
  }
  void run(CrashPoint point, uint64_t seed) {
    constexpr size_t writers_count = 3;
    Random random(seed);
    FaultyEngine stopping(engine());
    stopping.crash_at(point, 1 + random.below(40));
    Writer writers[writers_count];
    std::vector<std::thread> threads;
    for (size_t i = 0; i < writers_count; i++) {
      threads.emplace_back([&, i] { write_until_crash(stopping, i, writers[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(stopping.crashed());
    under_test_->crash(random);
    for (size_t i = 0; i < writers_count; i++) {
      EXPECT_GE(survivors(std::to_string(i), writers[i].tried), writers[i].durable);
    }
    Commit clear;
    clear.writes.remove_range(first_key, "");
    ASSERT_OK(commit(engine(), clear));
  }
};

TEST_P(CrashPointConformance, EveryPoint) {
  for (const CrashPoint point :
       {CrashPoint::before_commit, CrashPoint::after_commit, CrashPoint::before_durable}) {
    for (uint64_t seed = 1; seed <= test_rounds(30); seed++) {
      SCOPED_TRACE(testing::Message() << "point " << static_cast<int>(point) << " seed " << seed);
      run(point, seed);
      if (HasFailure()) return;
    }
  }
}

ON_ALL_ENGINES(CrashConformance);
ON_ALL_ENGINES(CrashPointConformance);

}  // namespace
}  // namespace trellis
