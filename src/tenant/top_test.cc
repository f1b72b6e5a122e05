#include "tenant/top.h"

#include <algorithm>

#include "base/random.h"
#include "support/tenant_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace top_test {

class TopTest : public TenantFixture {
 protected:
  Status put_in(const std::string& name, ByteView key, size_t bytes) {
    TRY_ASSIGN(const auto tenant, keyspaces_->tenant(name));
    return put(*tenant, root, key, Bytes(bytes, 'x'));
  }
  std::vector<std::string> names(TopBy by, size_t limit) {
    std::vector<std::string> out;
    const auto entries = top(*keyspaces_, by, limit);
    EXPECT_OK(entries);
    if (entries) {
      for (const TopEntry& entry : *entries) out.push_back(entry.name);
    }
    return out;
  }
};

using Names = std::vector<std::string>;

TEST_P(TopTest, MostFirst) {
  for (const char* name : {"a", "b", "c"}) ASSERT_OK(make(name));
  ASSERT_OK(put_in("a", "1", 10));
  ASSERT_OK(put_in("b", "1", 1'000));
  ASSERT_OK(put_in("a", "2", 10));
  EXPECT_EQ(names(TopBy::bytes, 10), (Names{"b", "a", "DEFAULT", "c"}));
  EXPECT_EQ(names(TopBy::keys, 10), (Names{"a", "b", "DEFAULT", "c"}));
  EXPECT_EQ(names(TopBy::keys, 1), Names{"a"});
  EXPECT_EQ(names(TopBy::bytes, 0), Names());
  const auto entries = top(*keyspaces_, TopBy::bytes, 1);
  ASSERT_OK(entries);
  EXPECT_EQ((*entries)[0].figures, *stored_figures(memory_, (*entries)[0].id));
}

TEST_P(TopTest, BusiestOfThoseInMemory) {
  for (const char* name : {"idle", "busy", "busier"}) ASSERT_OK(make(name));
  for (int i = 0; i < 5; ++i) ASSERT_OK(put_in("busy", "k", 1));
  for (int i = 0; i < 9; ++i) ASSERT_OK(put_in("busier", "k", 1));
  clock_.advance_ms(1'000);
  const Names busiest = names(TopBy::operations, 2);
  EXPECT_EQ(busiest, (Names{"busier", "busy"}));
  const auto entries = top(*keyspaces_, TopBy::operations, 1);
  ASSERT_OK(entries);
  EXPECT_EQ((*entries)[0].load.writes, 9U);
  EXPECT_EQ((*entries)[0].figures.keys, 1);
}

TEST_P(TopTest, TheBestOfMany) {
  Random random(test_seed(23));
  std::vector<std::pair<int64_t, uint32_t>> all{{0, 0}};
  const uint64_t count = 30 + test_rounds(2'000);
  for (uint64_t i = 1; i <= count; ++i) {
    const auto keyspace = make("k" + std::to_string(i));
    ASSERT_OK(keyspace);
    if (random.one_in(2)) ASSERT_OK(put_in(keyspace->name, "k", random.below(50)));
    all.emplace_back(-stored_figures(memory_, keyspace->id)->bytes, keyspace->id.value);
  }
  std::ranges::sort(all);
  const auto entries = top(*keyspaces_, TopBy::bytes, 25);
  ASSERT_OK(entries);
  ASSERT_EQ(entries->size(), 25U);
  for (size_t i = 0; i < entries->size(); ++i) EXPECT_EQ((*entries)[i].id.value, all[i].second);
}

INSTANTIATE_TEST_SUITE_P(Ways, TopTest, testing::Values(Way::latched, Way::expecting), way_name);

}  // namespace top_test
}  // namespace trellis
