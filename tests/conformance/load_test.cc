// Loads: more than a commit, all of it or nothing, on the engines that have them.
#include "codec/counter_value.h"
#include "conformance/engine_fixture.h"

namespace trellis {
namespace {

class LoadConformance : public EngineConformance {
 protected:
  static constexpr size_t value_bytes = 1'000;

  static Bytes name(size_t i) { return raw("load" + std::to_string(10'000'000 + i)); }
  static Bytes value(size_t i) {
    Bytes bytes = std::to_string(i * 2'654'435'761);
    bytes.resize(value_bytes, static_cast<char>(i));
    return bytes;
  }
  // Entries [begin, end), some at a time.
  static void load_some(Load& load, size_t begin, size_t end) {
    constexpr size_t at_once = 3'000;
    for (; begin < end; begin += at_once) {
      WriteSet puts;
      for (size_t i = begin; i < std::min(end, begin + at_once); i++) puts.put(name(i), value(i));
      load.put(std::move(puts));
    }
  }
  void load(size_t begin, size_t end, Commit with) {
    const std::unique_ptr<Load> load = engine().begin_load();
    load_some(*load, begin, end);
    ASSERT_OK(load->commit(std::move(with)));
  }
  bool has(ByteView name, uint64_t number) {
    return get(engine(), raw(name)) == std::to_string(number);
  }
  Status put_one(ByteView name, uint64_t number) {
    return commit(engine(), trellis::put(raw(name), std::to_string(number)));
  }
  // Whether there are just those of [begin, end), up to the last that any test has.
  void expect_loaded(size_t begin, size_t end) {
    const Bytes first = name(begin);
    const Bytes last = raw("loae");
    size_t next = begin;
    for (const auto& [key, stored] : scan_all(engine(), {.begin = first, .end = last})) {
      ASSERT_EQ(key, name(next));
      ASSERT_EQ(stored, value(next));
      next++;
    }
    EXPECT_EQ(next, end);
    if (begin == end) return;
    EXPECT_EQ(get(engine(), name(begin)), value(begin));
    EXPECT_EQ(get(engine(), name(end - 1)), value(end - 1));
    EXPECT_EQ(get(engine(), name(end)), std::nullopt);
  }
};

// Sizes that are worth tables of their own, and one that is not.
TEST_P(LoadConformance, AllOfItWithTheRest) {
  if (engine().begin_load() == nullptr) GTEST_SKIP() << "commits are all there is";
  size_t begin = 0;
  for (const size_t count : {size_t{25'000}, size_t{10}, size_t{1}, size_t{80'000}}) {
    SCOPED_TRACE(count);
    Commit with;
    with.writes.put(raw("after"), std::to_string(count));
    with.writes.add(counter("n"), static_cast<int64_t>(count));
    load(begin, begin + count, std::move(with));
    expect_loaded(0, begin + count);
    EXPECT_EQ(get(engine(), raw("after")), std::to_string(count));
    begin += count;
    ASSERT_OK(engine().wait_durable(engine().last_ticket()));
    under_test_->reopen();
    expect_loaded(0, begin);
    EXPECT_EQ(get(engine(), counter("n")), encode_counter_value(static_cast<int64_t>(begin)));
  }
}

TEST_P(LoadConformance, NothingOfWhatIsNotCommitted) {
  std::unique_ptr<Load> load = engine().begin_load();
  if (load == nullptr) GTEST_SKIP() << "commits are all there is";
  load_some(*load, 0, 30'000);
  expect_loaded(0, 0);
  load.reset();
  expect_loaded(0, 0);
  under_test_->reopen();
  expect_loaded(0, 0);
  load = engine().begin_load();
  Commit with;
  with.writes.put(raw("after"), "nothing");
  ASSERT_OK(load->commit(std::move(with)));
  EXPECT_EQ(get(engine(), raw("after")), "nothing");
}

// What is loaded is changed and removed as all else, and there may be a range delete over it.
TEST_P(LoadConformance, BetweenOtherCommits) {
  if (engine().begin_load() == nullptr) GTEST_SKIP() << "commits are all there is";
  for (int round = 0; round < 3; round++) {
    SCOPED_TRACE(round);
    Commit removal;
    removal.writes.remove_range(raw("load"), raw("loae"));
    ASSERT_OK(commit(engine(), removal));
    load(0, 20'000, {});
    expect_loaded(0, 20'000);
    Commit change;
    change.writes.put(name(7), "changed");
    change.writes.remove(name(8));
    ASSERT_OK(commit(engine(), change));
    EXPECT_EQ(get(engine(), name(7)), "changed");
    EXPECT_EQ(get(engine(), name(8)), std::nullopt);
    ASSERT_OK(engine().wait_durable(engine().last_ticket()));
    Random random(test_seed(3));
    under_test_->crash(random);
    EXPECT_EQ(get(engine(), name(7)), "changed");
    EXPECT_EQ(get(engine(), name(8)), std::nullopt);
    EXPECT_EQ(get(engine(), name(9)), value(9));
  }
}

// Commits before and after it, of which a crash leaves a prefix.
TEST_P(LoadConformance, ACrashLeavesAllOrNothing) {
  if (engine().begin_load() == nullptr) GTEST_SKIP() << "commits are all there is";
  Random random(test_seed(5));
  size_t begin = 0;
  int whole = 0;
  for (uint64_t round = 0; round < test_rounds(20); round++) {
    SCOPED_TRACE(round);
    const size_t end = begin + (random.one_in(2) ? 18'000 : 500);
    ASSERT_OK(put_one("before", round));
    load(begin, end, trellis::put(raw("with"), std::to_string(round)));
    ASSERT_OK(put_one("after", round));
    const bool is_waited_for = random.one_in(3);
    if (is_waited_for) {
      ASSERT_OK(engine().wait_durable(engine().last_ticket()));
    }
    under_test_->crash(random);
    const bool is_there = has("with", round);
    expect_loaded(begin, is_there ? end : begin);
    EXPECT_TRUE(is_there || !has("after", round));
    EXPECT_TRUE(!is_there || has("before", round));
    EXPECT_TRUE(is_there || !is_waited_for);
    whole += is_there ? 1 : 0;
    if (is_there) begin = end;
  }
  EXPECT_TRUE(test_scale() == "quick" || whole > 0);
  expect_loaded(0, begin);
}

ON_ALL_ENGINES(LoadConformance);

}  // namespace
}  // namespace trellis
