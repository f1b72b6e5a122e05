// What is taken at random is as likely as anything else, whatever members and keys look like:
// chi-squared over 10,000 picks, a million of each with TRELLIS_TEST_SCALE=long.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <unordered_map>

#include "redis_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

class RedisUniform : public RedisFixture {
 protected:
  static constexpr size_t members = 1'500;  // that have fences

  // Most share a long front; some are alone before, behind and between them.
  static Bytes member(size_t i) {
    if (i % 100 == 1) return Bytes(1 + i / 100, '\x01');
    if (i % 100 == 2) return fmt::format("zz{}", i * i * i);
    if (i % 3 == 0) return fmt::format("https://example.org/user/session/{:09}", i);
    return fmt::format("https://example.org/user/{}", i * 7919);
  }
  void fill(const Bytes& command, const Bytes& key, bool with_values) {
    for (size_t i = 0; i < members; i++) {
      std::vector<Bytes> words{command};
      if (!key.empty()) words.push_back(key);
      words.push_back(member(i));
      if (with_values) words.emplace_back("1");
      say(std::vector<ByteView>(words.begin(), words.end()));
    }
  }
  static Bytes bulk_of(const Bytes& reply) {
    const size_t begin = reply.find("\r\n") + 2;
    return reply.substr(begin, reply.size() - begin - 2);
  }

  // Sums of squares of members-1 normal deviates lie that far from their mean once in a billion.
  void expect_even(FunctionRef<Bytes()> pick) {
    const uint64_t picks = std::max<uint64_t>(test_rounds(10'000), members);
    std::unordered_map<Bytes, uint64_t> times;
    for (uint64_t i = 0; i < picks; i++) times[pick()]++;
    const double expected = static_cast<double>(picks) / members;
    double sum = 0;
    for (size_t i = 0; i < members; i++) {
      const double off = static_cast<double>(times[member(i)]) - expected;
      sum += off * off / expected;
    }
    EXPECT_EQ(times.size(), members) << "what is no member";
    constexpr double freedom = members - 1;
    EXPECT_NEAR(sum, freedom, 6.5 * std::sqrt(2 * freedom));
  }
};
INSTANTIATE_TEST_SUITE_P(BothWays, RedisUniform, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(RedisUniform, MembersOfSets) {
  fill("SADD", "s", false);
  expect_even([&] { return bulk_of(say("SRANDMEMBER s")); });
}

TEST_P(RedisUniform, PoppedMembers) {
  fill("SADD", "s", false);
  expect_even([&] {
    const Bytes popped = bulk_of(say("SPOP s"));
    say(std::vector<ByteView>{"SADD", "s", popped});
    return popped;
  });
}

TEST_P(RedisUniform, FieldsOfHashes) {
  fill("HSET", "h", true);
  expect_even([&] { return bulk_of(say("HRANDFIELD h")); });
}

TEST_P(RedisUniform, SeveralAtOnce) {
  fill("SADD", "s", false);
  std::vector<Bytes> picked;
  expect_even([&] {
    if (picked.empty()) {
      const Bytes reply = say("SRANDMEMBER s 5");
      for (size_t at = reply.find('$'); at < reply.size();) {
        const size_t begin = reply.find("\r\n", at) + 2;
        at = reply.find("\r\n", begin) + 2;
        picked.push_back(reply.substr(begin, at - 2 - begin));
      }
    }
    Bytes one = picked.back();
    picked.pop_back();
    return one;
  });
}

TEST_P(RedisUniform, Keys) {
  fill("SET", {}, true);
  expect_even([&] { return bulk_of(say("RANDOMKEY")); });
  // Where keys come and go its borders do not fit any more.
  for (size_t i = 0; i < 3'000; i++) say(fmt::format("SET https://example.org/more/{} 1", i));
  for (size_t i = 0; i < 300; i++) say("RANDOMKEY");
  for (size_t i = 0; i < 3'000; i++) say(fmt::format("DEL https://example.org/more/{}", i));
  expect_even([&] { return bulk_of(say("RANDOMKEY")); });
  for (size_t i = 1; i < members; i++) say(std::vector<ByteView>{"DEL", member(i)});
  for (int i = 0; i < 10; i++) EXPECT_EQ(bulk_of(say("RANDOMKEY")), member(0));
  say(std::vector<ByteView>{"DEL", member(0)});
  EXPECT_EQ(say("RANDOMKEY"), "$-1\r\n");
}

}  // namespace
}  // namespace trellis
