#include "map/scan_leaves.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "codec/redis_collection.h"
#include "codec/redis_keys.h"
#include "engine/memory_engine.h"
#include "map/transact.h"
#include "support/test_keyspace.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr uint64_t keys_of_test = 3;
constexpr uint64_t versions = 2;

Bytes name_of(uint64_t key) { return "k" + Bytes(key, '\xff'); }

Bytes member_key(uint64_t key, uint64_t version, ByteView member) {
  // The first ends in 0xff: the end of its collection is no simple successor.
  const uint64_t stored_version = version == 0 ? 0x1ff : 0x200;
  return encode(RedisSubKey{ks, {{"0", name_of(key), stored_version}, member}});
}

struct Seen {
  std::vector<std::pair<Bytes, Bytes>> entries;
  std::optional<Bytes> resume;
  bool operator==(const Seen&) const = default;
};

class CountingEngine final : public MemoryEngine {
 public:
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override {
    scans_++;
    return MemoryEngine::scan(request, visit);
  }
  int scans_ = 0;
};

class ScanLeavesTest : public testing::Test {
 protected:
  // What one scan gives, of a view or an engine, with a visitor that stops behind so many.
  template <class Scanned>
  static Seen scan(Scanned& scanned, const ScanRequest& request, size_t stop_after = 1000) {
    Seen seen;
    const auto page = scanned.scan(request, [&](ByteView key, ByteView value) {
      seen.entries.emplace_back(key, value);
      return seen.entries.size() >= stop_after ? Visit::stop : Visit::go_on;
    });
    EXPECT_TRUE(page.has_value());
    if (page) seen.resume = page->resume;
    EXPECT_EQ(page->entries, seen.entries.size());
    return seen;
  }

  Status transact(FunctionRef<Status(View&)> fn) {
    return transactor_.transact(Scope::all_of(ks), fn, Durability::off);
  }

  CountingEngine engine_;
  SystemClock clock_;
  Transactor transactor_{engine_, clock_, {.record_cache_bytes = 1 << 20}};
};

TEST_F(ScanLeavesTest, ACollectionIsWhatSharesALife) {
  const Bytes key = member_key(1, 0, "field");
  EXPECT_EQ(redis_collection_of(key), member_key(1, 0, ""));
  EXPECT_EQ(redis_collection_of(member_key(1, 0, "")), member_key(1, 0, ""));
  for (const Bytes& other :
       {Bytes(), member_key(1, 0, "").substr(0, 12), Bytes("x\0\0\7ds\xff", 7),
        encode(RedisMetadataKey{ks, {"0", "a key that is long enough to be one"}})})
    EXPECT_EQ(redis_collection_of(other), "") << quote(other);
}

TEST_F(ScanLeavesTest, WhatWasScannedIsNotReadAgain) {
  const Bytes begin = member_key(0, 0, "");
  const Bytes end = prefix_end(begin);
  const auto m = [](int i) { return member_key(0, 0, std::to_string(10'000 + i)); };
  const auto change = [&](std::optional<Bytes> put, std::optional<Bytes> removed) {
    ASSERT_TRUE(transact([&](View& view) -> Status {
      if (put) view.put(*put, "v");
      if (removed) view.remove(*removed);
      return {};
    }));
  };
  const auto seen = [&](const ScanRequest& request, size_t stop_after = 1000) {
    std::vector<Bytes> keys;
    EXPECT_TRUE(transact([&](View& view) -> Status {
      keys.clear();
      for (const auto& [key, value] : scan(view, request, stop_after).entries) keys.push_back(key);
      return {};
    }));
    return keys;
  };
  const auto scans = [&] { return std::exchange(engine_.scans_, 0); };
  for (int i = 0; i < 300; i++) change(m(i), std::nullopt);
  scans();
  EXPECT_EQ(seen({.begin = m(100), .end = end, .entries_max = 2}), (std::vector{m(100), m(101)}));
  EXPECT_EQ(scans(), 1);
  EXPECT_EQ(seen({.begin = m(120), .end = end, .entries_max = 2}), (std::vector{m(120), m(121)}));
  EXPECT_EQ(seen({.begin = m(120), .end = m(130), .reverse = true, .entries_max = 2}),
            (std::vector{m(129), m(128)}));
  EXPECT_EQ(scans(), 0);
  change(m(555), m(121));  // one of them outside
  EXPECT_EQ(seen({.begin = m(120), .end = end, .entries_max = 2}), (std::vector{m(120), m(122)}));
  EXPECT_EQ(scans(), 0);
  // Pops from both ends.
  for (int i = 0; i < 100; i++) {
    EXPECT_EQ(seen({.begin = begin, .end = end}, 1), std::vector{m(i)});
    change(std::nullopt, m(i));
    const Bytes last = i == 0 ? m(555) : m(300 - i);
    EXPECT_EQ(seen({.begin = begin, .end = end, .reverse = true}, 1), std::vector{last});
    change(std::nullopt, last);
  }
  EXPECT_LE(scans(), 6);
  EXPECT_EQ(seen({.begin = begin, .end = end}).size(), 300u - 199 - 1);
  // Several in each transaction, over the ends of leaves.
  scans();
  for (int i = 0; i < 5'000; i++) change(m(i), std::nullopt);
  for (int i = 0; i < 5'000; i += 40) {
    for (const bool reverse : {false, true})
      ASSERT_TRUE(transact([&](View& view) -> Status {
        for (int j = 0; j < 20; j++) {
          const Seen popped = scan(view, {.begin = begin, .end = end, .reverse = reverse}, 1);
          const int expected = i / 2 + j;
          EXPECT_EQ(popped.entries.at(0).first, m(reverse ? 4'999 - expected : expected));
          view.remove(popped.entries[0].first);
        }
        return {};
      }));
  }
  EXPECT_LE(scans(), 200);
  EXPECT_GT(transactor_.scan_leaves()->figures().hits, 190u);
}

TEST_F(ScanLeavesTest, NewCollectionsAreKeptAsTheyAreWritten) {
  const Bytes begin = member_key(0, 0, "");
  const Bytes end = prefix_end(begin);
  ASSERT_TRUE(transact([&](View& view) -> Status {
    view.put(member_key(0, 0, "a"), "1");
    view.put(member_key(0, 0, "b"), "2");
    view.remove(member_key(0, 0, "c"));
    view.begins(begin);
    return {};
  }));
  ASSERT_TRUE(transact([&](View& view) -> Status {
    view.put(member_key(0, 0, "c"), "3");
    return {};
  }));
  ASSERT_TRUE(transact([&](View& view) -> Status {
    const Seen seen = scan(view, {.begin = begin, .end = end});
    EXPECT_EQ(seen.entries.size(), 3u);
    EXPECT_EQ(seen.resume, std::nullopt);
    return {};
  }));
  EXPECT_EQ(engine_.scans_, 0);
}

TEST_F(ScanLeavesTest, AreBounded) {
  constexpr size_t value_bytes = 200;
  for (uint64_t i = 0; i < 20'000; i++) {
    const Bytes key = encode(RedisSubKey{ks, {{"0", std::to_string(i), 1}, "member"}});
    ASSERT_TRUE(transact([&](View& view) -> Status {
      view.put(key, Bytes(value_bytes, 'v'));
      return {};
    }));
    ASSERT_TRUE(transact([&](View& view) -> Status {
      const Bytes collection(redis_collection_of(key));
      const Bytes end = prefix_end(collection);
      EXPECT_EQ(scan(view, {.begin = collection, .end = end}).entries.size(), 1u);
      return {};
    }));
  }
  const auto figures = transactor_.scan_leaves()->figures();
  EXPECT_LE(figures.bytes, (1u << 18) + 1024);
  EXPECT_GT(figures.bytes, 1u << 16);
}

// Scans, many of them alike, between writes of all kinds: always what the engine has.
TEST_F(ScanLeavesTest, AreWhatIsStored) {
  Random random(test_seed(7));
  const auto random_key = [&] {
    return member_key(random.below(keys_of_test), random.below(versions),
                      std::to_string(random.one_in(2) ? random.below(6) : random.below(400)));
  };
  const auto write = [&](View& view) -> Status {
    for (uint64_t i = random.below(3); i > 0; i--) {
      if (random.one_in(3))
        view.remove(random_key());
      else
        view.put(random_key(), Bytes(random.below(4) == 0 ? 12'000 : 3, 'v'));
    }
    if (random.one_in(20)) {
      const Bytes begin = random_key();
      view.remove_range(begin, prefix_end(redis_collection_of(begin)));
    }
    if (random.one_in(10)) return Error{Code::invalid, "and nothing is written"};
    return {};
  };
  for (uint64_t round = test_rounds(20'000); round > 0; round--) {
    if (random.one_in(4)) (void)transact(write);
    const Bytes first = random.one_in(4) ? random_key() : member_key(random.below(2), 0, "");
    const Bytes last = random.one_in(4) ? random_key() : prefix_end(redis_collection_of(first));
    const ScanRequest request{.begin = first,
                              .end = last,
                              .reverse = random.one_in(4),
                              .entries_max = random.one_in(4) ? 3u : 100u};
    const size_t stop_after = random.one_in(4) ? 2 : 1000;
    Seen seen;
    ASSERT_TRUE(transact([&](View& view) -> Status {
      seen = scan(view, request, stop_after);
      return {};
    }));
    // A page may end earlier than asked for, where an earlier visitor had enough: then go on.
    Bytes resume;
    while (seen.resume && seen.entries.size() < std::min(stop_after, request.entries_max)) {
      ScanRequest rest = request;
      resume = *seen.resume;
      (request.reverse ? rest.end : rest.begin) = resume;
      const Seen more = scan(static_cast<Engine&>(engine_), rest, stop_after - seen.entries.size());
      seen.entries.insert(seen.entries.end(), more.entries.begin(), more.entries.end());
      seen.resume = more.entries.empty() ? std::nullopt : more.resume;
    }
    const Seen expected = scan(static_cast<Engine&>(engine_), request, stop_after);
    if (seen.entries.size() > expected.entries.size()) seen.entries.resize(expected.entries.size());
    ASSERT_EQ(seen.entries, expected.entries);
  }
}

}  // namespace
}  // namespace trellis
