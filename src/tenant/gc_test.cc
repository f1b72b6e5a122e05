// The rules of safe points and barriers, one by one, against a model and from many threads.
#include "tenant/gc.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "codec/system_keys.h"
#include "codec/tenant_keys.h"
#include "engine/faulty_engine.h"
#include "engine/memory_engine.h"
#include "support/test_seed.h"
#include "tenant/tenant.h"

namespace trellis {
namespace gc_test {

constexpr uint64_t start_ms = 1'794'715'200'000;  // 2026-11-15T04:00:00Z
constexpr KeyspaceId ks{7};
constexpr KeyspaceId other{8};
const Caller admin{Role::admin, "ann"};

uint64_t at(uint64_t ms) { return timestamp_at_ms(ms); }

// A map with two keyspaces, whose engine fails when it is told to.
struct World {
  explicit World(Way way = Way::latched)
      : transactor(engine, clock, {.way = way, .check_scope = true}) {
    for (const KeyspaceId id : {ks, other}) store(id, KeyspaceState::enabled);
  }

  void store(KeyspaceId id, KeyspaceState state, uint64_t purged_at_s = 0) {
    Keyspace keyspace;
    keyspace.id = id;
    keyspace.name = "tenant_" + std::to_string(id.value);
    keyspace.state = state;
    keyspace.purged_at_s = purged_at_s;
    put(encode(KeyspaceMetaKey{id}), encode_keyspace(keyspace));
  }
  void put(ByteView key, ByteView value) {
    Commit change;
    change.writes.put(key, value);
    ASSERT_TRUE(commit(memory, change).has_value());
  }
  void leave_note(KeyspaceId id, uint64_t due_ms, uint64_t bytes, ByteView target = "t") {
    put(encode(GarbageKey{id, due_ms, Model::raw, target}), encode_garbage_value(bytes));
  }
  std::map<Bytes, Bytes> entries(ByteView prefix) {
    std::map<Bytes, Bytes> found;
    const Bytes end = prefix_end(prefix);
    EXPECT_TRUE(memory.scan({.begin = prefix, .end = end}, [&](ByteView key, ByteView value) {
      found.emplace(key, value);
      return Visit::go_on;
    }));
    return found;
  }
  std::string stored(ByteView key) {
    Value value;
    EXPECT_TRUE(memory.get(key, value).has_value());
    return value.found() ? std::string(value.bytes()) : "absent";
  }

  MemoryEngine memory;
  FaultyEngine engine{memory};
  FakeClock clock{start_ms};
  Transactor transactor;
  MapHandle map{engine, transactor, clock};
  ChangeLog changes{map};
  Gc gc{map, changes};
};

class GcTest : public testing::TestWithParam<Way>, public World {
 protected:
  GcTest() : World(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(BothWays, GcTest, testing::Values(Way::latched, Way::expecting),
                         [](const auto& info) {
                           return info.param == Way::latched ? "latched" : "expecting";
                         });

template <class T>
void expect_error(const Result<T>& result, Code code, std::string_view reason) {
  ASSERT_FALSE(result.has_value()) << reason;
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_EQ(result.error().reason, reason) << result.error().message;
}

void expect_points(World& world, uint64_t gc, uint64_t txn, KeyspaceId id = ks) {
  const auto state = world.gc.load(id);
  ASSERT_TRUE(state.has_value()) << state.error().message;
  EXPECT_EQ(state->gc_safe_point, gc);
  EXPECT_EQ(state->txn_safe_point, txn);
}

// --- safe points ---

TEST_P(GcTest, BeginsAtNothing) {
  expect_points(*this, 0, 0);
  EXPECT_TRUE(gc.load(ks)->barriers.empty());
}

TEST_P(GcTest, TxnSafePointNeverGoesBack) {
  const auto first = gc.advance_txn_safe_point(ks, 100, admin);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->before, 0u);
  EXPECT_EQ(first->after, 100u);
  EXPECT_EQ(first->blocker, "");
  expect_error(gc.advance_txn_safe_point(ks, 99, admin), Code::refused, "safe_point_back");
  EXPECT_EQ(gc.advance_txn_safe_point(ks, 100, admin)->after, 100u)
      << "the same again is no step back";
  EXPECT_EQ(gc.advance_txn_safe_point(ks, 101, admin)->before, 100u);
  expect_points(*this, 0, 101);
  expect_points(*this, 0, 0, other);
}

TEST_P(GcTest, GcSafePointStaysBetweenItselfAndTxn) {
  expect_error(gc.advance_gc_safe_point(ks, 1, admin), Code::refused, "safe_point_ahead_of_txn");
  ASSERT_TRUE(gc.advance_txn_safe_point(ks, 100, admin).has_value());
  const auto advance = gc.advance_gc_safe_point(ks, 60, admin);
  ASSERT_TRUE(advance.has_value());
  EXPECT_EQ(advance->before, 0u);
  EXPECT_EQ(advance->after, 60u);
  expect_error(gc.advance_gc_safe_point(ks, 59, admin), Code::refused, "safe_point_back");
  expect_error(gc.advance_gc_safe_point(ks, 101, admin), Code::refused, "safe_point_ahead_of_txn");
  EXPECT_TRUE(gc.advance_gc_safe_point(ks, 100, admin).has_value());
  expect_points(*this, 100, 100);
}

TEST_P(GcTest, TheFutureIsRefused) {
  const uint64_t latest = at(start_ms + 60'000);
  expect_error(gc.advance_txn_safe_point(ks, latest + 1, admin), Code::invalid,
               "safe_point_in_future");
  expect_error(gc.advance_gc_safe_point(ks, latest + 1, admin), Code::invalid,
               "safe_point_in_future");
  expect_error(gc.advance_both(ks, UINT64_MAX), Code::invalid, "safe_point_in_future");
  expect_points(*this, 0, 0);
  EXPECT_EQ(gc.advance_txn_safe_point(ks, latest, admin)->after, latest);
}

TEST_P(GcTest, AdvancesStopAtTheLowestBarrier) {
  ASSERT_TRUE(gc.set_barrier(ks, "cdc", 500, never_expires, admin).has_value());
  ASSERT_TRUE(gc.set_barrier(ks, "backup-7", 123, 3600, admin).has_value());
  const auto held = gc.advance_txn_safe_point(ks, 1000, admin);
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(held->after, 123u);
  EXPECT_EQ(held->blocker, "barrier backup-7 at 123 until 2026-11-15T05:00:00Z");
  EXPECT_EQ(gc.advance_txn_safe_point(ks, 123, admin)->blocker, "") << "that far it may";

  clock.advance_ms(3'599'999);
  EXPECT_EQ(gc.advance_txn_safe_point(ks, 1000, admin)->after, 123u);
  clock.advance_ms(1);
  const auto freed = gc.advance_txn_safe_point(ks, 1000, admin);
  ASSERT_TRUE(freed.has_value());
  EXPECT_EQ(freed->before, 123u);
  EXPECT_EQ(freed->after, 500u);
  EXPECT_EQ(freed->blocker, "barrier cdc at 500 until it is deleted");
  EXPECT_EQ(gc.advance_txn_safe_point(other, 1000, admin)->after, 1000u)
      << "holds are a tenant's own";
}

TEST_P(GcTest, AnAdvanceRemovesExpiredBarriersAndOthersIgnoreThem) {
  ASSERT_TRUE(gc.set_barrier(ks, "short", 10, 1, admin).has_value());
  ASSERT_TRUE(gc.set_barrier(ks, "long", 20, 100, admin).has_value());
  clock.advance_ms(1000);
  const Bytes key = encode(KeyspaceServiceSafePointKey{ks, "short"});
  ASSERT_EQ(gc.load(ks)->barriers.size(), 1u);
  EXPECT_EQ(gc.load(ks)->barriers[0].service, "long");
  ASSERT_TRUE(gc.set_barrier(ks, "other", 30, 100, admin).has_value());
  EXPECT_NE(stored(key), "absent");
  EXPECT_EQ(gc.advance_txn_safe_point(ks, 25, admin)->after, 20u);
  EXPECT_EQ(stored(key), "absent");
  clock.jump_to_ms(start_ms);  // a clock that is set back must not bring it back below t
  EXPECT_EQ(gc.load(ks)->barriers[0].service, "long");
}

TEST_P(GcTest, BothGoAsFarAsTheyMay) {
  const auto state = gc.advance_both(ks, 300);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->txn_safe_point, 300u);
  EXPECT_EQ(state->gc_safe_point, 300u);
  ASSERT_TRUE(gc.set_barrier(ks, "b", 400, 10, admin).has_value());
  const auto held = gc.advance_both(ks, 500);
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(held->gc_safe_point, 400u);
  ASSERT_EQ(held->barriers.size(), 1u);
  EXPECT_EQ(held->barriers[0].service, "b");
  const auto behind = gc.advance_both(ks, 100);
  ASSERT_TRUE(behind.has_value()) << "being behind is no error";
  EXPECT_EQ(behind->txn_safe_point, 400u);
  expect_points(*this, 400, 400);
  clock.advance_ms(10'000);
  EXPECT_EQ(gc.advance_both(ks, 500)->gc_safe_point, 500u);
  EXPECT_TRUE(entries(encode(KeyspaceServiceSafePointKey{ks, {}})).empty());
}

TEST_P(GcTest, BothCatchUpWithATxnSafePointThatWasMovedAlone) {
  ASSERT_TRUE(gc.advance_txn_safe_point(ks, 200, admin).has_value());
  const auto state = gc.advance_both(ks, 100);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->gc_safe_point, 200u);
}

TEST(GcLatched, WhatChangesNothingWritesNothing) {
  World world;
  ASSERT_TRUE(world.gc.advance_both(ks, 300).has_value());
  const uint64_t before = world.memory.last_ticket().value;
  ASSERT_TRUE(world.gc.advance_both(ks, 300).has_value());
  ASSERT_TRUE(world.gc.advance_txn_safe_point(ks, 300, admin).has_value());
  ASSERT_TRUE(world.gc.advance_gc_safe_point(ks, 300, admin).has_value());
  EXPECT_EQ(world.memory.last_ticket().value, before);
}

// --- barriers ---

TEST_P(GcTest, BarriersAreNotSetBehindTheTxnSafePoint) {
  ASSERT_TRUE(gc.advance_txn_safe_point(ks, 100, admin).has_value());
  expect_error(gc.set_barrier(ks, "b", 99, 10, admin), Code::refused, "barrier_behind");
  EXPECT_TRUE(gc.set_barrier(ks, "b", 100, 10, admin).has_value());
  expect_error(gc.set_barrier(ks, "b", 99, 10, admin), Code::refused, "barrier_behind");
  EXPECT_EQ(gc.load(ks)->barriers[0].safe_point, 100u);
}

TEST_P(GcTest, ABarrierIsMovedUpAndDownAndKeepsItsAge) {
  clock.advance_ms(1);
  const auto first = gc.set_barrier(ks, "b", 100, 10, admin);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->set_at_s, start_ms / 1000);
  EXPECT_EQ(first->expires_at_s, start_ms / 1000 + 11) << "rounded up: never shorter than asked";
  clock.advance_ms(4'999);
  const auto down = gc.set_barrier(ks, "b", 50, 20, admin);
  ASSERT_TRUE(down.has_value());
  EXPECT_EQ(down->set_at_s, start_ms / 1000);
  EXPECT_EQ(down->expires_at_s, start_ms / 1000 + 25);
  ASSERT_TRUE(gc.set_barrier(ks, "b", 150, never_expires, admin).has_value());
  ASSERT_EQ(gc.load(ks)->barriers.size(), 1u);
  EXPECT_EQ(gc.load(ks)->barriers[0].safe_point, 150u);
  EXPECT_EQ(gc.load(ks)->barriers[0].expires_at_s, never_expires);
  ASSERT_TRUE(gc.set_barrier(ks, "b", 150, 1, admin).has_value());
  clock.advance_ms(1'000);
  EXPECT_EQ(gc.set_barrier(ks, "b", 150, 1, admin)->set_at_s, start_ms / 1000 + 6)
      << "one that had expired is new";
}

TEST_P(GcTest, TimesToLive) {
  for (const uint64_t illegal : {uint64_t{0}, never_expires + 1, uint64_t{UINT64_MAX}})
    expect_error(gc.set_barrier(ks, "b", 1, illegal, admin), Code::invalid, "illegal_ttl");
  EXPECT_EQ(gc.set_barrier(ks, "b", 1, never_expires - 1, admin)->expires_at_s, never_expires);
  EXPECT_EQ(gc.set_barrier(ks, "b", 1, never_expires, admin)->expires_at_s, never_expires);
  clock.advance_ms(1'000'000'000'000);
  EXPECT_EQ(gc.load(ks)->barriers.size(), 1u);
}

TEST_P(GcTest, ServiceNames) {
  const std::string longest(128, 'x');
  for (const std::string& name : {std::string("b"), longest, std::string("a b~!\"\\")}) {
    ASSERT_TRUE(gc.set_barrier(ks, name, 1, 10, admin).has_value()) << name;
    EXPECT_EQ(gc.delete_barrier(ks, name, admin)->service, name);
  }
  for (const std::string& name :
       {std::string(), longest + "x", std::string("a/b"), std::string("a\n"),
        std::string("\xc3\xa4"), std::string(1, 0), std::string("\x7f")}) {
    expect_error(gc.set_barrier(ks, name, 1, 10, admin), Code::invalid, "illegal_service");
    expect_error(gc.delete_barrier(ks, name, admin), Code::invalid, "illegal_service");
  }
  expect_error(gc.set_barrier(ks, "gc_worker", 1, 10, admin), Code::invalid, "reserved_service");
  expect_error(gc.delete_barrier(ks, "gc_worker", admin), Code::invalid, "reserved_service");
}

TEST_P(GcTest, DeletedBarriersHoldNothing) {
  expect_error(gc.delete_barrier(ks, "b", admin), Code::not_found, "barrier_not_found");
  ASSERT_TRUE(gc.set_barrier(ks, "b", 100, 10, admin).has_value());
  expect_error(gc.delete_barrier(other, "b", admin), Code::not_found, "barrier_not_found");
  const auto deleted = gc.delete_barrier(ks, "b", admin);
  ASSERT_TRUE(deleted.has_value());
  EXPECT_EQ(deleted->safe_point, 100u);
  EXPECT_EQ(gc.advance_txn_safe_point(ks, 500, admin)->after, 500u);
  ASSERT_TRUE(gc.set_barrier(ks, "b", 600, 1, admin).has_value());
  clock.advance_ms(1000);
  expect_error(gc.delete_barrier(ks, "b", admin), Code::not_found, "barrier_not_found");
}

TEST_P(GcTest, BarriersAreListedLowestFirst) {
  for (const auto& [service, point] :
       std::map<std::string, uint64_t>{{"a", 30}, {"b", 10}, {"c", 20}, {"d", 10}})
    ASSERT_TRUE(gc.set_barrier(ks, service, point, 10, admin).has_value());
  std::string order;
  const auto state = gc.load(ks);
  ASSERT_TRUE(state.has_value());
  for (const Barrier& barrier : state->barriers) order += barrier.service;
  EXPECT_EQ(order, "bdca");
}

TEST_P(GcTest, ThereIsALimitThatExpiredOnesDoNotCountFor) {
  for (size_t i = 0; i < keyspace_barriers_max; i++) {
    const std::string service = "s" + std::to_string(i);
    put(encode(KeyspaceServiceSafePointKey{ks, service}),
        R"({"service_id":")" + service + R"(","safe_point":1,"expired_at":)" +
            std::to_string(start_ms / 1000 + (i == 0 ? 1 : 100)) + "}");
  }
  expect_error(gc.set_barrier(ks, "one more", 1, 10, admin), Code::too_large, "too_many_barriers");
  EXPECT_TRUE(gc.set_barrier(ks, "s5", 2, 100, admin).has_value()) << "that one is there";
  clock.advance_ms(1000);
  EXPECT_TRUE(gc.set_barrier(ks, "one more", 1, 10, admin).has_value());
  EXPECT_EQ(entries(encode(KeyspaceServiceSafePointKey{ks, {}})).size(), keyspace_barriers_max)
      << "what has expired is not kept beyond the limit";
}

// --- which keyspaces ---

TEST_P(GcTest, OnlyOfKeyspacesThatAreThere) {
  const KeyspaceId purged{10};
  store(purged, KeyspaceState::tombstone, 1);
  for (const KeyspaceId id : {KeyspaceId{9}, purged, KeyspaceId{0x1000000}, KeyspaceId{~0u}}) {
    SCOPED_TRACE(id.value);
    const std::string_view reason = "keyspace_not_found";
    expect_error(gc.load(id), Code::not_found, reason);
    expect_error(gc.advance_txn_safe_point(id, 1, admin), Code::not_found, reason);
    expect_error(gc.advance_gc_safe_point(id, 0, admin), Code::not_found, reason);
    expect_error(gc.advance_both(id, 1), Code::not_found, reason);
    expect_error(gc.set_barrier(id, "b", 1, 1, admin), Code::not_found, reason);
    expect_error(gc.delete_barrier(id, "b", admin), Code::not_found, reason);
    expect_error(gc.explain(id), Code::not_found, reason);
  }
}

TEST_P(GcTest, ATombstonesHoldsCanBeDeletedAndNothingElse) {
  ASSERT_TRUE(gc.set_barrier(ks, "b", 5, never_expires, admin).has_value());
  leave_note(ks, start_ms, 1);
  store(ks, KeyspaceState::tombstone);
  const std::string_view reason = "keyspace_not_found";
  expect_error(gc.advance_txn_safe_point(ks, 1, admin), Code::not_found, reason);
  expect_error(gc.advance_gc_safe_point(ks, 0, admin), Code::not_found, reason);
  expect_error(gc.advance_both(ks, 1), Code::not_found, reason);
  expect_error(gc.set_barrier(ks, "b", 6, 1, admin), Code::not_found, reason);
  EXPECT_EQ(gc.load(ks)->barriers.size(), 1u);
  EXPECT_TRUE(gc.explain(ks).has_value());
  ASSERT_TRUE(gc.delete_barrier(ks, "b", admin).has_value());
  EXPECT_TRUE(gc.load(ks)->barriers.empty());
  // Its burial goes on, and its garbage with it.
  const auto due = entries("\x04/keyspaces/due/");
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(decode<KeyspaceDueKey>(due.begin()->first)->job, DueJob::purge);
}

TEST_P(GcTest, DisabledAndArchivedKeyspacesAreCollectedToo) {
  for (const KeyspaceState state : {KeyspaceState::disabled, KeyspaceState::archived}) {
    store(ks, state);
    EXPECT_TRUE(gc.advance_both(ks, 1).has_value());
    EXPECT_TRUE(gc.set_barrier(ks, "b", 1, 1, admin).has_value());
  }
}

// --- who hears of it ---

TEST_P(GcTest, NewBarriersAndDeletionsAreLogged) {
  int woken = 0;
  const auto subscription = changes.subscribe([&] { woken++; });
  ASSERT_TRUE(gc.set_barrier(ks, "backup-7", 123, 3600, admin).has_value());
  ASSERT_TRUE(gc.set_barrier(ks, "backup-7", 124, 3600, admin).has_value());
  ASSERT_FALSE(gc.set_barrier(ks, "gc_worker", 124, 3600, admin).has_value());
  ASSERT_FALSE(gc.delete_barrier(ks, "cdc", admin).has_value());
  ASSERT_TRUE(gc.advance_both(ks, 1000).has_value());
  ASSERT_TRUE(gc.delete_barrier(ks, "backup-7", {Role::server_admin, "root"}).has_value());
  EXPECT_EQ(woken, 2);
  const auto log = changes.read(0, 10);
  ASSERT_TRUE(log.has_value());
  ASSERT_EQ(log->size(), 2u);
  EXPECT_EQ(log->at(0).actor, "ann");
  EXPECT_EQ(log->at(0).action, "gc.barrier");
  EXPECT_EQ(log->at(0).keyspace, ks);
  EXPECT_EQ(log->at(0).name, "tenant_7");
  EXPECT_EQ(log->at(0).detail, "backup-7 at 123 until 2026-11-15T05:00:00Z");
  EXPECT_FALSE(log->at(0).after.has_value());
  EXPECT_EQ(log->at(1).actor, "root");
  EXPECT_EQ(log->at(1).action, "gc.barrier.delete");
  EXPECT_EQ(log->at(1).detail, "backup-7 at 124 until 2026-11-15T05:00:00Z");
}

// What the log says of a hold is the least that it holds.
TEST_P(GcTest, AHoldThatEndsSoonerIsLogged) {
  ASSERT_TRUE(gc.set_barrier(ks, "backup-7", 123, 3600, admin).has_value());
  ASSERT_TRUE(gc.set_barrier(ks, "backup-7", 123, 7200, admin).has_value());
  EXPECT_EQ(changes.read(0, 10)->size(), 1u);
  ASSERT_TRUE(gc.set_barrier(ks, "backup-7", 124, 1, {Role::server_admin, "root"}).has_value());
  const auto log = changes.read(0, 10);
  ASSERT_EQ(log->size(), 2u);
  EXPECT_EQ(log->at(1).actor, "root");
  EXPECT_EQ(log->at(1).detail, "backup-7 at 124 until 2026-11-15T04:00:01Z");
}

TEST_P(GcTest, WhatCallersAdvanceIsLogged) {
  int woken = 0;
  const auto subscription = changes.subscribe([&] { woken++; });
  ASSERT_TRUE(gc.set_barrier(ks, "backup-7", 123, 3600, admin).has_value());
  ASSERT_TRUE(gc.advance_txn_safe_point(ks, 1000, admin).has_value());
  ASSERT_TRUE(gc.advance_txn_safe_point(ks, 1000, admin).has_value()) << "moves nothing";
  ASSERT_FALSE(gc.advance_txn_safe_point(ks, 1, admin).has_value());
  ASSERT_TRUE(gc.advance_gc_safe_point(ks, 100, {Role::server_admin, "root"}).has_value());
  ASSERT_TRUE(gc.advance_gc_safe_point(ks, 100, admin).has_value()) << "moves nothing";
  EXPECT_EQ(woken, 3);
  const auto log = changes.read(1, 10);
  ASSERT_TRUE(log.has_value());
  ASSERT_EQ(log->size(), 2u);
  EXPECT_EQ(log->at(0).actor, "ann");
  EXPECT_EQ(log->at(0).action, "gc.txn_safe_point");
  EXPECT_EQ(log->at(0).name, "tenant_7");
  EXPECT_EQ(log->at(0).detail, "0 -> 123");
  EXPECT_FALSE(log->at(0).after.has_value());
  EXPECT_EQ(log->at(1).actor, "root");
  EXPECT_EQ(log->at(1).action, "gc.safe_point");
  EXPECT_EQ(log->at(1).detail, "0 -> 100");
}

TEST_P(GcTest, TheCollectorHearsOfLoosenedHoldsUnderWhichGarbageWaits) {
  int woken = 0;
  gc.on_due([&] { woken++; });
  clock.advance_ms(61'234);
  const auto due = [&] { return entries("\x04/keyspaces/due/"); };
  ASSERT_TRUE(gc.set_barrier(ks, "b", 10, 100, admin).has_value());
  ASSERT_TRUE(gc.set_barrier(ks, "b", 20, 100, admin).has_value());
  ASSERT_TRUE(gc.delete_barrier(ks, "b", admin).has_value());
  leave_note(other, start_ms, 1);
  EXPECT_TRUE(due().empty()) << "nothing waits";

  leave_note(ks, start_ms + 99'999'999, 1);
  ASSERT_TRUE(gc.set_barrier(ks, "b", 20, 100, admin).has_value());
  ASSERT_TRUE(gc.set_barrier(ks, "b", 10, 100, admin).has_value());
  ASSERT_TRUE(gc.set_barrier(ks, "b", 10, 200, admin).has_value());
  EXPECT_TRUE(due().empty()) << "nothing was loosened";
  EXPECT_EQ(woken, 0);

  const std::map<Bytes, Bytes> wanted{
      {encode(KeyspaceDueKey{start_ms + 60'000, ks, DueJob::garbage, {}}), "\x01"}};
  const auto clear = [&] {
    Commit change;
    change.writes.remove(wanted.begin()->first);
    ASSERT_TRUE(commit(memory, change).has_value());
  };
  ASSERT_TRUE(gc.set_barrier(ks, "b", 11, 200, admin).has_value()) << "raised";
  EXPECT_EQ(due(), wanted);
  clear();
  ASSERT_TRUE(gc.set_barrier(ks, "b", 11, 5, admin).has_value()) << "shortened";
  EXPECT_EQ(due(), wanted);
  clear();
  ASSERT_TRUE(gc.delete_barrier(ks, "b", admin).has_value());
  EXPECT_EQ(due(), wanted);
  EXPECT_EQ(woken, 3);
  gc.on_due(nullptr);
  ASSERT_TRUE(gc.set_barrier(ks, "b", 11, 5, admin).has_value());
  ASSERT_TRUE(gc.delete_barrier(ks, "b", admin).has_value());
  EXPECT_EQ(woken, 3);
}

// --- the stored forms ---

TEST(GcRecords, AreWhatIsWrittenDown) {
  World world;
  ASSERT_TRUE(world.gc.set_barrier(ks, "backup-7", 9, 3600, admin).has_value());
  ASSERT_TRUE(world.gc.advance_both(ks, 7).has_value());
  EXPECT_EQ(world.stored("\x04/keyspaces/gc_safe_point/00000007"),
            R"({"keyspace_id":7,"safe_point":7})");
  EXPECT_EQ(world.stored("\x04/keyspaces/tidb/7/tidb/store/gcworker/saved_safe_point"), "7");
  EXPECT_EQ(world.stored("\x04/keyspaces/service_safe_point/00000007/backup-7"),
            R"({"service_id":"backup-7","expired_at":1794718800,"safe_point":9,"keyspace_id":7,)"
            R"("set_at":1794715200})");
  ASSERT_TRUE(world.gc.set_barrier(ks, "a\"\\", UINT64_MAX, never_expires, admin).has_value());
  EXPECT_EQ(world.stored("\x04/keyspaces/service_safe_point/00000007/a\"\\"),
            R"({"service_id":"a\"\\","expired_at":9223372036854775807,)"
            R"("safe_point":18446744073709551615,"keyspace_id":7,"set_at":1794715200})");
  EXPECT_EQ(world.gc.load(ks)->barriers[1].safe_point, UINT64_MAX);
}

TEST(GcRecords, OfPdAreRead) {
  World world;
  world.put("\x04/keyspaces/gc_safe_point/00000007", R"({"keyspace_id":7,"safe_point":3})");
  world.put("\x04/keyspaces/tidb/7/tidb/store/gcworker/saved_safe_point", "4");
  world.put("\x04/keyspaces/service_safe_point/00000007/br",
            R"({"service_id":"br","expired_at":9223372036854775807,"safe_point":5})");
  expect_points(world, 3, 4);
  EXPECT_EQ(world.gc.load(ks)->barriers[0].set_at_s, 0u);
  world.leave_note(ks, start_ms, 1);
  EXPECT_EQ(world.gc.explain(ks)->text,
            "held at 1970-01-01T00:00:00Z by br, of unknown age, 1 B waiting");
}

void expect_corrupt(World& world, ByteView key, ByteView value) {
  SCOPED_TRACE(quote(value));
  world.put(key, value);
  expect_error(world.gc.load(ks), Code::corrupt, "");
  expect_error(world.gc.explain(ks), Code::corrupt, "");
  expect_error(world.gc.advance_both(ks, 1), Code::corrupt, "");
}

TEST(GcRecords, NonsenseIsCorrupt) {
  {
    World world;
    for (const ByteView value :
         {"", "7", "{}", "[7]", "{\"safe_point\":7", "{\"safe_point\":\"7\"}",
          "{\"safe_point\":-7}", "{\"safe_point\":7.5}", "{\"safe_point\":1e3}",
          "{\"safe_point\":18446744073709551616}", "{\"safe_point\":7} x",
          "{\"keyspace_id\":8,\"safe_point\":7}", "{\"keyspace_id\":\"7\",\"safe_point\":7}"})
      expect_corrupt(world, "\x04/keyspaces/gc_safe_point/00000007", value);
  }
  {
    World world;
    for (const ByteView value : {"", "-1", "+1", " 1", "1 ", "x", "0x1", "18446744073709551616"})
      expect_corrupt(world, "\x04/keyspaces/tidb/7/tidb/store/gcworker/saved_safe_point", value);
  }
  World world;
  for (const ByteView value :
       {R"()", R"({})", R"({"service_id":"c","expired_at":1,"safe_point":1})",
        R"({"service_id":7,"expired_at":1,"safe_point":1})", R"({"service_id":"b","safe_point":1})",
        R"({"service_id":"b","expired_at":1})",
        R"({"service_id":"b","expired_at":-1,"safe_point":1})",
        R"({"service_id":"b","expired_at":1,"safe_point":1,"keyspace_id":8})",
        R"({"service_id":"b","expired_at":1,"safe_point":1,"set_at":"x"})"}) {
    expect_corrupt(world, "\x04/keyspaces/service_safe_point/00000007/b", value);
    expect_error(world.gc.set_barrier(ks, "c", 1, 1, admin), Code::corrupt, "");
    if (!value.starts_with(R"({"service_id":"c)")) {
      expect_error(world.gc.delete_barrier(ks, "b", admin), Code::corrupt, "");
    }
  }
}

TEST(GcRecords, AnyBytesAreReadOrRefused) {
  Random random(test_seed(31));
  const Bytes keys[] = {encode(KeyspaceGcSafePointKey{ks}), encode(KeyspaceTxnSafePointKey{ks}),
                        encode(KeyspaceServiceSafePointKey{ks, "b"})};
  const Bytes good[] = {
      R"({"keyspace_id":7,"safe_point":3})", "12345",
      R"({"service_id":"b","expired_at":1,"safe_point":9,"keyspace_id":7,"set_at":2})"};
  for (uint64_t round = 0; round < test_rounds(1000); round++) {
    World world;
    const size_t which = random.below(3);
    Bytes value = random.one_in(4) ? random.bytes(random.below(40)) : good[which];
    for (uint64_t changes = random.below(4); changes > 0 && !value.empty(); changes--)
      value[random.below(value.size())] = static_cast<char>(random.next() >> 56);
    world.put(keys[which], value);
    for (const auto& read : {world.gc.load(ks), world.gc.advance_both(ks, 1)}) {
      if (!read) {
        ASSERT_EQ(read.error().code, Code::corrupt) << quote(value);
      }
    }
  }
}

TEST(GcRecords, TheIntervalsHoldAllOfAKeyspaceAndNothingElse) {
  World world;
  for (const KeyspaceId id : {ks, other}) {
    ASSERT_TRUE(world.gc.set_barrier(id, "\x20", 9, 3600, admin).has_value());
    ASSERT_TRUE(world.gc.set_barrier(id, "~~~", 9, 3600, admin).has_value());
    ASSERT_TRUE(world.gc.advance_both(id, 7).has_value());
  }
  const auto before = world.entries("\x04");
  std::vector<std::pair<Bytes, Bytes>> intervals;
  append_gc_intervals(ks, intervals);
  Commit change;
  for (const auto& [begin, end] : intervals) change.writes.remove_range(begin, end);
  ASSERT_TRUE(commit(world.memory, change).has_value());
  EXPECT_EQ(world.entries("\x04").size(), before.size() - 4);
  expect_points(world, 0, 0);
  EXPECT_TRUE(world.gc.load(ks)->barriers.empty());
  expect_points(world, 7, 7, other);
  EXPECT_EQ(world.gc.load(other)->barriers.size(), 2u);
}

// --- explaining ---

TEST_P(GcTest, ExplainsWhyGarbageIsThere) {
  const auto text = [&] { return gc.explain(ks)->text; };
  EXPECT_EQ(text(), "nothing waits");
  leave_note(ks, start_ms + 1, 5);
  leave_note(other, start_ms, 5);
  EXPECT_EQ(text(), "nothing waits") << "not due yet";
  EXPECT_FALSE(gc.explain(ks)->oldest_due_ms.has_value());
  clock.advance_ms(1);
  EXPECT_EQ(text(), "1 note, 5 B waits: due, and will be collected soon");
  for (uint64_t i = 0; i < 11; i++) leave_note(ks, start_ms - i, 317);
  EXPECT_EQ(text(), "12 notes, 3.4 KiB wait: due, and will be collected soon");
  const auto soon = gc.explain(ks);
  EXPECT_EQ(soon->waiting_notes, 12u);
  EXPECT_EQ(soon->waiting_bytes, 11 * 317 + 5u);
  EXPECT_EQ(soon->oldest_due_ms, start_ms - 10);
  EXPECT_FALSE(soon->more);
  EXPECT_FALSE(soon->held_by.has_value());
}

TEST_P(GcTest, ExplainsWhatHoldsGarbage) {
  ASSERT_TRUE(gc.set_barrier(ks, "cdc", at(start_ms + 1000), never_expires, admin).has_value());
  ASSERT_TRUE(gc.set_barrier(ks, "backup-7", at(start_ms), never_expires, admin).has_value());
  leave_note(ks, start_ms - 1, 1);
  EXPECT_EQ(gc.explain(ks)->text, "1 note, 1 B waits: due, and will be collected soon")
      << "it became due before the barrier";
  leave_note(ks, start_ms, 2'254'857'830);
  const auto held = gc.explain(ks);
  EXPECT_EQ(held->text, "held at 2026-11-15T04:00:00Z by backup-7, 0 s old, 2.1 GiB waiting");
  ASSERT_TRUE(held->held_by.has_value());
  EXPECT_EQ(held->held_by->service, "backup-7");
  EXPECT_EQ(held->state.barriers.size(), 2u);
  for (const auto& [ms, age] : std::map<uint64_t, std::string>{{59'999, "59 s"},
                                                               {60'000, "1 min"},
                                                               {3'599'999, "59 min"},
                                                               {3 * 3'600'000 + 5, "3 h"},
                                                               {48 * 3'600'000ull, "2 d"}}) {
    clock.jump_to_ms(start_ms + ms);
    EXPECT_NE(gc.explain(ks)->text.find(", " + age + " old, "), std::string::npos) << age;
  }
}

TEST_P(GcTest, ExplainsABurial) {
  ASSERT_TRUE(gc.set_barrier(ks, "backup-7", at(start_ms), never_expires, admin).has_value());
  Commit data;
  data.writes.put(encode(RawKey{ks, "a"}), "value");
  data.writes.add(encode(CounterKey{ks, Model::raw, CounterName::bytes, 0}), 2'048);
  ASSERT_TRUE(commit(memory, data).has_value());
  EXPECT_EQ(gc.explain(ks)->text, "nothing waits");
  store(ks, KeyspaceState::tombstone);
  const auto held = gc.explain(ks);
  EXPECT_EQ(held->text, "held at 2026-11-15T04:00:00Z by backup-7, 0 s old, 2.0 KiB waiting");
  EXPECT_EQ(held->held_by->service, "backup-7");
  ASSERT_TRUE(gc.delete_barrier(ks, "backup-7", admin).has_value());
  EXPECT_EQ(gc.explain(ks)->text, "all of it is being removed, 2.0 KiB left");
}

TEST(GcExplain, StopsCountingSomewhere) {
  World world;
  Commit change;
  for (uint64_t i = 0; i < 100'001; i++)
    change.writes.put(encode(GarbageKey{ks, start_ms, Model::raw, std::to_string(i)}),
                      encode_garbage_value(1024));
  ASSERT_TRUE(commit(world.memory, change).has_value());
  EXPECT_EQ(world.gc.explain(ks)->text,
            "more than 100000 notes, more than 97.7 MiB wait: due, and will be collected soon");
  EXPECT_TRUE(world.gc.explain(ks)->more);
  world.clock.jump_to_ms(start_ms - 1);
  EXPECT_EQ(world.gc.explain(ks)->waiting_notes, 0u);
}

TEST(GcExplain, ANoteThatMakesNoSenseIsPassedOver) {
  World world;
  world.put(encode(GarbageKey{ks, start_ms, Model::raw, "t"}), "what");
  world.put(encode(GarbageKey{ks, 0, Model::raw, ""}).substr(0, 5), "what");
  EXPECT_EQ(world.gc.explain(ks)->text,
            "nothing waits; notes that make no sense and are passed over: 2");
  world.leave_note(ks, start_ms - 1, 10);
  EXPECT_EQ(world.gc.explain(ks)->waiting_notes, 1u);
  EXPECT_EQ(world.gc.explain(ks)->broken_notes, 2u);
}

TEST(GcExplain, ASafePointAheadOfTheClockIsTold) {
  World world;
  world.clock.jump_to_ms(start_ms + 3'600'000);
  ASSERT_TRUE(world.gc.advance_both(ks, at(start_ms + 3'600'000)).has_value());
  EXPECT_EQ(world.gc.explain(ks)->text, "nothing waits");
  world.clock.jump_to_ms(start_ms);
  EXPECT_TRUE(world.gc.explain(ks)->ahead_of_clock);
  EXPECT_EQ(world.gc.explain(ks)->text,
            "nothing waits; the txn safe point, 2026-11-15T05:00:00Z, is ahead of the server's "
            "clock, which is or was wrong: until then garbage goes as soon as it is due, and no "
            "hold can be set before that point");
}

// --- against a model ---

// What A4 says, in the simplest words.
struct GcModel {
  struct Hold {
    uint64_t point;
    uint64_t until_s;
  };
  uint64_t gc = 0;
  uint64_t txn = 0;
  std::map<std::string, Hold> holds;

  void forget_expired(uint64_t now_ms) {
    std::erase_if(holds, [&](const auto& hold) { return hold.second.until_s * 1000 <= now_ms; });
  }
  uint64_t allowed(uint64_t target) const {
    for (const auto& [service, hold] : holds) target = std::min(target, hold.point);
    return std::max(txn, target);
  }
};

void model_step(Random& random, World& world, GcModel& model) {
  const uint64_t point = random.below(200);
  const std::string service(1, static_cast<char>('a' + random.below(4)));
  model.forget_expired(world.clock.unix_ms());
  switch (random.below(6)) {
    case 0: {
      const auto done = world.gc.advance_txn_safe_point(ks, point, admin);
      ASSERT_EQ(done.has_value(), point >= model.txn);
      if (!done) break;
      ASSERT_EQ(done->before, model.txn);
      model.txn = model.allowed(point);
      ASSERT_EQ(done->after, model.txn);
      ASSERT_EQ(done->blocker.empty(), model.txn == point);
      break;
    }
    case 1: {
      const auto done = world.gc.advance_gc_safe_point(ks, point, admin);
      ASSERT_EQ(done.has_value(), point >= model.gc && point <= model.txn);
      if (done) model.gc = point;
      break;
    }
    case 2: {
      if (!random.one_in(3)) break;
      const auto done = world.gc.advance_both(ks, point);
      ASSERT_TRUE(done.has_value());
      model.gc = model.txn = model.allowed(point);
      break;
    }
    case 3: {
      const uint64_t ttl_s = 1 + random.below(5);
      const auto done = world.gc.set_barrier(ks, service, point, ttl_s, admin);
      ASSERT_EQ(done.has_value(), point >= model.txn);
      const uint64_t until_s = (world.clock.unix_ms() + 999) / 1000 + ttl_s;
      if (done) model.holds[service] = {point, until_s};
      break;
    }
    case 4: {
      const auto done = world.gc.delete_barrier(ks, service, admin);
      ASSERT_EQ(done.has_value(), model.holds.erase(service) == 1);
      break;
    }
    default: world.clock.advance_ms(random.below(1500));
  }
}

TEST_P(GcTest, DoesWhatTheModelDoes) {
  Random random(test_seed(32));
  for (uint64_t round = 0; round < test_rounds(40); round++) {
    World world(GetParam());
    GcModel model;
    for (int step = 0; step < 60; step++) {
      SCOPED_TRACE(round * 1000 + static_cast<uint64_t>(step));
      ASSERT_NO_FATAL_FAILURE(model_step(random, world, model));
      model.forget_expired(world.clock.unix_ms());
      const auto state = world.gc.load(ks);
      ASSERT_TRUE(state.has_value());
      ASSERT_EQ(state->gc_safe_point, model.gc);
      ASSERT_EQ(state->txn_safe_point, model.txn);
      ASSERT_EQ(state->barriers.size(), model.holds.size());
      for (const Barrier& barrier : state->barriers) {
        ASSERT_TRUE(model.holds.contains(barrier.service));
        ASSERT_EQ(barrier.safe_point, model.holds[barrier.service].point);
        ASSERT_EQ(barrier.expires_at_s, model.holds[barrier.service].until_s);
      }
    }
  }
}

// --- from many threads, on an engine that fails ---

// What one thread has seen of the keyspaces: nothing of it may ever go back.
class Observer {
 public:
  Observer(World& world, uint64_t seed) : world_(world), random_(seed) {}

  void run(uint64_t steps) {
    for (uint64_t i = 0; i < steps && !testing::Test::HasFailure(); i++) step();
  }
  uint64_t done() const { return done_; }

 private:
  template <class T>
  void note(const Result<T>& result) {
    if (result) {
      done_++;
      return;
    }
    const Code code = result.error().code;
    const bool expected = code == Code::refused || code == Code::not_found ||
                          code == Code::unavailable || code == Code::maybe ||
                          code == Code::conflict || result.error().reason == "safe_point_in_future";
    EXPECT_TRUE(expected) << to_string(result.error());
  }

  void observe(KeyspaceId id, const GcState& state) {
    auto& [gc, txn] = seen_[id];
    EXPECT_GE(state.gc_safe_point, gc);
    EXPECT_GE(state.txn_safe_point, txn);
    EXPECT_LE(state.gc_safe_point, state.txn_safe_point);
    for (const Barrier& barrier : state.barriers)
      EXPECT_GE(barrier.safe_point, state.txn_safe_point) << barrier.service;
    gc = state.gc_safe_point;
    txn = state.txn_safe_point;
  }

  void step() {
    const KeyspaceId id = random_.one_in(2) ? ks : other;
    const std::string service(1, static_cast<char>('a' + random_.below(3)));
    // Around where the safe points are, so that every rule is met.
    const uint64_t near = seen_[id].second + random_.below(40);
    const uint64_t point = near > 20 ? near - 10 : near;
    switch (random_.below(8)) {
      case 0: {
        const auto advance = world_.gc.advance_txn_safe_point(id, point, admin);
        note(advance);
        if (!advance) break;
        EXPECT_GE(advance->after, advance->before);
        EXPECT_GE(advance->before, seen_[id].second);
        EXPECT_EQ(advance->blocker.empty(), advance->after == point);
        seen_[id].second = advance->after;
        break;
      }
      case 1: {
        const auto advance = world_.gc.advance_gc_safe_point(id, point, admin);
        note(advance);
        if (!advance) break;
        EXPECT_GE(advance->before, seen_[id].first);
        seen_[id].first = advance->after;
        break;
      }
      case 2: {
        const auto state = world_.gc.advance_both(id, point);
        note(state);
        if (state) observe(id, *state);
        break;
      }
      case 3:
      case 4: note(world_.gc.set_barrier(id, service, point, 1 + random_.below(4), admin)); break;
      case 5: note(world_.gc.delete_barrier(id, service, admin)); break;
      case 6:
        if (random_.one_in(8))
          world_.clock.jump_to_ms(start_ms + random_.below(5000));
        else
          world_.clock.advance_ms(random_.below(500));
        break;
      default: {
        const auto state = world_.gc.load(id);
        note(state);
        if (state) observe(id, *state);
      }
    }
  }

  World& world_;
  Random random_;
  std::map<KeyspaceId, std::pair<uint64_t, uint64_t>> seen_;  // g, t
  uint64_t done_ = 0;
};

void run_threads(World& world, uint64_t seed, uint64_t steps) {
  std::vector<std::thread> threads;
  std::atomic<uint64_t> done{0};
  for (uint64_t i = 0; i < 4; i++) {
    threads.emplace_back([&, i] {
      Observer observer(world, seed + i);
      observer.run(steps);
      done += observer.done();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(done, steps / 2) << "too little was done to prove anything";
}

TEST_P(GcTest, HoldsFromManyThreads) { run_threads(*this, test_seed(33), test_rounds(2000)); }

TEST_P(GcTest, HoldsWhenTheEngineFails) {
  const uint64_t seed = test_seed(34);
  engine.set_options({.seed = seed,
                      .fail_read_one_in = 40,
                      .fail_commit_one_in = 20,
                      .conflict_one_in = 10,
                      .maybe_one_in = 20});
  run_threads(*this, seed, test_rounds(2000));
  EXPECT_GT(engine.counts().commits, 0u);
  EXPECT_GT(engine.counts().maybes_applied, 0u);
  // Whatever failed in between, the log has no gap.
  engine.set_options({});
  const auto log = changes.read(*changes.revision() > 1000 ? *changes.revision() - 1000 : 0, 1000);
  ASSERT_TRUE(log.has_value());
  for (size_t i = 1; i < log->size(); i++)
    ASSERT_EQ(log->at(i).revision, log->at(i - 1).revision + 1);
}

// Each transaction is there as a whole or not at all, wherever the process dies.
TEST_P(GcTest, ACrashLeavesAllOrNothing) {
  ASSERT_TRUE(gc.advance_both(ks, 100).has_value());
  leave_note(ks, start_ms, 1);
  for (const CrashPoint point : {CrashPoint::before_commit, CrashPoint::after_commit}) {
    ASSERT_TRUE(gc.set_barrier(ks, "b", 150, 100, admin).has_value());
    const uint64_t revision = *changes.revision();
    engine.crash_at(point, 1);
    ASSERT_FALSE(gc.delete_barrier(ks, "b", admin).has_value());
    engine.restart();
    const bool applied = gc.load(ks)->barriers.empty();
    EXPECT_EQ(*changes.revision(), revision + (applied ? 1 : 0));
    EXPECT_EQ(entries("\x04/keyspaces/due/").size(), applied ? 1u : 0u);
    EXPECT_EQ(applied, point == CrashPoint::after_commit);
  }
}

}  // namespace gc_test
}  // namespace trellis
