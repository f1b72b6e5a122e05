// What the log keeps, in number and in bytes, against a model and when the engine fails.
#include "tenant/change_log.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/random.h"
#include "codec/system_keys.h"
#include "engine/faulty_engine.h"
#include "engine/memory_engine.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace change_log_test {

class ChangeLogTest : public testing::TestWithParam<Way> {
 protected:
  Status append(const ChangeLog& log, size_t bytes) {
    Scope scope = Scope::system();
    ChangeLog::lock(scope);
    return map_.transact(scope, [&](View& view) -> Status {
      Change change;
      change.detail = std::string(bytes, 'x');
      TRY(log.append(view, change));
      return {};
    });
  }
  // What is stored, by its size, oldest first.
  std::deque<uint64_t> sizes() {
    std::deque<uint64_t> found;
    const Bytes begin = encode(KeyspaceChangeKey{0});
    const Bytes end = encode(KeyspaceChangeKey{UINT64_MAX});
    EXPECT_OK(memory_.scan({.begin = begin, .end = end}, [&](ByteView key, ByteView value) {
      found.push_back(key.size() + value.size());
      return Visit::go_on;
    }));
    return found;
  }
  static uint64_t sum(const std::deque<uint64_t>& sizes) {
    uint64_t all = 0;
    for (const uint64_t size : sizes) all += size;
    return all;
  }

  MemoryEngine memory_;
  FaultyEngine faulty_{memory_};
  FakeClock clock_{1'700'000'000'000};
  Transactor transactor_{faulty_, clock_, {.way = GetParam(), .check_scope = true}};
  MapHandle map_{faulty_, transactor_, clock_};
};
INSTANTIATE_TEST_SUITE_P(BothWays, ChangeLogTest, testing::Values(Way::latched, Way::expecting),
                         [](const auto& info) {
                           return info.param == Way::latched ? "latched" : "expecting";
                         });

TEST_P(ChangeLogTest, KeepsAsMuchAsTheLimitsLetIt) {
  const uint64_t seed = test_seed(51);
  Random random(seed);
  const ChangeLogLimits limits{.entries_max = 50, .bytes_max = 20'000};
  const ChangeLog log(map_, limits);
  std::deque<uint64_t> kept;
  faulty_.set_options({.seed = seed, .fail_commit_one_in = 10, .conflict_one_in = 10});
  for (uint64_t i = 0; i < test_rounds(2'000); i++) {
    // Times of small ones, which are many, and of large ones, which are much.
    const bool large = i / 100 % 2 == 1 && random.one_in(3);
    if (!append(log, random.below(large ? 25'000 : 50))) continue;
    const auto now = sizes();
    kept.push_back(now.back());
    while (kept.size() > limits.entries_max) kept.pop_front();
    while (kept.size() > 1 && sum(kept) > limits.bytes_max) kept.pop_front();
    ASSERT_EQ(now, kept) << "seed " << seed << ", round " << i;
    const uint64_t last = log.revision().value();
    ASSERT_EQ(log.read(last - kept.size(), 1'000).value().size(), kept.size());
    if (last > kept.size())
      EXPECT_REASON(log.read(last - kept.size() - 1, 1'000), Code::not_found, "compacted");
  }
}

// What was stored before there was a limit of bytes stays readable, and goes by its number.
TEST_P(ChangeLogTest, GoesOnWithAnOldLog) {
  const ChangeLog unlimited(map_);
  for (int i = 0; i < 30; i++) ASSERT_OK(append(unlimited, 10));
  Commit old;
  Bytes head(1, '\x01');
  append_be64(head, 30);
  old.writes.put(encode(KeyspaceRevisionKey{}), head);
  ASSERT_OK(commit(memory_, old));
  const ChangeLog log(map_, {.entries_max = 30, .bytes_max = 1'000});
  EXPECT_EQ(log.revision().value(), 30u);
  EXPECT_EQ(log.read(0, 100).value().size(), 30u);
  ASSERT_OK(append(log, 10));
  EXPECT_REASON(log.read(0, 100), Code::not_found, "compacted");
  EXPECT_EQ(log.read(1, 100).value().size(), 30u);
  for (int i = 0; i < 100; i++) ASSERT_OK(append(log, 100));
  EXPECT_LE(sum(sizes()), 1'000u);
  EXPECT_EQ(log.revision().value(), 131u);
}

// A log that shall be much smaller gets there by and by: no append does all of it.
TEST_P(ChangeLogTest, ALimitMayFall) {
  const ChangeLog large(map_);
  for (int i = 0; i < 5'000; i++) ASSERT_OK(append(large, 1));
  const ChangeLog small(map_, {.entries_max = 10});
  ASSERT_OK(append(small, 1));
  EXPECT_EQ(sizes().size(), 3'001u);
  ASSERT_OK(append(small, 1));
  ASSERT_OK(append(small, 1));
  EXPECT_EQ(sizes().size(), 10u);
}

TEST_P(ChangeLogTest, AHeadThatMakesNoSenseIsCorrupt) {
  const ChangeLog log(map_);
  for (const Bytes& head : {Bytes(), Bytes("\x01"), Bytes(25, '\x03'), Bytes(24, '\x02')}) {
    Commit broken;
    broken.writes.put(encode(KeyspaceRevisionKey{}), head);
    ASSERT_OK(commit(memory_, broken));
    EXPECT_CODE(log.revision(), Code::corrupt);
    EXPECT_CODE(log.read(0, 1), Code::corrupt);
    EXPECT_CODE(append(log, 1), Code::corrupt);
  }
}

}  // namespace change_log_test
}  // namespace trellis
