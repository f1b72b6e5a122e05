// Order, gets and scans.
#include <algorithm>
#include <atomic>
#include <thread>

#include "conformance/engine_fixture.h"

namespace trellis {
namespace {

class ReadConformance : public EngineConformance {
 protected:
  void put_all(const std::vector<Bytes>& keys) {
    Commit wanted;
    for (const Bytes& key : keys) wanted.writes.put(key, "value of " + to_hex(key));
    ASSERT_OK(commit(engine(), wanted));
  }
};

std::vector<Bytes> keys_of(const Entries& entries) {
  std::vector<Bytes> keys;
  for (const auto& [key, value] : entries) keys.push_back(key);
  return keys;
}

TEST_P(ReadConformance, BytesSortAsUnsigned) {
  std::vector<Bytes> keys;
  for (int first = first_key[0]; first < 256; first++) {
    const Bytes one(1, static_cast<char>(first));
    keys.push_back(one);  // a key that is a prefix of the next ones
    keys.push_back(one + Bytes(1, '\0'));
    keys.push_back(one + "\x7f");
    keys.push_back(one + "\x80");
    keys.push_back(one + "\xfe\xff");
  }
  std::vector<Bytes> shuffled = keys;
  Random random(1);
  for (size_t i = shuffled.size(); i > 1; i--)
    std::swap(shuffled[i - 1], shuffled[random.below(i)]);
  put_all(shuffled);
  EXPECT_EQ(keys_of(scan_all(engine(), {})), keys);
  std::reverse(keys.begin(), keys.end());
  EXPECT_EQ(keys_of(scan_all(engine(), {.reverse = true})), keys);
}

TEST_P(ReadConformance, EmptyValuesAreValues) {
  ASSERT_OK(commit(engine(), put(raw("a"), "")));
  EXPECT_EQ(get(engine(), raw("a")), "");
  EXPECT_EQ(get(engine(), raw("b")), std::nullopt);
  EXPECT_EQ(scan_all(engine(), {}), (Entries{{raw("a"), ""}}));
}

TEST_P(ReadConformance, TheLongestKeyAndValue) {
  const Bytes key = raw(Bytes(key_bytes_max - raw("").size(), '\xff'));
  Random random(1);
  const Bytes value = random.bytes(value_bytes_max);
  ASSERT_OK(commit(engine(), put(key, value)));
  EXPECT_TRUE(get(engine(), key) == value);
  Entries entries;
  scan_page(engine(), {.begin = raw("")}, entries);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_TRUE(entries[0].second == value);
  // One byte more is another key, which was never there.
  EXPECT_EQ(get(engine(), successor(key)), std::nullopt);
}

TEST_P(ReadConformance, MultiGetInAnyOrderWithDuplicates) {
  put_all({raw("a"), raw("c"), raw("e")});
  const std::vector<Bytes> keys = {raw("e"), raw("b"), raw("a"), raw("e"), raw("zz"),
                                   raw("c"), raw("a"), raw("b"), raw("")};
  const std::vector<ByteView> views(keys.begin(), keys.end());
  std::vector<Value> values(keys.size());
  for (int round = 0; round < 3; round++) {  // the same Values again: each read replaces the last
    ASSERT_OK(engine().multi_get(views, values));
    for (size_t i = 0; i < keys.size(); i++) {
      const bool present = keys[i] == raw("a") || keys[i] == raw("c") || keys[i] == raw("e");
      ASSERT_EQ(values[i].found(), present) << quote(keys[i]);
      if (present) {
        EXPECT_EQ(values[i].bytes(), "value of " + to_hex(keys[i]));
      }
    }
    std::rotate(values.begin(), values.begin() + 1, values.end());  // moved Values stay good
  }
  ASSERT_OK(engine().multi_get({}, {}));
}

// As the elements of a list are: an engine may walk from one to the next.
TEST_P(ReadConformance, MultiGetOfNumberedKeys) {
  Random random(1);
  for (uint64_t round = 0; round < 20; round++) {
    std::vector<Bytes> keys;
    std::vector<Bytes> stored;
    uint64_t first = 250 * round + random.below(20);            // across the borders of bytes
    if (round % 4 == 0) first = UINT64_MAX - random.below(30);  // and across the largest
    const uint64_t count = 5 + random.below(20);
    for (uint64_t i = 0; i < count; i++) {
      Bytes number;
      append_be64(number, first + i);
      keys.push_back(raw(number));
      if (random.below(4) > 0) stored.push_back(keys.back());
      for (uint64_t between = random.one_in(8) ? random.below(40) : 0; between > 0; between--)
        stored.push_back(keys.back() + std::to_string(between));
    }
    put_all(stored);
    const std::vector<ByteView> views(keys.begin(), keys.end());
    std::vector<Value> values(keys.size());
    ASSERT_OK(engine().multi_get(views, values));
    for (size_t i = 0; i < keys.size(); i++) {
      const std::optional<Bytes> expected = get(engine(), keys[i]);
      ASSERT_EQ(values[i].found(), expected.has_value()) << quote(keys[i]);
      if (!expected) continue;
      ASSERT_EQ(values[i].bytes(), *expected);
    }
  }
}

TEST_P(ReadConformance, AValueOutlivesItsReplacement) {
  Random random(1);
  const Bytes big = random.bytes(100'000);
  ASSERT_OK(commit(engine(), put(raw("small"), "old")));
  ASSERT_OK(commit(engine(), put(raw("big"), big)));
  Value small;
  Value large;
  ASSERT_OK(engine().get(raw("small"), small));
  ASSERT_OK(engine().get(raw("big"), large));
  Commit both;
  both.writes.put(raw("small"), "new");
  both.writes.remove(raw("big"));
  ASSERT_OK(commit(engine(), both));
  const Value moved = std::move(small);
  EXPECT_EQ(moved.bytes(), "old");
  EXPECT_TRUE(large.bytes() == big);
}

TEST_P(ReadConformance, ScanBounds) {
  put_all({raw("a"), raw("b"), raw("c")});
  const Bytes a = raw("a");
  const Bytes b = raw("b");
  const Bytes c = raw("c");
  const Bytes d = raw("d");
  struct Case {
    Bytes begin;
    Bytes end;
    std::vector<Bytes> keys;
  };
  const Case cases[] = {
      {"", "", {a, b, c}},
      {a, c, {a, b}},
      {a, "", {a, b, c}},
      {b, b, {}},
      {successor(a), c, {b}},
      {a, successor(a), {a}},
      {d, "", {}},
      {"", a, {}},
      {"", successor(a), {a}},
      {c, d, {c}},
      {"\xff", "", {}},
      {raw("aa"), raw("az"), {}},
      {successor(c), "", {}},
  };
  for (const Case& wanted : cases) {
    SCOPED_TRACE(quote(wanted.begin) + " to " + quote(wanted.end));
    std::vector<Bytes> keys = wanted.keys;
    EXPECT_EQ(keys_of(scan_all(engine(), {.begin = wanted.begin, .end = wanted.end})), keys);
    std::reverse(keys.begin(), keys.end());
    EXPECT_EQ(
        keys_of(scan_all(engine(), {.begin = wanted.begin, .end = wanted.end, .reverse = true})),
        keys);
  }
}

TEST_P(ReadConformance, PagesByEntriesResumeWhereTheyEnded) {
  std::vector<Bytes> keys;
  for (int i = 0; i < 25; i++) keys.push_back(raw(Bytes(1, static_cast<char>('a' + i))));
  put_all(keys);
  std::vector<Bytes> backwards(keys.rbegin(), keys.rend());
  for (const size_t entries_max : {1, 2, 5, 24, 25, 26}) {
    SCOPED_TRACE(entries_max);
    EXPECT_EQ(keys_of(scan_all(engine(), {.begin = raw(""), .entries_max = entries_max})), keys);
    EXPECT_EQ(keys_of(scan_all(engine(), {.reverse = true, .entries_max = entries_max})),
              backwards);
    Entries page;
    scan_page(engine(), {.begin = keys[3], .entries_max = entries_max}, page);
    EXPECT_EQ(page.size(), std::min<size_t>(entries_max, 22));
  }
}

TEST_P(ReadConformance, PagesByBytesVisitAtLeastOneEntry) {
  const size_t key_bytes = raw("a").size();
  std::vector<Bytes> keys;
  for (const char name : {'a', 'b', 'c', 'd'}) {
    keys.push_back(raw(Bytes(1, name)));
    ASSERT_OK(commit(engine(), put(keys.back(), Bytes(100 - key_bytes, 'v'))));
  }
  struct Case {
    size_t bytes_max;
    size_t entries;
  };
  for (const auto [bytes_max, entries] : {Case{0, 1}, Case{1, 1}, Case{100, 1}, Case{199, 1},
                                          Case{200, 2}, Case{399, 3}, Case{400, 4}}) {
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(bytes_max);
      Entries page;
      const ScanPage answer = scan_page(
          engine(), {.begin = first_key, .reverse = reverse, .bytes_max = bytes_max}, page);
      EXPECT_EQ(page.size(), entries);
      if (entries < 4) {
        EXPECT_TRUE(answer.resume.has_value());
      }
      EXPECT_EQ(scan_all(engine(), {.reverse = reverse, .bytes_max = bytes_max}).size(), 4u);
    }
  }
}

TEST_P(ReadConformance, AVisitorThatStopsIsResumedBehindWhatItSaw) {
  std::vector<Bytes> keys;
  for (const char name : {'a', 'b', 'c', 'd'}) keys.push_back(raw(Bytes(1, name)));
  put_all(keys);
  for (const bool reverse : {false, true}) {
    std::vector<Bytes> expected = keys;
    if (reverse) std::reverse(expected.begin(), expected.end());
    for (size_t stop_after = 1; stop_after <= keys.size(); stop_after++) {
      SCOPED_TRACE(stop_after);
      std::vector<Bytes> seen;
      const auto page =
          engine().scan({.begin = first_key, .reverse = reverse}, [&](ByteView key, ByteView) {
            seen.emplace_back(key);
            return seen.size() == stop_after ? Visit::stop : Visit::go_on;
          });
      ASSERT_OK(page);
      EXPECT_EQ(page->entries, stop_after);
      EXPECT_EQ(seen, std::vector<Bytes>(expected.begin(), expected.begin() + stop_after));
      if (stop_after == keys.size() && !page->resume.has_value()) continue;
      ASSERT_TRUE(page->resume.has_value());
      ScanRequest rest{.begin = first_key, .reverse = reverse};
      (reverse ? rest.end : rest.begin) = *page->resume;
      EXPECT_EQ(keys_of(scan_all(engine(), rest)),
                std::vector<Bytes>(expected.begin() + stop_after, expected.end()));
    }
  }
}

// Three keys always hold the same number. A reader that ever sees two numbers saw half a commit.
// The writer goes on until the reader has seen enough different ones, so both surely overlap.
class OneInstant : public ReadConformance {
 protected:
  void check(FunctionRef<std::vector<Bytes>()> read_three) {
    constexpr size_t states_wanted = 200;
    std::atomic<bool> enough = false;
    std::thread writer([&] {
      for (uint64_t number = 1; !enough; number++) {
        Commit wanted;
        for (const char* name : {"a", "b", "c"}) {
          wanted.writes.put(raw(name), std::to_string(number));
        }
        const Status status = commit(other(), wanted);
        EXPECT_OK(status);
        if (!status.has_value()) return;
      }
    });
    size_t states = 0;
    Bytes last;
    while (states < states_wanted && !HasFailure()) {
      const std::vector<Bytes> three = read_three();
      EXPECT_EQ(three.size(), 3u);
      for (const Bytes& value : three) EXPECT_EQ(value, three[0]);
      if (!three.empty() && three[0] != last) {
        last = three[0];
        states++;
      }
    }
    enough = true;
    writer.join();
  }
  void SetUp() override {
    ReadConformance::SetUp();
    Commit first;
    for (const char* name : {"a", "b", "c"}) first.writes.put(raw(name), "0");
    ASSERT_OK(commit(engine(), first));
  }
};

TEST_P(OneInstant, OfAMultiGet) {
  const Bytes keys[] = {raw("c"), raw("a"), raw("b")};
  const ByteView views[] = {keys[0], keys[1], keys[2]};
  check([&] {
    Value values[3];
    EXPECT_OK(engine().multi_get(views, values));
    std::vector<Bytes> three;
    for (const Value& value : values) three.emplace_back(value.bytes());
    return three;
  });
}

TEST_P(OneInstant, OfAPage) {
  const Bytes end = raw("d");
  bool reverse = false;
  check([&] {
    reverse = !reverse;
    Entries entries;
    scan_page(engine(), {.begin = raw("a"), .end = end, .reverse = reverse}, entries);
    std::vector<Bytes> three;
    for (auto& [key, value] : entries) three.push_back(value);
    return three;
  });
}

ON_ALL_ENGINES(ReadConformance);
ON_ALL_ENGINES(OneInstant);

}  // namespace
}  // namespace trellis
