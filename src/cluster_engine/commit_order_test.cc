#include "cluster_engine/commit_order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <latch>
#include <map>
#include <set>

#include "base/random.h"
#include "cluster_engine/cluster_engine.h"
#include "cluster_engine/range_change.h"
#include "cluster_engine/range_lookup.h"
#include "object_store/fake_object_store.h"
#include "object_store/faulty_object_store.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

// Of each commit: "=k" writes, "+k" adds, "?k" relies on a key, "-a,c" removes, "*a,c" relies on an
// interval; the result: commits of one chain together.
std::string chains_of(const std::vector<std::vector<std::string>>& texts) {
  std::vector<Commit> commits;
  for (const std::vector<std::string>& text : texts) {
    Commit& commit = commits.emplace_back();
    for (const std::string& each : text) {
      const Bytes key = each.substr(1, each.find(',') - 1);
      const Bytes end = each.find(',') == Bytes::npos ? "" : each.substr(each.find(',') + 1);
      switch (each[0]) {
        case '=': commit.writes.put(key, "v"); break;
        case '+': commit.writes.add(key, 1); break;
        case '-': commit.writes.remove_range(key, end); break;
        case '?': commit.expectations.push_back({key, std::nullopt, std::nullopt}); break;
        case '*': commit.expectations.push_back({key, end, Bytes()}); break;
      }
    }
  }
  std::vector<const Commit*> pointers;
  for (const Commit& commit : commits) pointers.push_back(&commit);
  std::string out;
  for (const std::vector<size_t>& chain : commit_chains(pointers)) {
    if (!out.empty()) out += ' ';
    for (const size_t i : chain) out += std::to_string(i);
  }
  return out;
}

TEST(CommitOrder, ChainsOfWhatTouchesTheSame) {
  EXPECT_EQ(chains_of({}), "");
  EXPECT_EQ(chains_of({{}, {}}), "0 1");
  EXPECT_EQ(chains_of({{"=a"}, {"=b"}, {"=c"}}), "0 1 2");
  EXPECT_EQ(chains_of({{"=a"}, {"=b"}, {"=a"}}), "02 1");
  EXPECT_EQ(chains_of({{"?a", "=x"}, {"?a", "=y"}}), "0 1");  // both only rely on it
  EXPECT_EQ(chains_of({{"?a", "=x"}, {"?a", "=y"}, {"=a"}}), "012");
  EXPECT_EQ(chains_of({{"+n", "=x"}, {"+n", "=y"}}), "01");
  EXPECT_EQ(chains_of({{"-b,d"}, {"=a"}, {"=b"}, {"=c"}, {"=d"}}), "023 1 4");
  EXPECT_EQ(chains_of({{"-b,"}, {"=a"}, {"=zz"}, {"-a,b"}}), "02 13");
  EXPECT_EQ(chains_of({{"*b,d"}, {"=a"}, {"=c"}, {"=d"}, {"*a,z"}}), "01234");
  EXPECT_EQ(chains_of({{"*b,d"}, {"=a"}, {"=c"}, {"=d"}}), "02 1 3");
  EXPECT_EQ(chains_of({{"*,"}, {"=a"}, {"*b,d"}, {"?e"}}), "01 2 3");
  EXPECT_EQ(chains_of({{"=a", "=c"}, {"=b"}, {"?c", "=d"}, {"-b,c"}}), "02 13");
}

TEST(CommitPool, TasksRunAtTheSameTimeAndOnceEach) {
  CommitPool pool(3);
  std::latch all(4);  // nobody goes on before there are four of them
  pool.run(4, [&](size_t) { all.arrive_and_wait(); });
  std::vector<std::thread> callers;
  std::atomic<uint64_t> sum = 0;
  for (int i = 0; i < 4; i++)
    callers.emplace_back([&] {
      for (int round = 0; round < 100; round++) pool.run(10, [&](size_t task) { sum += task + 1; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4u * 100 * 55);
}

class CommitMany : public testing::Test {
 protected:
  FakeObjectStore store_;
  FaultyObjectStore client_{store_};
  SystemClock clock_;
  std::unique_ptr<ClusterEngine> engine_ =
      std::move(*ClusterEngine::open(client_, clock_, {.beat_interval_us = 0}));
};

// The same as one after the other, whatever the batches.
TEST_F(CommitMany, ABatchIsAsIfMadeInItsOrder) {
  for (const auto& [at, id] : {std::pair("b", 2), std::pair("d", 3), std::pair("f", 4)})
    ASSERT_OK(split_range(store_, *find_range(store_, at), at, RangeId{static_cast<uint64_t>(id)}));
  Random random(test_seed(3));
  std::map<Bytes, Bytes> model;
  const auto key = [&] { return Bytes(1, static_cast<char>('a' + random.below(8))); };
  for (uint64_t round = test_rounds(200); round > 0; round--) {
    std::map<Bytes, std::optional<Bytes>> seen;  // the evidence before the batch
    for (char c = 'a'; c < 'i'; c++) {
      Value value;
      ASSERT_OK(engine_->get(Bytes(1, c), value));
      seen[Bytes(1, c)] = engine_->evidence(value);
    }
    std::vector<Commit> commits(1 + random.below(12));
    std::vector<bool> expected;
    std::set<Bytes> written;
    for (size_t i = 0; i < commits.size(); i++) {
      bool holds = true;
      if (random.one_in(2)) {
        const Bytes read = key();
        commits[i].expectations.push_back({read, std::nullopt, seen[read]});
        holds = !written.contains(read);
      }
      for (uint64_t n = 1 + random.below(2); n > 0; n--) {
        const Bytes changed = key();
        const Bytes value = fmt::format("{} {}", round, i);
        commits[i].writes.put(changed, value);
        if (!holds) continue;
        written.insert(changed);
        model[changed] = value;
      }
      expected.push_back(holds);
    }
    std::vector<const Commit*> pointers;
    for (const Commit& commit : commits) pointers.push_back(&commit);
    std::vector<Status> outcomes(commits.size());
    engine_->commit_many(pointers, outcomes);
    for (size_t i = 0; i < commits.size(); i++) {
      EXPECT_EQ(outcomes[i].has_value(), expected[i]) << i;
      EXPECT_TRUE(outcomes[i].has_value() || outcomes[i].error().code == Code::conflict);
    }
    for (char c = 'a'; c < 'i'; c++) {
      Value value;
      ASSERT_OK(engine_->get(Bytes(1, c), value));
      EXPECT_EQ(value.found() ? Bytes(value.bytes()) : "", model[Bytes(1, c)]);
    }
  }
}

TEST_F(CommitMany, CommitsThatHaveNothingToDoWithEachOtherAreUnderWayAtOnce) {
  constexpr ptrdiff_t commits_at_once = 4;
  std::latch all(commits_at_once);
  client_.before_each([&](const PassedPoint& passed) {
    if (passed.point == "commit" && passed.nth <= commits_at_once) all.arrive_and_wait();
  });
  std::vector<Commit> commits(commits_at_once);
  std::vector<const Commit*> pointers;
  for (Commit& commit : commits) {
    commit.writes.put(std::to_string(pointers.size()), "v");
    pointers.push_back(&commit);
  }
  std::vector<Status> outcomes(commits.size());
  engine_->commit_many(pointers, outcomes);
  for (const Status& outcome : outcomes) EXPECT_OK(outcome);
}

}  // namespace
}  // namespace trellis
