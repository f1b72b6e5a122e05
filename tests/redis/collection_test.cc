// Large collections: scans while others change them, and picks at random.
#include "redis/collection.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "base/random.h"
#include "redis/executor.h"
#include "support/tenant_fixture.h"
#include "tenant/tokens.h"

namespace trellis {
namespace {

using Members = std::set<Bytes>;

class RedisCollection : public TenantFixture {
 protected:
  void SetUp() override {
    TenantFixture::SetUp();
    tokens_.emplace(map_, keyspaces_->changes());
    start();
  }

  void start() {
    session_.reset();
    server_.emplace(*keyspaces_, *tokens_, RedisOptions());
    session_.emplace().is_local = true;
    ASSERT_OK(server_->greet(*session_));
  }

  // The bulks and numbers of the reply, one after the other.
  std::vector<Bytes> say(const std::vector<Bytes>& words) {
    const std::vector<ByteView> args(words.begin(), words.end());
    Bytes out;
    Request request{&*session_, args, &out};
    Executor(*server_).run({&request, 1});
    std::vector<Bytes> said;
    for (ByteView rest = out; !rest.empty();) {
      const size_t end = rest.find("\r\n");
      const ByteView head = rest.substr(0, end);
      rest.remove_prefix(end + 2);
      EXPECT_NE(head[0], '-') << head;
      if (head[0] == ':') said.emplace_back(head.substr(1));
      if (head[0] != '$' || head == "$-1") continue;
      const size_t size = std::stoull(Bytes(head.substr(1)));
      said.emplace_back(rest.substr(0, size));
      rest.remove_prefix(size + 2);
    }
    return said;
  }

  void change(const char* command, const Members& members) {
    std::vector<Bytes> words{command, "set"};
    words.insert(words.end(), members.begin(), members.end());
    say(words);
  }

  struct Scanned {
    Members members;
    size_t pages = 0;
    size_t page_max = 0;
  };
  // Calls `between` behind every page.
  Scanned scan(const std::function<void()>& between) {
    Scanned scanned;
    Bytes cursor = "0";
    do {
      std::vector<Bytes> said = say({"SSCAN", "set", cursor});
      cursor = said.at(0);
      scanned.members.insert(said.begin() + 1, said.end());
      scanned.pages++;
      scanned.page_max = std::max(scanned.page_max, said.size() - 1);
      between();
    } while (cursor != "0" && scanned.pages < 100'000);
    EXPECT_EQ(cursor, "0");
    return scanned;
  }

  static Members numbered(const std::string& prefix, size_t count) {
    Members members;
    for (size_t i = 0; i < count; i++) members.insert(fmt::format("{}{:06}", prefix, i));
    return members;
  }

  std::optional<Tokens> tokens_;
  std::optional<RedisServer> server_;
  std::optional<Session> session_;
};
INSTANTIATE_TEST_SUITE_P(BothWays, RedisCollection, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(RedisCollection, PagesAreSmallBehindALongPrefix) {
  const Members members = numbered("https://example.org/user/session/", 2'000);
  change("SADD", members);
  const Scanned scanned = scan([] {});
  EXPECT_EQ(scanned.members, members);
  EXPECT_LE(scanned.page_max, 20u);
}

TEST_P(RedisCollection, AGroupThatIsTooLargeComesInSeveralPages) {
  Members members = numbered("https://example.org/user/session/", 9'000);
  members.insert({"", Bytes("\0", 1), Bytes("\0\0\0\0\0\0\0", 7), "a", "zzz", "https", "\xff\xff"});
  change("SADD", members);
  const Scanned scanned = scan([] {});
  EXPECT_EQ(scanned.members, members);
  EXPECT_LT(scanned.page_max, 4'000u);
  EXPECT_GT(scanned.pages, 4u);
}

// Whatever comes and goes meanwhile, also if it is all that others share.
TEST_P(RedisCollection, AScanFindsAllThatStays) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    SCOPED_TRACE(seed);
    Random random(seed);
    say({"DEL", "set"});
    const std::string prefix(random.below(12), 'p');
    Members stays;
    while (stays.size() < 1'500) {
      Bytes member = prefix + random.bytes(random.below(9));
      if (random.one_in(2))  // few bytes: large groups and zeros at ends
        for (char& c : member) c = static_cast<char>(c & 1);
      if (random.one_in(3)) member = prefix + "common" + std::to_string(random.below(9'999));
      stays.insert(seed % 2 == 0 ? "always" + member : member);
    }
    change("SADD", stays);
    size_t changes = 0;
    const Scanned scanned = scan([&] {
      if (changes++ > 60) return;
      Members others;
      for (int i = 0; i < 20; i++) others.insert(Bytes(random.below(8), 'a') + random.bytes(2));
      for (const Bytes& one : stays) others.erase(one);
      if (!others.empty()) change(random.one_in(2) ? "SADD" : "SREM", others);
    });
    for (const Bytes& one : stays) ASSERT_TRUE(scanned.members.contains(one)) << quote(one);
  }
}

TEST_P(RedisCollection, RandomPicksOfALargeSet) {
  const Members members = numbered("element:", 2'500);
  change("SADD", members);
  const std::vector<Bytes> some = say({"SRANDMEMBER", "set", "100"});
  EXPECT_EQ(Members(some.begin(), some.end()).size(), 100u);
  for (const Bytes& one : some) EXPECT_TRUE(members.contains(one));
  EXPECT_EQ(say({"SRANDMEMBER", "set", "-3000"}).size(), 3'000u);
  const std::vector<Bytes> most = say({"SRANDMEMBER", "set", "2499"});
  EXPECT_EQ(Members(most.begin(), most.end()).size(), 2'499u);

  Members seen;
  for (int i = 0; i < 1'000; i++) seen.insert(say({"SRANDMEMBER", "set"}).at(0));
  EXPECT_GT(seen.size(), 700u);  // about 820
}

// A page may end within a group of names that are alike, but not where it takes a walk over all
// groups to find the place again.
TEST_P(RedisCollection, KeysThatAreAlikeInGroups) {
  Random random(1);
  Members names;
  for (int group = 0; group < 300; group++) {
    const Bytes id = fmt::format("{:016x}{:016x}", random.next(), random.next());
    for (int i = 0; i < 60; i++) names.insert(fmt::format("user:{}:attribute:{:02}", id, i));
  }
  for (const Bytes& name : names) say({"SET", name, "v"});
  Members found;
  size_t given = 0;
  size_t page_max = 0;
  Bytes cursor = "0";
  do {
    std::vector<Bytes> said = say({"SCAN", cursor, "COUNT", "10"});
    cursor = said.at(0);
    found.insert(said.begin() + 1, said.end());
    given += said.size() - 1;
    page_max = std::max(page_max, said.size() - 1);
  } while (cursor != "0" && given < 10 * names.size());
  EXPECT_EQ(found, names);
  EXPECT_EQ(given, names.size());
  EXPECT_LE(page_max, 130u);
}

// A page may have fewer keys than were asked for: it ends at some bytes.
TEST_P(RedisCollection, KeysWithLargeValues) {
  for (const auto& [count, value_bytes] : {std::pair{1'500, 20'000}, std::pair{4, 10'000'000}}) {
    SCOPED_TRACE(value_bytes);
    say({"FLUSHDB"});
    const Members names = numbered("key:", static_cast<size_t>(count));
    for (const Bytes& name : names)
      say({"SET", name, Bytes(static_cast<size_t>(value_bytes), 'v')});
    Members found;
    size_t pages = 0;
    Bytes cursor = "0";
    do {
      std::vector<Bytes> said = say({"SCAN", cursor, "COUNT", "1000"});
      cursor = said.at(0);
      found.insert(said.begin() + 1, said.end());
    } while (cursor != "0" && pages++ < 20);
    EXPECT_EQ(cursor, "0");
    EXPECT_EQ(found, names);
  }
}

TEST_P(RedisCollection, AnyKeyWithALargeValueIsPicked) {
  const Members names = numbered("key:", 200);
  for (const Bytes& name : names) say({"SET", name, "v"});
  say({"RANDOMKEY"});  // where to look is known from now on
  for (const Bytes& name : names) say({"SET", name, Bytes(400'000, 'v')});
  Members seen;
  for (int i = 0; i < 3'000; i++) seen.insert(say({"RANDOMKEY"}).at(0));
  EXPECT_EQ(seen, names);
}

// Also by a process that has only read as yet.
TEST_P(RedisCollection, PicksDifferAfterARestart) {
  change("SADD", numbered("m", 10'000));
  std::vector<Bytes> picked[2];
  for (std::vector<Bytes>& of_process : picked) {
    start();
    clock_.advance_ms(1);
    for (int i = 0; i < 3; i++) of_process.push_back(say({"SRANDMEMBER", "set"}).at(0));
  }
  EXPECT_NE(picked[0], picked[1]);
}

TEST_P(RedisCollection, PoppedMembersComeOnce) {
  Members left = numbered("element:", 3'000);
  change("SADD", left);
  for (int i = 0; !left.empty(); i++) {
    const auto popped = i < 500 ? say({"SPOP", "set"}) : say({"SPOP", "set", "100"});
    ASSERT_FALSE(popped.empty());
    for (const Bytes& one : popped) ASSERT_EQ(left.erase(one), 1u);
    ASSERT_EQ(say({"SCARD", "set"}).at(0), std::to_string(left.size()));
  }
  EXPECT_EQ(say({"EXISTS", "set"}).at(0), "0");
  const auto tenant = keyspaces_->tenant(default_keyspace).value();
  EXPECT_EQ(tenant->figures().value(), recount(memory_, default_keyspace).value());
}

// Each of ten members within four standard deviations of what an even draw gives.
TEST_P(RedisCollection, PicksOfASmallSetAreEven) {
  change("SADD", numbered("m", 10));
  std::map<Bytes, int> seen;
  for (int i = 0; i < 5'000; i++) seen[say({"SRANDMEMBER", "set"}).at(0)]++;
  for (const Bytes& one : say({"SRANDMEMBER", "set", "-5000"})) seen[one]++;
  EXPECT_EQ(seen.size(), 10u);
  for (const auto& [member, times] : seen) EXPECT_NEAR(times, 1'000, 120) << member;
}

TEST_P(RedisCollection, ABottomlessPickIsRefused) {
  change("SADD", {Bytes(60'000, 'x')});
  const std::vector<ByteView> args{"SRANDMEMBER", "set", "-9223372036854775807"};
  Bytes out;
  Request request{&*session_, args, &out};
  Executor(*server_).run({&request, 1});
  EXPECT_EQ(out, "-ERR the reply is over 268435456 bytes: ask for less\r\n");
}

}  // namespace
}  // namespace trellis
