#include "map/scan_pages.h"

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

// Says of every scan that it passed over much.
class SlowEngine final : public MemoryEngine {
 public:
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override {
    begins_.push_back(Bytes(request.begin));
    ends_.push_back(Bytes(request.end));
    auto page = MemoryEngine::scan(request, visit);
    if (page) page->passed_over = 1000;
    return page;
  }
  std::vector<Bytes> begins_;
  std::vector<Bytes> ends_;
};

class ScanPages : public testing::Test {
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

  SlowEngine engine_;
  SystemClock clock_;
  Transactor transactor_{engine_, clock_, {.record_cache_bytes = 1 << 20}};
};

TEST_F(ScanPages, ACollectionIsWhatSharesALife) {
  const Bytes key = member_key(1, 0, "field");
  EXPECT_EQ(redis_collection_of(key), member_key(1, 0, ""));
  EXPECT_EQ(redis_collection_of(member_key(1, 0, "")), member_key(1, 0, ""));
  for (const Bytes& other :
       {Bytes(), member_key(1, 0, "").substr(0, 12), Bytes("x\0\0\7ds\xff", 7),
        encode(RedisMetadataKey{ks, {"0", "a key that is long enough to be one"}})})
    EXPECT_EQ(redis_collection_of(other), "") << quote(other);
}

// What was written behind the cache's back is not seen: so it was the cache that answered.
TEST_F(ScanPages, TheThirdScanIsAnsweredFromMemory) {
  ASSERT_TRUE(transact([](View& view) -> Status {
    view.put(member_key(0, 0, "a"), "1");
    return {};
  }));
  const Bytes begin = member_key(0, 0, "");
  const Bytes end = prefix_end(begin);
  const auto entries = [&] {
    size_t count = 0;
    EXPECT_TRUE(transact([&](View& view) -> Status {
      count = scan(view, {.begin = begin, .end = end}).entries.size();
      return {};
    }));
    return count;
  };
  EXPECT_EQ(entries(), 1u);
  EXPECT_EQ(entries(), 1u);
  Commit behind;
  behind.writes.put(member_key(0, 0, "b"), "2");
  ASSERT_TRUE(commit(engine_, behind));
  EXPECT_EQ(entries(), 1u);
  ASSERT_TRUE(transact([](View& view) -> Status {
    view.put(member_key(0, 0, "a"), "3");
    return {};
  }));
  EXPECT_EQ(entries(), 2u);
}

TEST_F(ScanPages, PopsBeginWhereTheLastOneEnded) {
  const auto change = [&](std::optional<Bytes> put, std::optional<Bytes> removed) {
    ASSERT_TRUE(transact([&](View& view) -> Status {
      if (put) view.put(*put, "v");
      if (removed) view.remove(*removed);
      return {};
    }));
  };
  const auto peek = [&](bool reverse) {
    Seen seen;
    EXPECT_TRUE(transact([&](View& view) -> Status {
      const Bytes begin = member_key(0, 0, "");
      const Bytes end = prefix_end(begin);
      seen = scan(view, {.begin = begin, .end = end, .reverse = reverse}, 1);
      return {};
    }));
    return seen.entries.empty() ? Bytes() : seen.entries[0].first;
  };
  const auto m = [](std::string_view name) { return member_key(0, 0, name); };
  for (const char* name : {"a", "b", "c", "x", "y", "z"}) change(m(name), std::nullopt);
  EXPECT_EQ(peek(false), m("a"));
  change(std::nullopt, m("a"));
  EXPECT_EQ(peek(false), m("b"));
  EXPECT_EQ(engine_.begins_.back(), m("a"));
  change(m("aa"), m("b"));  // something new at the front
  EXPECT_EQ(peek(false), m("aa"));
  EXPECT_EQ(peek(true), m("z"));
  change(std::nullopt, m("z"));
  EXPECT_EQ(peek(true), m("y"));
  EXPECT_EQ(engine_.ends_.back(), successor(m("z")));
  change(m("zz"), std::nullopt);
  EXPECT_EQ(peek(true), m("zz"));
  EXPECT_EQ(peek(false), m("aa"));
}

// Scans, many of them alike, between writes of all kinds: always what the engine has.
TEST_F(ScanPages, AreWhatIsStored) {
  Random random(test_seed(7));
  const auto random_key = [&] {
    return member_key(random.below(keys_of_test), random.below(versions),
                      std::to_string(random.below(6)));
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
