// Scans of Redis collections that lie in several tables and memtables, of which filters tell some
// to be passed over, against a simple model.
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "codec/redis_collection.h"
#include "codec/redis_keys.h"
#include "store_fixture.h"
#include "support/test_keyspace.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using Model = std::map<Bytes, Bytes>;

class CollectionScan : public StoreFixture {
 protected:
  static Bytes member(uint64_t collection, uint64_t number) {
    const Bytes name = "key" + std::to_string(collection % 10);
    return encode(RedisSubKey{ks, {{"0", name, 250 + collection / 10}, std::to_string(number)}});
  }

  void change(Engine& engine) {
    Commit commit_one;
    for (uint64_t i = 0; i < 20; i++) {
      const Bytes key = member(random_.below(40), random_.below(30));
      if (random_.one_in(3)) {
        commit_one.writes.remove(key);
        model_.erase(key);
      } else {
        model_[key] = random_.bytes(random_.below(2000));
        commit_one.writes.put(key, model_[key]);
      }
    }
    ASSERT_TRUE(commit(engine, commit_one).has_value());
    if (!random_.one_in(8)) return;
    Commit removal;
    const Bytes begin = member(random_.below(40), random_.below(30));
    const Bytes end = prefix_end(redis_collection_of(begin));
    removal.writes.remove_range(begin, end);
    model_.erase(model_.lower_bound(begin), model_.lower_bound(end));
    ASSERT_TRUE(commit(engine, removal).has_value());
  }

  // Of one collection, or from the middle of it to the middle of another.
  void check(Engine& engine) {
    const Bytes first = member(random_.below(41), random_.below(30));
    const Bytes collection(redis_collection_of(first));
    const Bytes begin = random_.one_in(2) ? first : collection;
    const Bytes end =
        random_.one_in(4) ? member(random_.below(41), random_.below(30)) : prefix_end(collection);
    if (begin >= end) return;
    const bool reverse = random_.one_in(4);
    std::vector<std::pair<Bytes, Bytes>> seen;
    const auto page = engine.scan({.begin = begin, .end = end, .reverse = reverse},
                                  [&](ByteView key, ByteView value) {
                                    seen.emplace_back(key, value);
                                    return Visit::go_on;
                                  });
    ASSERT_TRUE(page.has_value());
    if (page->resume) return;  // a page's worth was right up to there in other rounds
    std::vector<std::pair<Bytes, Bytes>> expected(model_.lower_bound(begin),
                                                  model_.lower_bound(end));
    if (reverse) std::reverse(expected.begin(), expected.end());
    ASSERT_EQ(seen, expected);
  }

  Random random_{test_seed(11)};
  Model model_;
};

TEST_F(CollectionScan, IsWhatIsStored) {
  auto engine = open();
  for (uint64_t round = test_rounds(3'000); round > 0; round--) {
    change(*engine);
    for (int i = 0; i < 5; i++) check(*engine);
    if (HasFatalFailure()) return;
    if (random_.one_in(300)) {
      ASSERT_TRUE(engine->compact().has_value());
    }
    if (random_.one_in(100)) {  // what was in memory is in a table then
      engine.reset();
      engine = open();
    }
  }
}

}  // namespace
}  // namespace trellis
