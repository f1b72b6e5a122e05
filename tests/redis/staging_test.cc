// What one commit cannot hold: it happens as a whole or not at all, is counted to the byte, and
// what is staged in vain goes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "redis_fixture.h"

namespace trellis {
namespace {

// More than a commit, and less than a transaction may read on a shared engine.
constexpr size_t member_bytes = 8'192;
constexpr size_t members = commit_bytes_max / member_bytes + 400;

class RedisStaging : public RedisFixture {
 protected:
  // A text that begins with the number.
  static Bytes member(size_t i) {
    Bytes text = fmt::format("{:08}", i);
    text.resize(member_bytes, 'x');
    return text;
  }
  // `words` and for each number in [begin, end) what `add` adds.
  template <class Add>
  Bytes say_many(std::vector<Bytes> words, size_t begin, size_t end, Add add) {
    for (size_t i = begin; i < end; i++) add(words, i);
    return say(std::vector<ByteView>(words.begin(), words.end()));
  }
  static void add_member(std::vector<Bytes>& words, size_t i) { words.push_back(member(i)); }
  static void add_pair(std::vector<Bytes>& words, size_t i) {
    words.push_back(std::to_string(i));
    words.push_back(member(i));
  }

  // One of each type, called after it.
  void fill() {
    for (size_t i = 0; i < members; i += 500) {
      const size_t end = std::min(members, i + 500);
      say_many({"RPUSH", "list"}, i, end, add_member);
      say_many({"SADD", "set"}, i, end, add_member);
      say_many({"HSET", "hash"}, i, end, add_pair);
    }
    // Two records each.
    for (size_t i = 0; i < members / 2; i += 500)
      say_many({"ZADD", "zset"}, i, std::min(members / 2, i + 500), add_pair);
    EXPECT_EQ(number("LLEN list"), static_cast<int64_t>(members));
    EXPECT_EQ(number("ZCARD zset"), static_cast<int64_t>(members / 2));
  }
  size_t content(std::string_view key, std::string_view type) {
    const std::string line = type == "list"   ? fmt::format("LRANGE {} 0 -1", key)
                             : type == "set"  ? fmt::format("SMEMBERS {}", key)
                             : type == "zset" ? fmt::format("ZRANGE {} 0 -1 WITHSCORES", key)
                                              : fmt::format("HGETALL {}", key);
    return std::hash<Bytes>{}(say(line));
  }
  // Behind the safe point all that no key has is gone.
  void expect_only(size_t expected_records) {
    for (int i = 0; i < 3; i++) {
      clock_.advance_ms(61'000);
      while (step()) {
      }
    }
    EXPECT_EQ(records(), expected_records);
    expect_exact();
  }
};
INSTANTIATE_TEST_SUITE_P(BothWays, RedisStaging, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(RedisStaging, LargeKeysAreRenamedAndCopied) {
  fill();
  size_t expected = 4 * members + 4;  // and one record of each key
  EXPECT_EQ(records(), expected);
  for (const std::string type : {"list", "set", "hash", "zset"}) {
    const size_t before = content(type, type);
    EXPECT_EQ(say(fmt::format("PEXPIRE {} 100000000", type)), ":1\r\n");
    EXPECT_EQ(say(fmt::format("RENAME {0} new{0}", type)), "+OK\r\n");
    EXPECT_EQ(say(fmt::format("EXISTS {}", type)), ":0\r\n");
    EXPECT_GT(number(fmt::format("PTTL new{}", type)), 99'000'000);
    EXPECT_EQ(content("new" + type, type), before);
    expect_exact();
    EXPECT_EQ(say(fmt::format("COPY new{0} {0} DB 3", type)), ":1\r\n");
    say("SELECT 3");
    EXPECT_EQ(content(type, type), before);
    EXPECT_EQ(say(fmt::format("DEL {}", type)), ":1\r\n");
    say("SELECT 0");
    expect_exact();
  }
  expect_only(expected);
}

TEST_P(RedisStaging, OneCommandAddsAndRemovesMoreThanACommit) {
  EXPECT_EQ(say("RPUSH list first"), ":1\r\n");
  EXPECT_EQ(say_many({"RPUSH", "list"}, 0, members, add_member),
            fmt::format(":{}\r\n", members + 1));
  EXPECT_EQ(say("LINDEX list 0"), "$5\r\nfirst\r\n");
  EXPECT_EQ(say("LINDEX list -1"), fmt::format("${}\r\n{}\r\n", member_bytes, member(members - 1)));
  expect_exact();

  EXPECT_EQ(say("SADD set first"), ":1\r\n");
  EXPECT_EQ(say_many({"SADD", "set"}, 0, members, add_member), fmt::format(":{}\r\n", members));
  EXPECT_EQ(number("SCARD set"), static_cast<int64_t>(members + 1));
  EXPECT_EQ(say("SISMEMBER set first"), ":1\r\n");
  expect_exact();
  EXPECT_EQ(say_many({"SREM", "set"}, 0, members, add_member), fmt::format(":{}\r\n", members));
  EXPECT_EQ(say("SMEMBERS set"), "*1\r\n$5\r\nfirst\r\n");
  expect_exact();

  EXPECT_EQ(say("ZADD zset -1 first 100000 last"), ":2\r\n");
  EXPECT_EQ(say_many({"ZADD", "zset"}, 0, members / 2, add_pair),
            fmt::format(":{}\r\n", members / 2));
  expect_exact();
  EXPECT_EQ(say("ZREMRANGEBYSCORE zset 0 99999"), fmt::format(":{}\r\n", members / 2));
  EXPECT_EQ(say("ZRANGE zset 0 -1"), "*2\r\n$5\r\nfirst\r\n$4\r\nlast\r\n");
  expect_only(members + 1 + 1 + 4 + 3);
}

TEST_P(RedisStaging, ATransactionMaySeeWhatItStaged) {
  fill();
  say("MULTI");
  say("COPY set other");
  say("SADD other more");
  say("SREM other " + member(0));
  say("RENAME other third");
  say("COPY third gone");
  say("DEL gone");
  const Bytes reply = say("EXEC");
  EXPECT_EQ(reply, "*6\r\n:1\r\n:1\r\n:1\r\n+OK\r\n:1\r\n:1\r\n");
  EXPECT_EQ(number("SCARD third"), static_cast<int64_t>(members));
  EXPECT_EQ(say("SISMEMBER third more"), ":1\r\n");
  EXPECT_EQ(say("SISMEMBER third " + member(0)), ":0\r\n");
  EXPECT_EQ(number("SCARD set"), static_cast<int64_t>(members));
  EXPECT_EQ(say("EXISTS other gone"), ":0\r\n");
  expect_exact();
  expect_only(4 * members + 4 + members + 1);
}

// What else began in it is read beside what is much.
TEST_P(RedisStaging, SmallKeysBesideALargeOne) {
  constexpr size_t bytes = commit_bytes_max + 8 * 1024 * 1024;
  EXPECT_EQ(say(fmt::format("SETBIT src {} 1", bytes * 8 - 1)), ":0\r\n");
  say("MULTI");
  for (const char* line : {"HSET hash n 41",
                           "SADD set x y",
                           "ZADD zset 1 a 2 b",
                           "RPUSH list a b",
                           "SIADD ints 1 2",
                           "XGROUP CREATE stream group 0 MKSTREAM",
                           "XADD stream 1-1 f v",
                           "SET text t",
                           "BITOP NOT dst src",
                           "HINCRBY hash n 1",
                           "SMEMBERS set",
                           "SADD set x",
                           "SCARD set",
                           "ZADD zset 3 a",
                           "ZCARD zset",
                           "LPOP list",
                           "LLEN list",
                           "SIADD ints 1 3",
                           "SICARD ints",
                           "XREADGROUP GROUP group c STREAMS stream >",
                           "GET text",
                           "GETBIT dst 5"})
    EXPECT_EQ(say(line), "+QUEUED\r\n") << line;
  const Bytes reply = say("EXEC");
  const Bytes tail = fmt::format(
      ":{}\r\n:42\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n:0\r\n:2\r\n:0\r\n:2\r\n$1\r\na\r\n:1\r\n:1\r\n:"
      "3\r\n"
      "*1\r\n*2\r\n$6\r\nstream\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
      "$1\r\nt\r\n:1\r\n",
      bytes);
  EXPECT_TRUE(reply.ends_with(tail)) << reply;
  EXPECT_EQ(say("HGET hash n"), "$2\r\n42\r\n");
  EXPECT_EQ(say("SMEMBERS set"), "*2\r\n$1\r\nx\r\n$1\r\ny\r\n");
  EXPECT_EQ(say("ZSCORE zset a"), "$1\r\n3\r\n");
  EXPECT_EQ(say("LRANGE list 0 -1"), "*1\r\n$1\r\nb\r\n");
  EXPECT_EQ(number("BITCOUNT dst"), static_cast<int64_t>(bytes * 8 - 1));
  expect_exact();
}

// What is copied, and changed in the same transaction.
TEST_P(RedisStaging, ACopyIsChangedWhereItWasWritten) {
  if (may_conflict()) GTEST_SKIP() << "a transaction may not read as much";
  constexpr size_t step = 50;
  for (size_t i = 0; i < members; i += step)
    say_many({"HSET", "hash"}, i, std::min(members, i + step), add_pair);
  say("MULTI");
  say("COPY hash other");
  const auto add_change = [](std::vector<Bytes>& words, size_t i) {
    words.push_back(std::to_string(i));
    words.push_back("changed" + std::to_string(i) + Bytes(2'000, 'y'));
  };
  constexpr size_t changed = 2'000;
  for (size_t i = 0; i < changed; i += step) say_many({"HSET", "other"}, i, i + step, add_change);
  EXPECT_TRUE(say("EXEC").starts_with("*41\r\n:1\r\n:0\r\n"));
  for (size_t i = 0; i < members; i++) {
    const Bytes reply = say(fmt::format("HGET other {}", i));
    ASSERT_EQ(reply.find("changed") != Bytes::npos, i < changed) << i;
  }
  EXPECT_EQ(number("HLEN other"), static_cast<int64_t>(members));
  expect_exact();
}

TEST_P(RedisStaging, ATransactionDoesNotBreakWhatItWatches) {
  EXPECT_EQ(say("SADD set first"), ":1\r\n");
  EXPECT_EQ(say("WATCH set"), "+OK\r\n");
  say("MULTI");
  EXPECT_EQ(say_many({"SADD", "set"}, 0, members, add_member), "+QUEUED\r\n");
  EXPECT_EQ(say("EXEC"), fmt::format("*1\r\n:{}\r\n", members));
  EXPECT_EQ(say("WATCH set"), "+OK\r\n");
  const auto other = connect();
  EXPECT_EQ(say(*other, "SREM set first"), ":1\r\n");
  server_->leave(*other);
  say("MULTI");
  say("COPY set copied");
  EXPECT_EQ(say("EXEC"), "*-1\r\n");
  expect_only(members + 1);
}

// What was renewed once is not renewed again, and many small collections are renewed too.
TEST_P(RedisStaging, ATransactionOfManyCommands) {
  constexpr size_t keys = 300;
  for (size_t i = 0; i < keys; i++) say(fmt::format("HSET hash{} field old", i));
  EXPECT_EQ(say("SADD set first"), ":1\r\n");
  say("MULTI");
  for (size_t i = 0; i < 10; i++) {
    say_many({"SADD", "set"}, i * 100, (i + 1) * 100, add_member);
    say("DBSIZE");
  }
  for (size_t i = 0; i < keys; i++)
    say_many({"HSET", "hash" + std::to_string(i)}, i * 12, (i + 1) * 12, add_pair);
  EXPECT_TRUE(say("EXEC").starts_with("*320\r\n:100\r\n:301\r\n:100\r\n"));
  EXPECT_EQ(number("SCARD set"), 1'001);
  EXPECT_EQ(number("HLEN hash7"), 13);
  EXPECT_LT(stored_figures(memory_, default_keyspace).value().bytes, 120 << 20);
  expect_only(keys * 14 + 1'002);
}

TEST_P(RedisStaging, FlushedAndFilledAtOnce) {
  EXPECT_EQ(say("SADD set first"), ":1\r\n");
  say("MULTI");
  say("FLUSHDB");
  say_many({"SADD", "set"}, 0, members, add_member);
  const Bytes reply = say("EXEC");
  if (may_conflict()) {
    EXPECT_EQ(reply, fmt::format("-{}\r\n", too_much_at_once));
    expect_only(2);
  } else {
    EXPECT_EQ(reply, fmt::format("*2\r\n+OK\r\n:{}\r\n", members));
    expect_only(members + 1);
  }
}

TEST_P(RedisStaging, StringsThatNoCommitHoldsAreRefused) {
  Bytes large(15 * 1024 * 1024, 'x');
  const std::vector<ByteView> words = {"MSET", "a", large, "b", large, "c", large};
  EXPECT_EQ(say(words), fmt::format("-{}\r\n", too_much_at_once));
  EXPECT_EQ(say("EXISTS a b c"), ":0\r\n");
  expect_only(0);
}

// A payload is made in memory: it has the size of a reply at most.
TEST_P(RedisStaging, WhatIsTooLargeIsNotDumped) {
  if (may_conflict()) GTEST_SKIP() << "a transaction may not read as much";
  const Bytes value(reply_bytes_max / 20, 'x');
  for (int i = 0; i <= 20; i++) {
    const std::string field = std::to_string(i);
    EXPECT_EQ(say(std::vector<ByteView>{"HSET", "hash", field, value}), ":1\r\n");
    EXPECT_EQ(say(std::vector<ByteView>{"XADD", "stream", "*", "f", value})[0], '$');
  }
  for (const char* const key : {"hash", "stream"})
    EXPECT_EQ(say(fmt::format("DUMP {}", key)),
              "-ERR the value is too large to be read at once\r\n");
}

// In order they would be loaded.
TEST_P(RedisStaging, NamesThatAreTooLongAreRefused) {
  std::vector<Bytes> names;
  for (int i = 0; i < 600; i++) names.push_back(std::to_string(1'000 + i) + Bytes(60'000, 'x'));
  names.push_back("9" + Bytes(key_bytes_max, 'x'));
  std::vector<ByteView> words = {"SADD", "set"};
  words.insert(words.end(), names.begin(), names.end());
  const Bytes reply = say(words);
  EXPECT_TRUE(reply.starts_with("-ERR key of ")) << reply.substr(0, 100);
  EXPECT_EQ(say("EXISTS set"), ":0\r\n");
  words.pop_back();
  EXPECT_EQ(say(words), ":600\r\n");
}

TEST_P(RedisStaging, WhatTheQuotaStopsIsGoneSoon) {
  fill();
  const auto used = keyspaces_->tenant(default_keyspace).value()->figures().value();
  ASSERT_OK(keyspaces_->set_quota(
      default_keyspace_name, {.bytes = static_cast<uint64_t>(used.bytes) + (20 << 20), .keys = 0},
      root));
  clock_.advance_ms(2'000);  // where others write too, that is how old figures may be
  const Bytes reply = say("COPY set other");
  EXPECT_TRUE(reply.starts_with("-OOM")) << reply.substr(0, 100);
  EXPECT_EQ(say("EXISTS other"), ":0\r\n");
  // What is loaded goes with the transaction, parts that were committed do not.
  EXPECT_EQ(records() > 4 * members + 4, may_conflict());
  expect_exact();
  clock_.advance_ms(2'000);
  while (step()) {
  }
  EXPECT_EQ(records(), 4 * members + 4) << "which waits for no safe point";
  EXPECT_TRUE(say_many({"SADD", "new"}, 0, members, add_member).starts_with("-OOM"));
  expect_only(4 * members + 4);
}

// Whatever commit fails: all of it or nothing, and in the end no byte more.
TEST_P(RedisStaging, AnyCommitMayFail) {
  fill();
  const size_t whole = content("set", "set");
  stop();
  FaultyEngine faulty(memory_, {.seed = 11, .fail_commit_one_in = 25, .maybe_one_in = 25});
  Transactor transactor(faulty, clock_, {.way = GetParam(), .check_scope = true});
  const MapHandle map{faulty, transactor, clock_};
  int done = 0;
  int failed = 0;
  for (int i = 0; i < 40; i++) {
    auto keyspaces = Keyspaces::open(map, {});
    if (!keyspaces) continue;
    Tokens tokens(map, (*keyspaces)->changes());
    RedisServer server(**keyspaces, tokens, RedisOptions());
    Session session;
    session.is_local = true;
    if (!server.greet(session)) continue;
    Bytes out;
    std::vector<ByteView> words = {"RENAME", i % 2 == 0 ? "set" : "other",
                                   i % 2 == 0 ? "other" : "set"};
    Request request{&session, words, &out};
    Executor(server).run({&request, 1});
    (out == "+OK\r\n" ? done : failed)++;
    server.leave(session);
    EXPECT_EQ(stored_figures(memory_, default_keyspace).value(),
              recount(memory_, default_keyspace).value());
  }
  EXPECT_GT(done, 0);
  EXPECT_GT(failed, 0);
  restart();
  EXPECT_EQ(say("EXISTS set other"), ":1\r\n");
  EXPECT_EQ(content(say("EXISTS set") == ":1\r\n" ? "set" : "other", "set"), whole);
  clock_.advance_ms(staged_due_ms);
  expect_only(4 * members + 4);
}

}  // namespace
}  // namespace trellis
