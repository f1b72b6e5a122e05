// Hashes of which many fields are over at once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "redis_client.h"
#include "redis_fixture.h"

namespace trellis {
namespace {

class RedisFieldExpiry : public RedisFixture {
 protected:
  // Fields with names of so many bytes that expire in a second, and `others` that do not.
  void fill(size_t fields, size_t name_bytes, size_t others) {
    constexpr size_t together = 500;
    for (size_t i = 0; i < fields; i += together) {
      std::vector<Bytes> names;
      for (size_t j = i; j < std::min(i + together, fields); j++) {
        names.push_back(fmt::format("field{:06}", j));
        names.back().resize(name_bytes, 'x');
      }
      std::vector<ByteView> set{"HSET", "h"};
      const std::string count = std::to_string(names.size());
      std::vector<ByteView> expire{"HPEXPIRE", "h", "1000", "FIELDS", count};
      for (const Bytes& name : names) {
        set.insert(set.end(), {name, "v"});
        expire.push_back(name);
      }
      EXPECT_EQ(say(set), fmt::format(":{}\r\n", names.size()));
      EXPECT_EQ(say(expire)[0], '*');
    }
    for (size_t i = 0; i < others; i++)
      EXPECT_EQ(say(fmt::format("HSET h other{} v", i)), ":1\r\n");
  }
};
INSTANTIATE_TEST_SUITE_P(BothWays, RedisFieldExpiry, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(RedisFieldExpiry, ManyAreCollectedInFewSlices) {
  fill(20'000, 11, 1);
  clock_.advance_ms(2'000);
  EXPECT_EQ(number("HLEN h"), 1);
  int steps = 0;
  for (; step(); steps++) {
    EXPECT_EQ(number("HLEN h"), 1);
    EXPECT_EQ(number("EXISTS h"), 1);
    expect_exact();
    ASSERT_LT(steps, 20);
  }
  EXPECT_GT(steps, 3);
  EXPECT_EQ(records(), 2u);
}

TEST_P(RedisFieldExpiry, AHashOfWhichAllAreOverIsGone) {
  fill(9'000, 11, 0);
  say("EXPIRE h 1000");
  clock_.advance_ms(2'000);
  EXPECT_EQ(number("EXISTS h"), 0);
  EXPECT_EQ(number("HEXISTS h field000001"), 0);
  EXPECT_EQ(number("DEL h"), 0);
  EXPECT_EQ(number("HSET h new v"), 1);
  EXPECT_EQ(number("TTL h"), -1) << "it began anew";
  EXPECT_EQ(number("HLEN h"), 1);
  EXPECT_EQ(number("DEL h"), 1);
  fill(9'000, 11, 0);
  for (int i = 0; i < 3; i++) {
    clock_.advance_ms(61'000);
    while (step()) expect_exact();
  }
  EXPECT_EQ(number("DBSIZE"), 0);
  EXPECT_EQ(records(), 0u);
}

// More than a transaction may read where it is validated: who names fields, and the collector, do
// not need to.
TEST_P(RedisFieldExpiry, LongNamesAreInNobodysWay) {
  const Bytes first = "field000000" + Bytes(8'000 - 11, 'x');
  fill(9'000, 8'000, 1);
  clock_.advance_ms(2'000);
  EXPECT_EQ(say("HGET h other0"), "$1\r\nv\r\n");
  EXPECT_EQ(say(std::vector<ByteView>{"HGET", "h", first}), "$-1\r\n");
  EXPECT_EQ(say(std::vector<ByteView>{"HSET", "h", first, "again"}), ":1\r\n");
  EXPECT_EQ(number("HDEL h other0"), 1);
  EXPECT_EQ(number("EXISTS h"), 1);
  for (int steps = 0; step(); steps++) ASSERT_LT(steps, 1'000);
  expect_exact();
  EXPECT_EQ(number("HLEN h"), 1);
  EXPECT_EQ(say(std::vector<ByteView>{"HGET", "h", first}), "$5\r\nagain\r\n");
  EXPECT_EQ(say(std::vector<ByteView>{"HTTL", "h", "FIELDS", "1", first}), "*1\r\n:-1\r\n");
}

TEST_P(RedisFieldExpiry, PicksOfTheFewThatAreLeftAreEven) {
  fill(5'000, 11, 10);
  clock_.advance_ms(2'000);
  std::map<Bytes, int> seen;
  for (int i = 0; i < 100; i++)
    for (const Bytes& field : texts_of(say("HRANDFIELD h"))) seen[field]++;
  for (int i = 0; i < 100; i++)
    for (const Bytes& field : texts_of(say("HRANDFIELD h 5"))) seen[field]++;
  for (const Bytes& field : texts_of(say("HRANDFIELD h -9400"))) seen[field]++;
  EXPECT_EQ(seen.size(), 10u);
  for (const auto& [field, times] : seen) EXPECT_NEAR(times, 1'000, 150) << field;
}

}  // namespace
}  // namespace trellis
