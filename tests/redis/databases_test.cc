// Databases that are flushed and swapped, and keys that expire, while others work and collectors
// come and go.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "engine/faulty_engine.h"
#include "redis_fixture.h"

namespace trellis {
namespace {

class RedisDatabases : public RedisFixture {
 protected:
  // Keys of all types, some of which expire.
  void fill(int keys) {
    for (int i = 0; i < keys; i++) {
      say(fmt::format("SET string{} value", i));
      say(fmt::format("SET expires{} value PX {}", i, 100'000 + i));
      say(fmt::format("RPUSH list{} a b c", i));
      say(fmt::format("HSET hash{} a b c d", i));
      say(fmt::format("ZADD zset{} 1 a 2 b", i));
    }
    say("PEXPIRE list0 5000000");
    say("DEL list1");
  }
  void fill_hash(const std::string& key, size_t mib) {
    const std::string value(8'192, 'v');
    for (size_t i = 0; i < mib * 128; i++) say(fmt::format("HSET {} field{} {}", key, i, value));
  }
  // Collects what all notes are about; how many intervals the disk should have back.
  size_t removed_by_hand() {
    const auto tenant = keyspaces_->tenant(default_keyspace).value();
    Bytes prefix;
    append_keyspace_prefix(prefix, KeyMode::txn, default_keyspace);
    prefix += 'g';
    for (int tries = 0; tries < 1'000; tries++) {
      std::vector<Garbage> notes;
      visit_all(memory_, prefix, [&](ByteView key, ByteView value) {
        const auto note = decode<GarbageKey>(key);
        notes.push_back({.due_ms = note->due_ms,
                         .target = Bytes(note->target),
                         .model = note->model,
                         .bytes = decode_garbage_value(value).value()});
      });
      if (notes.empty()) break;
      for (const Garbage& note : notes) EXPECT_OK(owner_->collect(*tenant, {&note, 1}));
    }
    return owner_->take_removed(memory_).value().size();
  }
  static constexpr int many_members = 70'000;  // more than a page
  void fill_large() {
    constexpr int at_once = 500;
    for (int first = 0; first < many_members; first += at_once) {
      std::string line = "ZADD large";
      for (int i = first; i < first + at_once; i++) line += fmt::format(" {} member{}", i % 7, i);
      say(line);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(BothWays, RedisDatabases, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(RedisDatabases, WhatIsFlushedIsCollectedExactlyAcrossRestarts) {
  fill(60);
  say("SELECT 3");
  fill(3);
  const int64_t others = number("DBSIZE");
  say("SELECT 0");
  EXPECT_EQ(number("DBSIZE"), 5 * 60 - 1);
  EXPECT_EQ(say("FLUSHDB"), "+OK\r\n");
  EXPECT_EQ(number("DBSIZE"), 0);
  EXPECT_EQ(say("SET string0 new"), "+OK\r\n");
  expect_exact();
  clock_.advance_ms(1'000);
  int steps = 0;
  while (step()) {
    expect_exact();
    EXPECT_EQ(say("GET string0"), "$3\r\nnew\r\n");
    if (steps++ % 3 == 0) restart();
    ASSERT_LT(steps, 1'000);
  }
  EXPECT_GT(steps, 3) << "a page at a time";
  say("SELECT 3");
  EXPECT_EQ(number("DBSIZE"), others);
  EXPECT_EQ(say("FLUSHALL"), "+OK\r\n");
  for (int i = 0; i < 100; i++) {  // and what DEL left, behind the safe point
    clock_.advance_ms(1'000);
    while (step()) expect_exact();
  }
  EXPECT_EQ(records(), 0u);
  expect_exact();
}

// Whatever commit of the collector fails, what is stored is counted and the next one goes on.
TEST_P(RedisDatabases, ACollectorThatFailsHalfwayGoesOn) {
  fill(20);
  EXPECT_EQ(say("FLUSHDB"), "+OK\r\n");
  clock_.advance_ms(1'000);
  FaultyEngine faulty(memory_, {.seed = 7, .fail_commit_one_in = 4, .maybe_one_in = 4});
  Transactor transactor(faulty, clock_, {.way = GetParam(), .check_scope = true});
  const MapHandle map{faulty, transactor, clock_};
  stop();
  for (int i = 0; i < 1'000; i++) {
    auto keyspaces = Keyspaces::open(map, {});
    if (!keyspaces) continue;
    Tokens tokens(map, (*keyspaces)->changes());
    RedisServer server(**keyspaces, tokens, RedisOptions());
    Gc gc(map, (*keyspaces)->changes());
    RedisGarbageOwner owner(server);
    Collector collector(**keyspaces, gc, CollectorOptions());
    collector.own(Model::redis, owner);
    const auto wait_ms = collector.step();
    EXPECT_EQ(stored_figures(memory_, default_keyspace).value(),
              recount(memory_, default_keyspace).value());
    if (wait_ms && *wait_ms != std::optional<uint64_t>(0)) break;
  }
  restart();
  clock_.advance_ms(200'000);
  while (step()) expect_exact();
  EXPECT_EQ(records(), 0u);
}

TEST_P(RedisDatabases, ASlotIsUsedAgainWhenItIsEmpty) {
  DatabaseSlots last = initial_slots();
  last.next = 65'535;
  const auto tenant = keyspaces_->tenant(default_keyspace).value();
  ASSERT_OK(tenant->collect(Model::redis, Scope::all_of(default_keyspace), [&](CountedView& view) {
    view.put(slots_key_, encode_slots(last), Value());
    return Status();
  }));
  restart();
  for (int i = 0; i < 20; i++) {
    EXPECT_EQ(say(fmt::format("SET k{} v PX 60000", i)), "+OK\r\n");
    EXPECT_EQ(say("FLUSHDB"), "+OK\r\n");
    EXPECT_EQ(number("DBSIZE"), 0);
  }
  Value stored;
  ASSERT_OK(memory_.get(slots_key_, stored));
  const uint16_t slot = decode_slots(stored).value().of(0);
  EXPECT_GT(slot, 15) << "0 still holds what was flushed, 1 to 15 are those of databases";
  EXPECT_LT(slot, 40);
  clock_.advance_ms(1'000);
  while (step()) expect_exact();
  EXPECT_EQ(records(), 0u);
}

TEST_P(RedisDatabases, AFlushNeedsNoRoomInTheQuota) {
  EXPECT_EQ(say("SET a some"), "+OK\r\n");
  const auto used = keyspaces_->tenant(default_keyspace).value()->figures().value();
  ASSERT_OK(keyspaces_->set_quota(
      default_keyspace_name, {.bytes = static_cast<uint64_t>(used.bytes) + 64, .keys = 1}, root));
  EXPECT_TRUE(say("SET b x").starts_with("-OOM"));
  say("MULTI");
  say("FLUSHDB");
  say("SET b x");
  EXPECT_TRUE(say("EXEC").starts_with("-OOM"));
  EXPECT_EQ(say("GET a"), "$4\r\nsome\r\n");
  EXPECT_EQ(say("FLUSHDB"), "+OK\r\n");
  clock_.advance_ms(1'000);
  while (step()) expect_exact();
  EXPECT_EQ(say("SET a 1"), "+OK\r\n");
}

TEST_P(RedisDatabases, AKeyGoesWhenItsTimeHasCome) {
  EXPECT_EQ(say("SET a 1 PX 300"), "+OK\r\n");
  EXPECT_EQ(say("SET b 1 PX 700"), "+OK\r\n");
  EXPECT_EQ(say("RPUSH c 1 2 3"), ":3\r\n");
  EXPECT_EQ(say("PEXPIRE c 700"), ":1\r\n");
  EXPECT_EQ(say("SET d 1 PX 2500"), "+OK\r\n");
  EXPECT_EQ(say("DEBUG SET-ACTIVE-EXPIRE 0"), "+OK\r\n");
  clock_.advance_ms(1'000);
  while (step()) {
  }
  const size_t before = records();
  EXPECT_EQ(say("DEBUG SET-ACTIVE-EXPIRE 1"), "+OK\r\n");
  while (step()) expect_exact();
  EXPECT_EQ(records(), before - 3) << "the keys, but not the elements yet";
  EXPECT_NE(say("INFO stats").find("expired_keys:3\r\n"), Bytes::npos);
  EXPECT_EQ(number("DBSIZE"), 1);
  clock_.advance_ms(2'000);
  while (step()) expect_exact();
  EXPECT_EQ(number("DBSIZE"), 0);
  EXPECT_NE(say("INFO stats").find("expired_keys:4\r\n"), Bytes::npos);
  clock_.advance_ms(61'000);
  while (step()) expect_exact();
  EXPECT_EQ(records(), 0u);
}

// Times that clients name and take back leave little behind, and those that stay are kept.
TEST_P(RedisDatabases, FarTimesHaveFewEntries) {
  const auto entries = [&] { return entries_in("\x04/keyspaces/due/", "\x04/keyspaces/due0"); };
  constexpr uint64_t hour_ms = 3'600'000;
  for (uint64_t i = 1; i <= 3'000; i++)
    say(fmt::format("SET often v PXAT {}", start_ms + i * hour_ms));
  EXPECT_LT(entries(), 120u);
  say("SET never v PXAT 9223372036854775807");
  std::map<uint64_t, Bytes> keys;
  keys[start_ms + 3'000 * hour_ms] = "often";
  for (uint64_t i = 0; i < 700; i++) {
    const uint64_t due_ms = start_ms + 5 * hour_ms + (i < 600 ? i * 1'500 : i * i * 100'000);
    keys[due_ms] = fmt::format("key{}", i);
    say(fmt::format("SET {} v PXAT {}", keys[due_ms], due_ms));
  }
  EXPECT_EQ(records(), keys.size() + 1);
  for (const auto& [due_ms, key] : keys) {
    const uint64_t until_ms = due_ms + 2'000;
    if (until_ms <= clock_.unix_ms()) continue;
    // As its thread would: it looks when something is due.
    for (;;) {
      const auto wait_ms = collector_->step();
      ASSERT_OK(wait_ms);
      ASSERT_TRUE(wait_ms->has_value());
      if (clock_.unix_ms() + **wait_ms > until_ms) break;
      clock_.advance_ms(**wait_ms);
    }
    clock_.advance_ms(until_ms - clock_.unix_ms());
    const auto left = keys.upper_bound(until_ms - 2'000);
    const auto left_surely = keys.upper_bound(until_ms);
    EXPECT_LE(records(), 1 + static_cast<size_t>(std::distance(left, keys.end()))) << key;
    EXPECT_GE(records(), 1 + static_cast<size_t>(std::distance(left_surely, keys.end()))) << key;
  }
  EXPECT_EQ(records(), 1u);
  EXPECT_LT(entries(), 5u);
  expect_exact();
}

// Many keys of one second and other notes between them, in a keyspace that holds GC back.
TEST_P(RedisDatabases, ManyKeysGoInSlices) {
  for (int i = 0; i < 1'000; i++) {
    say(fmt::format("SET key{} v PX {}", i, 1 + i % 900));
    if (i % 10 == 0) {
      say(fmt::format("RPUSH list{} x", i));
      say(fmt::format("DEL list{}", i));
    }
  }
  clock_.advance_ms(1'000);
  int steps = 0;
  for (; step(); steps++) ASSERT_LT(steps, 100);
  EXPECT_GT(steps, 3);
  EXPECT_NE(say("INFO stats").find("expired_keys:1000\r\n"), Bytes::npos);
  expect_exact();
}

// --- large keys ---

// As soon as it is their turn: their records are not even counted.
TEST_P(RedisDatabases, LargeKeysLeaveAsAWhole) {
  fill_large();
  say("SADD small a b c");
  EXPECT_EQ(expect_record_bytes(memory_, default_keyspace), 2u);
  EXPECT_EQ(number("DEL large small"), 2);
  say("SADD large again");  // another life of the name
  const size_t before = records();
  EXPECT_GT(before, 2 * many_members);
  clock_.advance_ms(61'000);
  step();
  EXPECT_LT(records(), 10u);
  expect_exact();
  EXPECT_EQ(say("SMEMBERS large"), "*1\r\n$5\r\nagain\r\n");
}

// A database that was flushed goes record by record, also what a note of its own was about.
TEST_P(RedisDatabases, AFlushTakesWhatWasDeleted) {
  for (const bool is_old : {false, true}) {
    fill_large();
    if (is_old) make_old("large");
    EXPECT_EQ(number("DEL large"), 1);
    say("SET other value");
    clock_.advance_ms(is_old ? 61'000 : 59'000);
    if (is_old) {
      ASSERT_TRUE(step());
      EXPECT_GT(records(), 10u) << "a page is not all";
    }
    EXPECT_EQ(say("FLUSHDB"), "+OK\r\n");
    clock_.advance_ms(1'000);
    for (int steps = 0; step(); steps++) {
      ASSERT_LT(steps, 1'000);
      if (steps % 50 == 0) clock_.advance_ms(1'000);  // both notes are due after some
      if (steps % 10 == 0) expect_exact();
    }
    EXPECT_EQ(records(), 0u);
    expect_exact();
  }
}

// What was trimmed off a stream goes beside more of it, and beside the rest.
TEST_P(RedisDatabases, TrimmedEntriesGoOnce) {
  const std::string value(2'000, 'v');
  for (const char* last : {"XTRIM s MAXLEN 0", "DEL s"}) {
    for (const char* trim : {"XTRIM s MAXLEN 10", last}) {
      for (int i = 0; i < 6'000; i++) say(fmt::format("XADD s * field {}", value));
      say(trim);
    }
    clock_.advance_ms(61'000);
    for (int steps = 0; step(); steps++) {
      ASSERT_LT(steps, 100);
      expect_exact();
    }
    EXPECT_LT(records(), 10u);
  }
}

// What was there before the bytes of records were added up is read, page by page.
TEST_P(RedisDatabases, OldLargeKeysGoPageByPage) {
  fill_large();
  make_old("large");
  say("SADD small a b c");
  EXPECT_EQ(number("DEL large small"), 2);
  say("SADD large again");  // another life of the name
  const size_t before = records();
  EXPECT_GT(before, 2 * many_members);
  clock_.advance_ms(61'000);
  ASSERT_TRUE(step());
  EXPECT_LT(records(), before);
  EXPECT_GT(records(), 10u) << "a page is not all";
  expect_exact();
  for (int steps = 0; step(); steps++) ASSERT_LT(steps, 100);
  EXPECT_LT(records(), 10u);
  EXPECT_EQ(say("SMEMBERS large"), "*1\r\n$5\r\nagain\r\n");
  expect_exact();
  EXPECT_EQ(number("DEL large"), 1);
  clock_.advance_ms(61'000);
  for (int steps = 0; step(); steps++) ASSERT_LT(steps, 100);
  EXPECT_EQ(records(), 0u);
  expect_exact();
}

// Nobody has to put tables of the store in order for each of them.
TEST_P(RedisDatabases, LargeNeighboursAreReclaimedTogether) {
  for (const char* key : {"a", "b", "d"}) fill_hash(key, 17);
  say("HSET c field value");
  EXPECT_EQ(number("DEL a b d"), 3);
  EXPECT_EQ(removed_by_hand(), 2u) << "c is between b and d";
  EXPECT_EQ(removed_by_hand(), 0u) << "each once";
  expect_exact();
}

// Those that are not large by themselves, too, and databases; but not what is little even so.
TEST_P(RedisDatabases, MuchTogetherIsReclaimed) {
  for (int i = 0; i < 9; i++) fill_hash(fmt::format("near{}", i), 2);
  fill_hash("alone", 2);
  say("HSET beside field value");
  EXPECT_EQ(number("DEL alone near0 near1 near2"), 4);
  EXPECT_EQ(removed_by_hand(), 0u);
  EXPECT_EQ(number("DEL near3 near4 near5 near6 near7 near8"), 6);
  EXPECT_EQ(removed_by_hand(), 1u);
  fill_hash("large", 17);
  EXPECT_EQ(say("FLUSHDB"), "+OK\r\n");
  EXPECT_GT(removed_by_hand(), 0u);
  expect_exact();
}

// --- many threads ---

TEST_P(RedisDatabases, NothingIsLostBetweenSwaps) {
  constexpr int threads = 4;
  constexpr int rounds = 300;
  std::vector<std::thread> workers;
  std::atomic<int64_t> added{0};
  for (int i = 0; i < threads; i++)
    workers.emplace_back([&, i] {
      const auto session = connect();
      for (int round = 0; round < rounds; round++) {
        if (say(*session, fmt::format("INCR n{}", i % 2)).starts_with(':')) added++;
        if (round % 7 == i) {
          const Bytes reply = say(*session, "SWAPDB 0 1");
          EXPECT_TRUE(reply == "+OK\r\n" || may_conflict()) << reply;
        }
      }
      server_->leave(*session);
    });
  for (std::thread& worker : workers) worker.join();
  int64_t found = 0;
  for (const char* database : {"SELECT 0", "SELECT 1"}) {
    say(database);
    for (const char* key : {"n0", "n1"}) {
      const Bytes reply = say(fmt::format("GET {}", key));
      if (reply != "$-1\r\n") found += std::stoll(reply.substr(reply.find('\n') + 1));
    }
  }
  EXPECT_EQ(found, added.load());
  expect_exact();
}

TEST_P(RedisDatabases, AFlushIsOneStepToOthers) {
  constexpr int rounds = 200;
  std::atomic<bool> done{false};
  std::atomic<int> written{0};
  std::atomic<int> seen{0};
  std::thread flusher([&] {
    const auto session = connect();
    for (int i = 0; i < rounds || written < rounds || seen < rounds; i++) {
      const Bytes reply = say(*session, i % 3 == 0 ? "FLUSHALL" : "FLUSHDB");
      EXPECT_TRUE(reply == "+OK\r\n" || may_conflict()) << reply;
    }
    server_->leave(*session);
    done = true;
  });
  std::thread writer([&] {
    const auto session = connect();
    for (; !done; written++) say(*session, fmt::format("MSET a {0} b {0}", written.load()));
    server_->leave(*session);
  });
  std::thread collector([&] {
    while (!done) {
      clock_.advance_ms(100);
      (void)collector_->step();
    }
  });
  for (; !done; seen++) {
    const Bytes reply = say("MGET a b");
    if (!reply.starts_with('*')) continue;  // a conflict that did not end
    const Bytes values = reply.substr(4);
    EXPECT_EQ(values.substr(0, values.size() / 2), values.substr(values.size() / 2)) << reply;
  }
  flusher.join();
  writer.join();
  collector.join();
  expect_exact();
  // Nothing was written where nobody looks any more.
  EXPECT_EQ(say("FLUSHALL"), "+OK\r\n");
  clock_.advance_ms(1'000);
  while (step()) {
  }
  EXPECT_EQ(records(), 0u);
  expect_exact();
}

}  // namespace
}  // namespace trellis
