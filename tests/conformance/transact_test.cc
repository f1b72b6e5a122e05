// Transactions: what their function sees, what they write, what they refuse.
#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "codec/counter_value.h"
#include "codec/pretty_key.h"
#include "conformance/engine_fixture.h"
#include "engine/faulty_engine.h"

namespace trellis {
namespace {

// All records of one Redis key, which is one granule: scans of it need no more than its lock.
const Bytes granule = redis_meta("cart");
Bytes record(ByteView sub) { return redis_record("cart", sub); }

Scope cart() {
  Scope scope = Scope::in(keyspace);
  scope.exclusive(granule);
  return scope;
}

std::optional<Bytes> view_get(View& view, ByteView key) {
  Value value;
  EXPECT_OK(view.get(key, value));
  if (!value.found()) return std::nullopt;
  return Bytes(value.bytes());
}

// All pages, joined.
Result<Entries> view_scan(View& view, ScanRequest request) {
  Entries entries;
  Bytes bound;
  while (true) {
    const auto collect = [&](ByteView key, ByteView value) {
      entries.emplace_back(key, value);
      return Visit::go_on;
    };
    const size_t before = entries.size();
    TRY_ASSIGN(ScanPage page, view.scan(request, collect));
    EXPECT_EQ(page.entries, entries.size() - before);
    EXPECT_LE(page.entries, request.entries_max);
    if (!page.resume.has_value()) return entries;
    bound = *page.resume;
    (request.reverse ? request.end : request.begin) = bound;
  }
}

class ViewConformance : public TransactConformance {
 protected:
  void put_records(std::initializer_list<const char*> subs) {
    Commit wanted;
    for (const char* sub : subs) wanted.writes.put(record(sub), sub);
    ASSERT_OK(commit(engine(), wanted));
  }
  // The subs of all records of the granule, as the transaction sees them.
  static std::string subs(View& view, bool reverse = false, size_t entries_max = 100) {
    const Bytes begin = record("");
    const Bytes end = prefix_end(begin);
    const auto entries = view_scan(
        view, {.begin = begin, .end = end, .reverse = reverse, .entries_max = entries_max});
    EXPECT_OK(entries);
    std::string all;
    if (entries.has_value()) {
      for (const auto& [key, value] : *entries) all += key.substr(begin.size()) + " ";
    }
    return all;
  }
};

TEST_P(ViewConformance, WritesAreThereAfterwardsAndNotBefore) {
  ASSERT_OK(transactor().transact(cart(), [&](View& view) -> Status {
    EXPECT_EQ(view_get(view, record("a")), std::nullopt);
    view.put(record("a"), "1");
    view.put(record("b"), "2");
    EXPECT_EQ(get(engine(), record("a")), std::nullopt);
    return Status();
  }));
  EXPECT_EQ(get(engine(), record("a")), "1");
  EXPECT_EQ(get(engine(), record("b")), "2");
}

TEST_P(ViewConformance, AnErrorWritesNothingAndComesBack) {
  put_records({"a"});
  int runs = 0;
  const Status status = transactor().transact(cart(), [&](View& view) -> Status {
    runs++;
    view.put(record("a"), "changed");
    view.remove_range(record(""), record("z"));
    return Status(Error{Code::exists, "the function's own"});
  });
  EXPECT_CODE(status, Code::exists);
  EXPECT_EQ(status.error().message, "the function's own");
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(get(engine(), record("a")), "a");
}

TEST_P(ViewConformance, ReadsSeeOwnWrites) {
  put_records({"a", "b", "c", "d"});
  ASSERT_OK(transactor().transact(cart(), [&](View& view) -> Status {
    view.put(record("b"), "own");
    view.remove(record("c"));
    view.put(record("e"), "new");
    EXPECT_EQ(view_get(view, record("a")), "a");
    EXPECT_EQ(view_get(view, record("b")), "own");
    EXPECT_EQ(view_get(view, record("c")), std::nullopt);
    EXPECT_EQ(view_get(view, record("e")), "new");
    view.remove_range(record("a"), record("b"));
    EXPECT_EQ(view_get(view, record("a")), std::nullopt);
    view.put(record("aa"), "inside");
    EXPECT_EQ(view_get(view, record("aa")), "inside");
    view.remove(record("e"));
    EXPECT_EQ(view_get(view, record("e")), std::nullopt);
    view.put(record("e"), "");
    EXPECT_EQ(view_get(view, record("e")), "");
    return Status();
  }));
  const Bytes begin = record("");
  EXPECT_EQ(
      scan_all(engine(), {.begin = begin}),
      (Entries{
          {record("aa"), "inside"}, {record("b"), "own"}, {record("d"), "d"}, {record("e"), ""}}));
}

TEST_P(ViewConformance, MultiGetSeesOwnWrites) {
  put_records({"a", "b", "c"});
  ASSERT_OK(transactor().transact(cart(), [&](View& view) -> Status {
    view.put(record("b"), "own");
    view.remove_range(record("c"), record("cc"));
    view.put(record("d"), "new");
    const Bytes keys[] = {record("d"), record("a"), record("c"),
                          record("b"), record("a"), record("zz")};
    const char* const expected[] = {"new", "a", nullptr, "own", "a", nullptr};
    std::vector<ByteView> views(std::begin(keys), std::end(keys));
    std::vector<Value> values(views.size());
    TRY(view.multi_get(views, values));
    std::vector<Value> moved;  // Values move, whether they hold the engine's bytes or our own
    for (Value& value : values) moved.push_back(std::move(value));
    for (size_t i = 0; i < moved.size(); i++) {
      EXPECT_EQ(moved[i].found(), expected[i] != nullptr) << i;
      if (moved[i].found() && expected[i] != nullptr) {
        EXPECT_EQ(moved[i].bytes(), expected[i]) << i;
      }
    }
    return Status();
  }));
}

TEST_P(ViewConformance, ScansSeeOwnWrites) {
  put_records({"b", "d", "f", "h"});
  ASSERT_OK(transactor().transact(cart(), [&](View& view) -> Status {
    EXPECT_EQ(subs(view), "b d f h ");
    view.put(record("a"), "before all");
    view.put(record("e"), "between");
    view.put(record("i"), "behind all");
    view.remove(record("d"));
    for (const size_t entries_max : {1, 2, 3, 100}) {
      EXPECT_EQ(subs(view, false, entries_max), "a b e f h i ");
      EXPECT_EQ(subs(view, true, entries_max), "i h f e b a ");
    }
    view.remove_range(record("e"), record("h"));
    EXPECT_EQ(subs(view), "a b h i ");
    view.put(record("f"), "in the removed range");
    for (const size_t entries_max : {1, 2, 100}) {
      EXPECT_EQ(subs(view, false, entries_max), "a b f h i ");
      EXPECT_EQ(subs(view, true, entries_max), "i h f b a ");
    }
    view.remove_range(record(""), record("z"));
    EXPECT_EQ(subs(view), "");
    EXPECT_EQ(subs(view, true), "");
    return Status();
  }));
  EXPECT_EQ(scan_all(engine(), {}), Entries{});
}

// Random writes and reads of one transaction, against a map that does the same.
class OverlayConformance : public ViewConformance {
 protected:
  Bytes random_record(Random& random) {
    Bytes sub;
    for (uint64_t i = 1 + random.below(2); i > 0; i--) sub.push_back("abcdef"[random.below(6)]);
    return record(sub);
  }
  static Entries between(const std::map<Bytes, Bytes>& model, const Bytes& begin,
                         const Bytes& end) {
    return begin >= end ? Entries{} : Entries(model.lower_bound(begin), model.lower_bound(end));
  }
  Status step(Random& random, View& view, std::map<Bytes, Bytes>& model) {
    const Bytes key = random_record(random);
    const Bytes end = random_record(random);
    switch (random.below(6)) {
      case 0: {
        const Bytes value = random.bytes(random.below(5));
        view.put(key, value);
        model[key] = value;
        break;
      }
      case 1:
        view.remove(key);
        model.erase(key);
        break;
      case 2:
        if (key < end && random.one_in(3)) {
          view.remove_range(key, end);
          model.erase(model.lower_bound(key), model.lower_bound(end));
        }
        break;
      case 3: {
        const auto found = model.find(key);
        EXPECT_EQ(view_get(view, key),
                  found == model.end() ? std::nullopt : std::optional(found->second));
        break;
      }
      default: {
        ScanRequest request{.begin = key, .end = end, .reverse = random.one_in(2)};
        if (random.one_in(2)) request.entries_max = 1 + random.below(4);
        if (random.one_in(2)) request.bytes_max = random.below(100);
        TRY_ASSIGN(Entries seen, view_scan(view, request));
        Entries expected = between(model, key, end);
        if (request.reverse) std::reverse(expected.begin(), expected.end());
        EXPECT_EQ(seen, expected);
      }
    }
    return {};
  }
};

TEST_P(OverlayConformance, RandomWritesAndScans) {
  std::map<Bytes, Bytes> model;
  for (uint64_t seed = 1; seed <= test_rounds(1000) && !HasFailure(); seed++) {
    SCOPED_TRACE(seed);
    std::map<Bytes, Bytes> after;
    ASSERT_OK(run(seed, cart(), [&](View& view) -> Status {
      Random random(seed);  // the function may run again: the same every time
      after = model;
      for (uint64_t i = 5 + random.below(20); i > 0; i--) TRY(step(random, view, after));
      return Status();
    }));
    model = after;
    EXPECT_EQ(scan_all(engine(), {}), Entries(model.begin(), model.end()));
  }
}

// ---------------------------------------------------------------------------------------------
// Scopes

class ScopeConformance : public TransactConformance {
 protected:
  // The transaction is refused, by the name of what it touched, and writes nothing.
  void expect_refused(const Scope& scope, ByteView key, FunctionRef<Status(View&)> fn) {
    const Entries before = scan_all(engine(), {});
    const Status status = transactor().transact(scope, fn);
    EXPECT_CODE(status, Code::invalid);
    if (!status.has_value()) {
      EXPECT_NE(status.error().message.find("scope"), std::string::npos) << status.error().message;
      EXPECT_NE(status.error().message.find(pretty_key(key)), std::string::npos)
          << status.error().message;
    }
    EXPECT_EQ(scan_all(engine(), {}), before);
  }
};

TEST_P(ScopeConformance, ReadsOutsideAreRefused) {
  ASSERT_OK(commit(engine(), put(raw("b"), "v")));
  const Bytes a = raw("a");
  const Bytes b = raw("b");
  Scope scope = Scope::in(keyspace);
  scope.exclusive(a);
  expect_refused(scope, b, [&](View& view) -> Status {
    view.put(a, "v");
    Value value;
    return view.get(b, value);
  });
  expect_refused(scope, b, [&](View& view) -> Status {
    const ByteView keys[] = {a, b};
    Value values[2];
    return view.multi_get(keys, values);
  });
  expect_refused(scope, a, [&](View& view) -> Status {
    TRY(view.scan({.begin = a, .end = b}, [](ByteView, ByteView) { return Visit::go_on; }));
    return {};
  });
}

TEST_P(ScopeConformance, WritesOutsideAreRefused) {
  const Bytes a = raw("a");
  const Bytes b = raw("b");
  Scope scope = Scope::in(keyspace);
  scope.exclusive(a);
  expect_refused(scope, b, [&](View& view) -> Status {
    view.put(a, "v");
    view.put(b, "v");
    return Status();
  });
  expect_refused(scope, b, [&](View& view) -> Status {
    view.remove(b);
    return Status();
  });
  expect_refused(scope, a, [&](View& view) -> Status {
    view.remove_range(a, raw("c"));
    return Status();
  });
  const Bytes elsewhere("r\0\0\2a", 5);
  expect_refused(scope, elsewhere, [&](View& view) -> Status {
    view.put(elsewhere, "v");
    return Status();
  });
}

TEST_P(ScopeConformance, ASharedLockIsForReading) {
  const Bytes a = raw("a");
  ASSERT_OK(commit(engine(), put(a, "v")));
  Scope scope = Scope::in(keyspace);
  scope.shared(a);
  expect_refused(scope, a, [&](View& view) -> Status {
    view.put(a, "w");
    return Status();
  });
  ASSERT_OK(transactor().transact(scope, [&](View& view) -> Status {
    EXPECT_EQ(view_get(view, a), "v");
    return Status();
  }));
}

TEST_P(ScopeConformance, AllOfAKeyspaceAllowsEverythingInIt) {
  ASSERT_OK(transactor().transact(Scope::all_of(keyspace), [&](View& view) -> Status {
    view.put(raw("a"), "v");
    view.put(record("a"), "v");
    const Bytes begin = raw("");
    const Bytes end = prefix_end(begin);
    TRY_ASSIGN(Entries entries, view_scan(view, {.begin = begin, .end = end}));
    EXPECT_EQ(entries.size(), 1u);
    view.remove_range(begin, end);
    return Status();
  }));
  EXPECT_EQ(scan_all(engine(), {}), (Entries{{record("a"), "v"}}));
  const Bytes elsewhere("r\0\0\2a", 5);
  expect_refused(Scope::all_of(keyspace), elsewhere, [&](View& view) -> Status {
    view.put(elsewhere, "v");
    return Status();
  });
}

TEST_P(ScopeConformance, CountersNeedNoLock) {
  constexpr int threads_count = 4;
  constexpr int adds = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; t++) {
    threads.emplace_back([&, t] {
      Scope scope = Scope::in(keyspace);
      scope.exclusive(raw(std::to_string(t)));
      for (int i = 0; i < adds; i++) {
        EXPECT_OK(run(static_cast<size_t>(t), scope, [&](View& view) -> Status {
          view.put(raw(std::to_string(t)), std::to_string(i));
          view.add(counter("writes"), 1);
          view.add(counter("writes"), 1);
          return Status();
        }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(get(engine(), counter("writes")), encode_counter_value(2 * threads_count * adds));
}

// Among the writes of one transaction an add has its place like any other.
TEST_P(ViewConformance, AddsInOrderWithTheOtherWrites) {
  Commit before;
  for (const char* name : {"a", "b", "c", "d", "e"}) before.writes.add(counter(name), 100);
  ASSERT_OK(commit(engine(), before));
  ASSERT_OK(transactor().transact(Scope::all_of(keyspace), [&](View& view) -> Status {
    view.add(counter("a"), 5);
    view.put(counter("a"), encode_counter_value(10));
    view.put(counter("b"), encode_counter_value(10));
    view.add(counter("b"), 5);
    view.add(counter("c"), 5);
    view.remove(counter("c"));
    view.remove(counter("d"));
    view.add(counter("d"), 5);
    view.add(counter("e"), 5);
    view.remove_range(counter("e"), counter("f"));
    return {};
  }));
  EXPECT_EQ(get(engine(), counter("a")), encode_counter_value(10));
  EXPECT_EQ(get(engine(), counter("b")), encode_counter_value(15));
  EXPECT_EQ(get(engine(), counter("c")), std::nullopt);
  EXPECT_EQ(get(engine(), counter("d")), encode_counter_value(5));
  EXPECT_EQ(get(engine(), counter("e")), std::nullopt);
}

// ---------------------------------------------------------------------------------------------
// Answers

class AnswerConformance : public TransactConformance {
 protected:
  // Transactions on faults of this test's own, on top of the engine. Time does not pass.
  Status transact_with(FaultyEngine& faulty, FunctionRef<Status(View&)> fn,
                       Durability durability = Durability::everysec) {
    Transactor transactor(faulty, fake_clock_, {.way = GetParam().way, .check_scope = true});
    return transactor.transact(cart(), fn, durability);
  }
  FakeClock fake_clock_{0};
};

TEST_P(AnswerConformance, TooLargeIsRefused) {
  const Bytes value(value_bytes_max, 'v');
  const Status status = transactor().transact(cart(), [&](View& view) -> Status {
    for (const char* sub : {"a", "b", "c"}) view.put(record(sub), value);
    return Status();
  });
  EXPECT_CODE(status, Code::too_large);
  EXPECT_EQ(scan_all(engine(), {}), Entries{});
}

TEST_P(AnswerConformance, AMaybeIsAllOrNothingAndRunsOnce) {
  FaultyEngine faulty(engine(), {.seed = 3, .maybe_one_in = 1});
  int applied = 0;
  constexpr int rounds = 40;
  for (int i = 0; i < rounds; i++) {
    const std::string name = std::to_string(i);
    int runs = 0;
    const Status status = transact_with(faulty, [&](View& view) -> Status {
      runs++;
      view.put(record("first " + name), "v");
      view.put(record("second " + name), "v");
      return Status();
    });
    EXPECT_CODE(status, Code::maybe);
    EXPECT_EQ(runs, 1);
    const bool first = get(engine(), record("first " + name)).has_value();
    EXPECT_EQ(first, get(engine(), record("second " + name)).has_value());
    applied += first ? 1 : 0;
  }
  EXPECT_GT(applied, 0);
  EXPECT_LT(applied, rounds);
}

// Where nothing is to be written nothing can be half known: a reader asks again.
TEST_P(AnswerConformance, WithoutWritesThereIsNoMaybe) {
  FaultyEngine faulty(engine(), {.maybe_one_in = 1});
  for (const bool fails : {false, true}) {
    SCOPED_TRACE(fails);
    const Status status = transact_with(faulty, [&](View& view) -> Status {
      Value value;
      TRY(view.get(record("a"), value));
      if (fails) return Error{Code::exists, "the function's own"};
      return {};
    });
    if (latched()) {  // there is nothing to validate either
      EXPECT_EQ(status.has_value(), !fails);
    } else {
      EXPECT_CODE(status, Code::unavailable);
    }
  }
}

TEST_P(AnswerConformance, AFailureIsNoCommit) {
  FaultyEngine faulty(engine(), {.fail_commit_one_in = 1});
  EXPECT_CODE(transact_with(faulty,
                            [&](View& view) -> Status {
                              view.put(record("a"), "v");
                              return Status();
                            }),
              Code::unavailable);
  EXPECT_EQ(faulty.counts().commits, 1u);
  faulty.set_options({.fail_read_one_in = 1});
  EXPECT_CODE(transact_with(faulty,
                            [&](View& view) -> Status {
                              view.put(record("a"), "v");
                              Value value;
                              return view.get(record("b"), value);
                            }),
              Code::unavailable);
  EXPECT_EQ(get(engine(), record("a")), std::nullopt);
}

TEST_P(AnswerConformance, DurableMeansWaitedFor) {
  FaultyEngine faulty(engine(), {.fail_durable_one_in = 1});
  const auto write = [&](View& view) -> Status {
    view.put(record("a"), "v");
    return Status();
  };
  EXPECT_OK(transact_with(faulty, write));
  EXPECT_EQ(faulty.counts().durables, 0u);
  EXPECT_CODE(transact_with(faulty, write, Durability::always), Code::maybe);
  EXPECT_EQ(faulty.counts().durables, 1u);
}

TEST_P(AnswerConformance, ConflictsAreRetriedAndThenGivenUp) {
  FaultyEngine faulty(engine(), {.conflict_one_in = 1});
  unsigned runs = 0;
  const Status status = transact_with(faulty, [&](View& view) -> Status {
    runs++;
    Value value;
    TRY(view.get(record("a"), value));
    view.put(record("a"), "v");
    return Status();
  });
  if (latched()) {  // nothing is expected, so nothing conflicts
    EXPECT_OK(status);
    EXPECT_EQ(runs, 1u);
    return;
  }
  EXPECT_CODE(status, Code::conflict);
  EXPECT_EQ(runs, transact_attempts_max);
  EXPECT_EQ(get(engine(), record("a")), std::nullopt);
  faulty.set_options({.seed = 9, .conflict_one_in = 3});
  runs = 0;
  for (int i = 0; i < 20; i++) {
    EXPECT_OK(transact_with(faulty, [&](View& view) -> Status {
      runs++;
      const int64_t number = number_of(view_get(view, record("n")));
      view.put(record("n"), std::to_string(number + 1));
      return Status();
    }));
  }
  EXPECT_GT(runs, 20u);
  EXPECT_EQ(get(engine(), record("n")), "20");
}

ON_ALL_WAYS(ViewConformance);
ON_ALL_WAYS(OverlayConformance);
ON_ALL_WAYS(ScopeConformance);
ON_ALL_WAYS(AnswerConformance);

}  // namespace
}  // namespace trellis
