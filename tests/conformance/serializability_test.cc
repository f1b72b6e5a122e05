// The checker itself: on histories that are wrong in every way it must find, and on right ones.
#include "conformance/serializability.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"

namespace trellis {
namespace {

using Outcome = ListTransaction::Outcome;

ListAccess append(uint64_t key, uint64_t value) { return {key, value, {}}; }
ListAccess read(uint64_t key, std::vector<uint64_t> list) {
  return {key, std::nullopt, std::move(list)};
}
ListTransaction done(uint64_t begin, uint64_t end, std::vector<ListAccess> accesses) {
  return {begin, end, Outcome::done, std::move(accesses)};
}

void expect_anomaly(const std::vector<ListTransaction>& history, const std::string& words) {
  const auto anomaly = find_anomaly(history);
  ASSERT_TRUE(anomaly.has_value()) << "not found: " << words;
  EXPECT_NE(anomaly->find(words), std::string::npos) << *anomaly;
}

void expect_right(const std::vector<ListTransaction>& history) {
  const auto anomaly = find_anomaly(history);
  EXPECT_FALSE(anomaly.has_value()) << *anomaly;
}

TEST(Serializability, EmptyAndSerialHistories) {
  expect_right({});
  expect_right({done(1, 2, {read(1, {}), append(1, 10)}),
                done(3, 4, {read(1, {10}), append(1, 11)}), done(5, 6, {read(1, {10, 11})})});
}

TEST(Serializability, ConcurrentTransactionsMayTakeEitherOrder) {
  expect_right({done(1, 9, {append(1, 10)}), done(2, 8, {append(1, 11)}),
                done(10, 11, {read(1, {11, 10})})});
  // A reader beside a writer may see it or not.
  expect_right(
      {done(1, 9, {append(1, 10)}), done(2, 8, {read(1, {})}), done(3, 7, {read(1, {10})})});
}

TEST(Serializability, LostUpdate) {
  expect_anomaly({done(1, 4, {read(1, {}), append(1, 10)}),
                  done(2, 5, {read(1, {}), append(1, 11)}), done(6, 7, {read(1, {10, 11})})},
                 "cycle");
  // The other form: one of the appends is gone.
  expect_anomaly(
      {done(1, 4, {append(1, 10)}), done(2, 5, {append(1, 11)}), done(6, 7, {read(1, {11})})},
      "cycle");
}

TEST(Serializability, WriteSkew) {
  expect_anomaly(
      {done(1, 4, {read(1, {}), append(2, 20)}), done(2, 5, {read(2, {}), append(1, 10)}),
       done(6, 7, {read(1, {10}), read(2, {20})})},
      "rw");
}

TEST(Serializability, TornReadOfTwoKeys) {
  expect_anomaly(
      {done(1, 5, {append(1, 10), append(2, 20)}), done(2, 6, {read(1, {10}), read(2, {})}),
       done(7, 8, {read(1, {10}), read(2, {20})})},
      "cycle");
}

TEST(Serializability, ReadersThatDisagreeAboutTheOrder) {
  expect_anomaly(
      {done(1, 9, {append(1, 10)}), done(1, 9, {append(2, 20)}),
       done(2, 8, {read(1, {10}), read(2, {})}), done(2, 8, {read(1, {}), read(2, {20})})},
      "cycle");
}

TEST(Serializability, DirtyRead) {
  expect_anomaly({done(1, 4, {append(1, 10), append(1, 11)}), done(2, 3, {read(1, {10})})},
                 "dirty read");
}

TEST(Serializability, AbortedRead) {
  expect_anomaly({{1, 2, Outcome::failed, {append(1, 10)}}, done(3, 4, {read(1, {10})})},
                 "aborted read");
}

TEST(Serializability, StaleReadInRealTime) {
  expect_anomaly(
      {done(1, 2, {append(1, 10)}), done(3, 4, {read(1, {})}), done(5, 6, {read(1, {10})})}, "rt");
  // Even if nobody ever sees the append.
  expect_anomaly({done(1, 2, {append(1, 10)}), done(3, 4, {read(1, {})})}, "rt");
}

TEST(Serializability, StaleReadThroughOthers) {
  // T0 before T1 in real time, T1 before T2 by what it read, and T2 began before T0 ended.
  expect_anomaly({done(1, 2, {append(1, 10)}), done(3, 6, {append(2, 20)}),
                  done(1, 6, {read(2, {20}), read(1, {})})},
                 "cycle");
}

TEST(Serializability, ValuesFromNowhereAndListsThatFork) {
  expect_anomaly({done(1, 2, {read(1, {99})})}, "nobody appended");
  expect_anomaly({done(1, 9, {append(1, 10)}), done(1, 9, {append(1, 11)}),
                  done(2, 8, {read(1, {10, 11})}), done(2, 8, {read(1, {11})})},
                 "no prefix");
}

TEST(Serializability, OwnAppends) {
  expect_right(
      {done(1, 2, {read(1, {}), append(1, 10), read(1, {10}), append(1, 11), read(1, {10, 11})}),
       done(3, 4, {append(1, 12), read(1, {10, 11, 12})})});
  expect_anomaly({done(1, 2, {append(1, 10), read(1, {})})}, "its own append");
  expect_anomaly({done(1, 2, {read(1, {10}), append(1, 10)})}, "before it appended");
}

TEST(Serializability, MaybeMayHaveHappenedOrNot) {
  const ListTransaction maybe{1, 2, Outcome::maybe, {read(1, {}), append(1, 10)}};
  expect_right({maybe, done(3, 4, {read(1, {})})});
  expect_right({maybe, done(3, 4, {read(1, {10})})});
  // It may happen after it was answered, but what was seen cannot go away again.
  expect_right({maybe, done(3, 4, {read(1, {})}), done(5, 6, {read(1, {10})})});
  expect_anomaly({maybe, done(3, 4, {read(1, {10})}), done(5, 6, {read(1, {})})}, "cycle");
  // If it happened, so did its reads.
  expect_anomaly({{1, 2, Outcome::maybe, {read(2, {}), append(1, 10)}},
                  done(1, 2, {read(1, {}), append(2, 20)}),
                  done(3, 4, {read(1, {10}), read(2, {20})})},
                 "cycle");
}

// Serial runs in random order are right; swapping one read of them for an older one is not.
TEST(Serializability, RandomSerialHistoriesAndOneStaleRead) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::map<uint64_t, std::vector<uint64_t>> lists;
    std::vector<ListTransaction> history;
    uint64_t value = 100;
    for (uint64_t time = 1; time < 400; time += 2) {
      ListTransaction transaction = done(time, time + 1, {});
      for (uint64_t i = 0; i < 3; i++) {
        const uint64_t key = random.below(3);
        if (random.one_in(2)) {
          transaction.accesses.push_back(read(key, lists[key]));
        } else {
          transaction.accesses.push_back(append(key, value));
          lists[key].push_back(value++);
        }
      }
      history.push_back(std::move(transaction));
    }
    expect_right(history);
    for (size_t i = history.size() / 2; i < history.size(); i++) {
      ListAccess& access = history[i].accesses.front();
      if (access.appended || access.list.empty()) continue;
      access.list.pop_back();
      break;
    }
    EXPECT_TRUE(find_anomaly(history).has_value());
  }
}

}  // namespace
}  // namespace trellis
