#include "map/latches.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "base/random.h"
#include "codec/keyspace_keys.h"
#include "codec/system_keys.h"
#include "support/test_keyspace.h"

namespace trellis {
namespace {

Bytes raw_key(uint64_t number) { return encode(RawKey{ks, std::to_string(number)}); }

// Latches `scope` from another thread while `blocker` is held: it gets there by itself, or only
// once the blocker is gone.
void expect_free(LatchTable& table, const Scope& scope, std::optional<LatchTable::Held>& blocker,
                 bool free) {
  std::atomic<bool> got = false;
  std::thread other([&] {
    const LatchTable::Held held(table, scope);
    got = true;
    got.notify_all();
  });
  if (free) {
    got.wait(false);  // a latch that holds by mistake hangs here, and the test times out
  } else {
    // Not proof that it waits, but a latch that does not hold is found almost always.
    for (int i = 0; i < 2000 && !got; i++) std::this_thread::yield();
    EXPECT_FALSE(got);
  }
  blocker.reset();
  other.join();
}

TEST(Latches, ExclusiveKeepsOthersOutSharedDoesNot) {
  LatchTable table;
  Scope write = Scope::in(ks);
  write.exclusive(raw_key(1));
  Scope read = Scope::in(ks);
  read.shared(raw_key(1));
  const Scope all = Scope::all_of(ks);
  const Scope neighbour = Scope::all_of(KeyspaceId{8});
  // The same system key, named by somebody who holds a keyspace alone and by somebody else.
  const Bytes system_key = encode(KeyspaceRevisionKey{});
  Scope alone = Scope::all_of(ks);
  alone.exclusive(system_key);
  Scope system = Scope::system();
  system.exclusive(system_key);

  struct Case {
    const Scope& held;
    const Scope& wanted;
    bool free;
  };
  const Case cases[] = {{write, write, false},  {write, read, false},     {read, write, false},
                        {read, read, true},     {all, read, false},       {read, all, false},
                        {all, all, false},      {write, neighbour, true}, {all, neighbour, true},
                        {alone, system, false}, {system, alone, false}};
  for (const Case& c : cases) {
    std::optional<LatchTable::Held> held;
    held.emplace(table, c.held);
    SCOPED_TRACE(&c - cases);
    expect_free(table, c.wanted, held, c.free);
  }
}

TEST(Latches, WhoOnlyTriesGetsAllOrNone) {
  using Patience = LatchTable::Held::Patience;
  LatchTable table;
  Scope one = Scope::in(ks);
  one.exclusive(raw_key(1));
  Scope both = Scope::in(ks);
  both.exclusive(raw_key(1)).exclusive(raw_key(2));
  Scope other = Scope::in(ks);
  other.exclusive(raw_key(2));
  {
    const LatchTable::Held held(table, one);
    EXPECT_FALSE(LatchTable::Held(table, both, Patience::tries).has_all());
    EXPECT_TRUE(LatchTable::Held(table, other, Patience::tries).has_all());  // nothing was kept
    EXPECT_FALSE(LatchTable::Held(table, Scope::all_of(ks), Patience::tries).has_all());
  }
  const LatchTable::Held held(table, both, Patience::tries);
  EXPECT_TRUE(held.has_all());
  EXPECT_FALSE(LatchTable::Held(table, one, Patience::tries).has_all());
}

// Each would take 100 us: a loop that tries must not lose that with every command.
TEST(Latches, TriesAreShortWhileOneIsHeldForLong) {
  LatchTable table;
  const Scope all = Scope::all_of(KeyspaceId{7});
  const auto began = std::chrono::steady_clock::now();
  {
    const LatchTable::Held held(table, all);
    for (int i = 0; i < 30'000; i++)
      ASSERT_FALSE(LatchTable::Held(table, all, LatchTable::Held::Patience::tries).has_all());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  EXPECT_TRUE(LatchTable::Held(table, all, LatchTable::Held::Patience::tries).has_all());
}

TEST(Latches, ReleaseLetsOthersIn) {
  LatchTable table;
  Scope scope = Scope::in(ks);
  scope.exclusive(raw_key(1));
  LatchTable::Held held(table, scope);
  held.release();
  std::optional<LatchTable::Held> none;
  expect_free(table, scope, none, true);
}

// Many keys per scope, so that names share stripes and orders differ: nobody may wait in a circle,
// and increments under an exclusive latch may not get lost.
TEST(Latches, NoDeadlockAndNoLostIncrement) {
  LatchTable table;
  constexpr uint64_t keys = 64;
  constexpr int rounds = 3000;
  std::vector<uint64_t> counters(keys);
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; seed++)
    threads.emplace_back([&, seed] {
      Random random(seed);
      for (int round = 0; round < rounds; round++) {
        Scope scope = Scope::in(ks);
        const uint64_t written = random.below(keys);
        for (int i = 0; i < 5; i++) scope.shared(raw_key(random.below(keys)));
        scope.exclusive(raw_key(written));
        const LatchTable::Held held(table, scope);
        counters[written]++;
      }
    });
  for (std::thread& thread : threads) thread.join();
  uint64_t sum = 0;
  for (uint64_t counter : counters) sum += counter;
  EXPECT_EQ(sum, 4u * rounds);
}

// A steady load of transactions in a keyspace must not keep a flush of it out.
TEST(Latches, TheWholeKeyspaceGetsItsTurn) {
  LatchTable table;
  std::atomic<bool> stop = false;
  std::atomic<int> running = 0;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; i++)
    threads.emplace_back([&, i] {
      Scope scope = Scope::in(ks);
      scope.exclusive(raw_key(i));
      while (!stop) {
        const LatchTable::Held held(table, scope);
        running++;
        // Somebody always holds the keyspace: each waits for another before it lets go.
        for (int turn = 0; turn < 1000 && running < 2 && !stop; turn++) std::this_thread::yield();
        running--;
      }
    });
  for (int flush = 0; flush < 20; flush++) const LatchTable::Held held(table, Scope::all_of(ks));
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace trellis
