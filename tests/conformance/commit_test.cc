// Commits: what they write, what they refuse, what they expect.
#include <limits>
#include <thread>

#include "codec/counter_value.h"
#include "conformance/engine_fixture.h"

namespace trellis {
namespace {

class CommitConformance : public EngineConformance {
 protected:
  void put_all(std::initializer_list<const char*> names) {
    Commit wanted;
    for (const char* name : names) wanted.writes.put(raw(name), name);
    ASSERT_OK(commit(engine(), wanted));
  }
  // The names of all raw keys.
  std::string names() {
    std::string all;
    const Bytes prefix = raw("");
    const Bytes end = prefix_end(prefix);
    for (const auto& [key, value] : scan_all(engine(), {.begin = prefix, .end = end})) {
      all += key.substr(prefix.size()) + " ";
    }
    return all;
  }
  int64_t counted(ByteView name) {
    const std::optional<Bytes> value = get(engine(), counter(name));
    EXPECT_TRUE(value.has_value()) << name;
    return value.has_value() ? decode_counter_value(*value).value_or(-1) : -1;
  }
};

TEST_P(CommitConformance, LastWriteWins) {
  Commit wanted;
  wanted.writes.put(raw("a"), "1");
  wanted.writes.put(raw("a"), "2");
  wanted.writes.put(raw("b"), "1");
  wanted.writes.remove(raw("b"));
  wanted.writes.remove(raw("c"));
  wanted.writes.put(raw("c"), "3");
  ASSERT_OK(commit(engine(), wanted));
  EXPECT_EQ(scan_all(engine(), {}), (Entries{{raw("a"), "2"}, {raw("c"), "3"}}));
}

TEST_P(CommitConformance, RemovingWhatIsNotThere) {
  Commit wanted;
  wanted.writes.remove(raw("never"));
  wanted.writes.remove_range(raw("x"), raw("y"));
  ASSERT_OK(commit(engine(), wanted));
  EXPECT_EQ(scan_all(engine(), {}), Entries{});
}

TEST_P(CommitConformance, AnEmptyCommitIsDone) {
  ASSERT_OK(commit(engine(), Commit{}));
  engine().commit_many({}, {});
}

TEST_P(CommitConformance, ReclaimingChangesNothing) {
  put_all({"a", "b", "c", "d"});
  Commit middle;
  middle.writes.remove_range(raw("b"), raw("d"));
  ASSERT_OK(commit(engine(), middle));
  ASSERT_OK(engine().reclaim({{raw("b"), raw("d")}}, nullptr));
  EXPECT_EQ(names(), "a d ");
  ASSERT_OK(engine().reclaim({{raw(""), {}}}, nullptr));
  EXPECT_EQ(names(), "a d ");
}

TEST_P(CommitConformance, RangeDeletes) {
  put_all({"a", "b", "c", "d", "e"});
  Commit wanted;
  wanted.writes.remove_range(raw("b"), raw("d"));
  ASSERT_OK(commit(engine(), wanted));
  EXPECT_EQ(names(), "a d e ");
  wanted.writes.clear();
  wanted.writes.remove_range(raw("d"), "");  // to the end of the map
  ASSERT_OK(commit(engine(), wanted));
  EXPECT_EQ(names(), "a ");
  put_all({"b", "e"});  // a later commit is not under the range
  EXPECT_EQ(names(), "a b e ");
  wanted.writes.clear();
  wanted.writes.remove_range(first_key, "");
  ASSERT_OK(commit(engine(), wanted));
  EXPECT_EQ(names(), "");
}

TEST_P(CommitConformance, RangeDeletesInOrderWithTheOtherWrites) {
  put_all({"a", "b", "c"});
  Commit wanted;
  wanted.writes.put(raw("bb"), "before");
  wanted.writes.remove_range(raw("b"), raw("c"));
  wanted.writes.put(raw("b"), "after");
  wanted.writes.put(raw("bz"), "after");
  ASSERT_OK(commit(engine(), wanted));
  EXPECT_EQ(names(), "a b bz c ");
  EXPECT_EQ(get(engine(), raw("b")), "after");
}

TEST_P(CommitConformance, ARangeDeleteToTheEndAndPutsBehindIt) {
  put_all({"a", "b"});
  const Bytes high = "\xff\xfe\xff";
  Commit wanted;
  wanted.writes.put(high, "v");
  ASSERT_OK(commit(engine(), wanted));
  wanted.writes.clear();
  wanted.writes.remove_range(raw("b"), "");
  wanted.writes.put(raw("c"), "after");
  ASSERT_OK(commit(engine(), wanted));
  EXPECT_EQ(names(), "a c ");
  EXPECT_EQ(get(engine(), high), std::nullopt);
}

TEST_P(CommitConformance, RefusesByName) {
  put_all({"a"});
  struct Case {
    const char* word;
    Code code;
    Commit commit;
  };
  std::vector<Case> cases(8);
  cases[0] = {"key_bytes_max", Code::too_large, put(Bytes(key_bytes_max + 1, 'r'), "v")};
  cases[1] = {"value_bytes_max", Code::too_large, put(raw("k"), Bytes(value_bytes_max + 1, 'v'))};
  cases[2] = {"commit_bytes_max", Code::too_large, {}};
  for (int i = 0; i < 3; i++) cases[2].commit.writes.put(raw("k"), Bytes(value_bytes_max, 'v'));
  cases[3] = {"empty key", Code::invalid, put("", "v")};
  cases[4] = {"remove_range", Code::invalid, {}};
  cases[4].commit.writes.remove_range(raw("b"), raw("a"));
  cases[5] = {"counter", Code::invalid, {}};
  cases[5].commit.writes.add(raw("k"), 1);
  cases[6] = {"counter", Code::invalid, put(counter("k"), "not a counter")};
  cases[7] = {"expectation", Code::invalid, put(raw("k"), "v")};
  cases[7].commit.expectations.push_back({raw("b"), raw("a"), Bytes()});
  for (Case& refused : cases) {
    SCOPED_TRACE(refused.word);
    refused.commit.writes.put(raw("other"), "v");  // nothing of a refused commit is applied
    const Status status = commit(engine(), refused.commit);
    EXPECT_CODE(status, refused.code);
    if (!status.has_value()) {
      EXPECT_NE(status.error().message.find(refused.word), std::string::npos)
          << status.error().message;
    }
    EXPECT_EQ(names(), "a ");
  }
}

TEST_P(CommitConformance, ManyAtOnceAnswerEachForItself) {
  put_all({"a"});
  const Commit done = put(raw("done"), "v");
  Commit conflict = put(raw("conflict"), "v");
  conflict.expectations.push_back({raw("a"), std::nullopt, std::nullopt});
  const Commit large = put(raw("large"), Bytes(value_bytes_max + 1, 'v'));
  Commit expecting = put(raw("expecting"), "v");
  expecting.expectations.push_back(expect_value(engine(), raw("a")));
  const Commit* const commits[] = {&conflict, &done, &large, &expecting};
  Status outcomes[4];
  const CommitTicket ticket = engine().commit_many(commits, outcomes);
  EXPECT_CODE(outcomes[0], Code::conflict);
  EXPECT_OK(outcomes[1]);
  EXPECT_CODE(outcomes[2], Code::too_large);
  EXPECT_OK(outcomes[3]);
  EXPECT_EQ(names(), "a done expecting ");
  EXPECT_OK(engine().wait_durable(ticket));
}

TEST_P(CommitConformance, ManyAtOnceInTheirOrder) {
  const Commit first = put(raw("a"), "1");
  Commit second;
  second.writes.remove_range(raw("a"), raw("b"));
  const Commit third = put(raw("a"), "3");
  const Commit fourth = put(raw("b"), "4");
  Commit fifth;
  fifth.writes.remove(raw("b"));
  const Commit* const commits[] = {&first, &second, &third, &fourth, &fifth};
  Status outcomes[5];
  engine().commit_many(commits, outcomes);
  for (const Status& outcome : outcomes) EXPECT_OK(outcome);
  EXPECT_EQ(scan_all(engine(), {}), (Entries{{raw("a"), "3"}}));
}

// A commit sees those before it in the same call, whether or not it expects something itself.
TEST_P(CommitConformance, ManyAtOnceExpectTheWritesBeforeThem) {
  put_all({"a"});
  const Expectation seen = expect_value(engine(), raw("a"));
  const Commit change = put(raw("a"), "changed");
  Commit late = put(raw("b"), "late");
  late.expectations.push_back(seen);
  Commit absent = put(raw("c"), "first");
  absent.expectations.push_back({raw("c"), std::nullopt, std::nullopt});
  const Commit absent_again = absent;
  const Commit* const commits[] = {&change, &late, &absent, &absent_again};
  Status outcomes[4];
  engine().commit_many(commits, outcomes);
  EXPECT_OK(outcomes[0]);
  EXPECT_CODE(outcomes[1], Code::conflict);
  EXPECT_OK(outcomes[2]);
  EXPECT_CODE(outcomes[3], Code::conflict);
  EXPECT_EQ(names(), "a c ");
}

TEST_P(CommitConformance, TicketsRise) {
  uint64_t last = engine().last_ticket().value;
  for (int i = 0; i < 5; i++) {
    const Commit wanted = put(raw("a"), std::to_string(i));
    const Commit* const commits[] = {&wanted};
    Status outcome;
    const CommitTicket ticket = engine().commit_many(commits, {&outcome, 1});
    ASSERT_OK(outcome);
    EXPECT_GT(ticket.value, last);
    EXPECT_EQ(engine().last_ticket().value, ticket.value);
    last = ticket.value;
  }
  EXPECT_OK(engine().wait_durable(engine().last_ticket()));
  EXPECT_OK(engine().wait_durable(CommitTicket{}));
}

// ---------------------------------------------------------------------------------------------
// Expectations

TEST_P(CommitConformance, ExpectsAValue) {
  put_all({"a"});
  Commit wanted = put(raw("b"), "v");
  wanted.expectations.push_back(expect_value(engine(), raw("a")));
  EXPECT_OK(commit(engine(), wanted));
  ASSERT_OK(commit(other(), put(raw("a"), "changed")));
  EXPECT_CODE(commit(engine(), wanted), Code::conflict);
  Commit remove;
  remove.writes.remove(raw("a"));
  ASSERT_OK(commit(other(), remove));
  EXPECT_CODE(commit(engine(), wanted), Code::conflict);
}

TEST_P(CommitConformance, ExpectsAbsence) {
  Commit wanted = put(raw("a"), "v");
  wanted.expectations.push_back(expect_value(engine(), raw("a")));
  EXPECT_FALSE(wanted.expectations[0].seen.has_value());
  EXPECT_OK(commit(engine(), wanted));
  EXPECT_CODE(commit(engine(), wanted), Code::conflict);
}

TEST_P(CommitConformance, AnEmptyValueIsNotAbsence) {
  Commit absent = put(raw("b"), "v");
  absent.expectations.push_back(expect_value(engine(), raw("a")));
  ASSERT_OK(commit(other(), put(raw("a"), "")));
  EXPECT_CODE(commit(engine(), absent), Code::conflict);
  Commit empty = put(raw("b"), "v");
  empty.expectations.push_back(expect_value(engine(), raw("a")));
  EXPECT_OK(commit(engine(), empty));
  Commit remove;
  remove.writes.remove(raw("a"));
  ASSERT_OK(commit(other(), remove));
  EXPECT_CODE(commit(engine(), empty), Code::conflict);
}

TEST_P(CommitConformance, OneBrokenExpectationIsEnough) {
  put_all({"a", "b", "c"});
  Commit wanted = put(raw("d"), "v");
  for (const char* name : {"a", "b", "c"}) {
    wanted.expectations.push_back(expect_value(engine(), raw(name)));
  }
  ASSERT_OK(commit(other(), put(raw("c"), "changed")));
  EXPECT_CODE(commit(engine(), wanted), Code::conflict);
  EXPECT_EQ(names(), "a b c ");
}

// What a page read, as an expectation of a commit that writes elsewhere.
class IntervalConformance : public CommitConformance {
 protected:
  Expectation expect_page(ScanRequest request) {
    request.want_evidence = true;
    Entries entries;
    ScanPage page = scan_page(engine(), request, entries);
    Expectation expectation{Bytes(request.begin), Bytes(request.end), std::move(page.evidence)};
    if (page.resume.has_value()) {
      (request.reverse ? expectation.begin : *expectation.end) = *page.resume;
    }
    return expectation;
  }
  Status commit_expecting(const Expectation& expectation) {
    Commit wanted = put(raw("z elsewhere"), std::to_string(++writes_));
    wanted.expectations.push_back(expectation);
    return commit(engine(), wanted);
  }
  void change(FunctionRef<void(WriteSet&)> fill) {
    Commit wanted;
    fill(wanted.writes);
    ASSERT_OK(commit(other(), wanted));
  }

 private:
  int writes_ = 0;
};

TEST_P(IntervalConformance, HoldsUntilSomethingInItChanges) {
  const Bytes b = raw("b");
  const Bytes d = raw("d");
  for (const bool reverse : {false, true}) {
    SCOPED_TRACE(reverse);
    const auto read = [&] { return expect_page({.begin = b, .end = d, .reverse = reverse}); };
    put_all({"a", "b", "c", "d"});
    Expectation seen = read();
    EXPECT_OK(commit_expecting(seen));
    change([](WriteSet& writes) { writes.put(raw("a"), "outside"); });
    change([](WriteSet& writes) { writes.put(raw("d"), "the end is outside"); });
    EXPECT_OK(commit_expecting(seen));

    change([](WriteSet& writes) { writes.put(raw("c"), "changed"); });
    EXPECT_CODE(commit_expecting(seen), Code::conflict);
    seen = read();
    change([](WriteSet& writes) { writes.put(raw("bb"), "phantom"); });
    EXPECT_CODE(commit_expecting(seen), Code::conflict);
    seen = read();
    EXPECT_OK(commit_expecting(seen));
    change([](WriteSet& writes) { writes.remove(raw("bb")); });
    EXPECT_CODE(commit_expecting(seen), Code::conflict);
    seen = read();
    change([](WriteSet& writes) { writes.remove_range(raw("b"), raw("bz")); });
    EXPECT_CODE(commit_expecting(seen), Code::conflict);
    seen = read();
    change([](WriteSet& writes) { writes.put(raw("b"), "back at the very begin"); });
    EXPECT_CODE(commit_expecting(seen), Code::conflict);
  }
}

TEST_P(IntervalConformance, EmptyIntervals) {
  const Bytes b = raw("b");
  const Bytes c = raw("c");
  const Expectation nothing = expect_page({.begin = b, .end = c});
  EXPECT_OK(commit_expecting(nothing));
  change([](WriteSet& writes) { writes.put(raw("bb"), "phantom"); });
  EXPECT_CODE(commit_expecting(nothing), Code::conflict);
  EXPECT_OK(commit_expecting(expect_page({.begin = b, .end = b})));
}

TEST_P(IntervalConformance, ToTheEndOfTheMap) {
  put_all({"a"});
  const Bytes high = "\xff";
  Expectation seen = expect_page({.begin = high});
  EXPECT_OK(commit_expecting(seen));
  change([](WriteSet& writes) { writes.put("\xff\xfe", "phantom"); });
  EXPECT_CODE(commit_expecting(seen), Code::conflict);
  seen = expect_page({.begin = high, .reverse = true});
  EXPECT_OK(commit_expecting(seen));
  change([](WriteSet& writes) { writes.remove_range("\xff", ""); });
  EXPECT_CODE(commit_expecting(seen), Code::conflict);
}

TEST_P(IntervalConformance, APageEndedByALimitCoversWhatWasReadOnly) {
  const Bytes begin = raw("a");
  const Bytes end = raw("g");
  put_all({"b", "c", "d", "e", "f"});
  const Expectation first = expect_page({.begin = begin, .end = end, .entries_max = 2});
  change([](WriteSet& writes) { writes.put(raw("e"), "not read"); });
  EXPECT_OK(commit_expecting(first));
  change([](WriteSet& writes) { writes.put(raw("bb"), "in between"); });
  EXPECT_CODE(commit_expecting(first), Code::conflict);

  const Expectation last =
      expect_page({.begin = begin, .end = end, .reverse = true, .entries_max = 2});
  change([](WriteSet& writes) { writes.put(raw("bb"), "not read"); });
  EXPECT_OK(commit_expecting(last));
  change([](WriteSet& writes) { writes.put(raw("ff"), "behind the first one visited"); });
  EXPECT_CODE(commit_expecting(last), Code::conflict);
}

TEST_P(IntervalConformance, APageEndedByItsVisitorCoversWhatItSaw) {
  put_all({"b", "c", "d"});
  const Bytes begin = raw("a");
  const auto page = engine().scan(
      {.begin = begin, .want_evidence = true},
      [](ByteView key, ByteView) { return key == raw("c") ? Visit::stop : Visit::go_on; });
  ASSERT_OK(page);
  ASSERT_TRUE(page->resume.has_value());
  const Expectation seen{begin, *page->resume, page->evidence};
  change([](WriteSet& writes) { writes.put(raw("d"), "not seen"); });
  EXPECT_OK(commit_expecting(seen));
  change([](WriteSet& writes) { writes.put(raw("c"), "seen"); });
  EXPECT_CODE(commit_expecting(seen), Code::conflict);
}

// ---------------------------------------------------------------------------------------------
// Counters

TEST_P(CommitConformance, Adds) {
  Commit wanted;
  wanted.writes.add(counter("n"), 5);
  wanted.writes.add(counter("n"), -7);
  wanted.writes.add(counter("zero"), 0);
  ASSERT_OK(commit(engine(), wanted));
  EXPECT_EQ(counted("n"), -2);
  EXPECT_EQ(counted("zero"), 0);
  ASSERT_OK(commit(engine(), put(counter("n"), encode_counter_value(100))));
  wanted.writes.clear();
  wanted.writes.add(counter("n"), 1);
  ASSERT_OK(commit(engine(), wanted));
  EXPECT_EQ(counted("n"), 101);
  wanted.writes.clear();
  wanted.writes.remove(counter("n"));
  wanted.writes.add(counter("n"), 3);
  wanted.writes.remove_range(counter("z"), counter("zz"));
  ASSERT_OK(commit(engine(), wanted));
  EXPECT_EQ(counted("n"), 3);
  wanted.writes.clear();
  wanted.writes.remove_range(counter("n"), counter("nn"));
  wanted.writes.add(counter("n"), 4);
  ASSERT_OK(commit(engine(), wanted));
  EXPECT_EQ(counted("n"), 4);
}

// In whatever groups an engine sums them up, the limits of the number do not show in the end.
TEST_P(CommitConformance, AddsWrap) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  for (const int64_t delta : {most, int64_t{1}, int64_t{-1}, int64_t{-10}}) {
    Commit wanted;
    wanted.writes.add(counter("n"), delta);
    ASSERT_OK(commit(engine(), wanted));
  }
  EXPECT_EQ(counted("n"), most - 10);
}

TEST_P(CommitConformance, ConcurrentAddsSumUp) {
  constexpr int threads_count = 4;
  constexpr int adds = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; t++) {
    threads.emplace_back([&, t] {
      Engine& mine = t % 2 == 0 ? engine() : other();
      for (int i = 0; i < adds; i++) {
        Commit wanted;
        wanted.writes.add(counter("n"), t + 1);
        EXPECT_OK(commit(mine, wanted));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counted("n"), adds * (1 + 2 + 3 + 4));
}

ON_ALL_ENGINES(CommitConformance);
ON_ALL_ENGINES(IntervalConformance);

}  // namespace
}  // namespace trellis
