#include "range/id_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "engine/memory_engine.h"
#include "support/expect_ok.h"

namespace trellis {
namespace {

const Bytes range_generator_key("\x04range-idgen");

void store(Engine& engine, ByteView value) {
  Commit change;
  change.writes.put(range_generator_key, value);
  EXPECT_OK(commit(engine, change));
}

TEST(IdGenerator, CountsFromOneAndLeavesGapsAfterARestart) {
  MemoryEngine engine;
  {
    IdGenerator ids(engine, SystemKey::range_id_generator);
    for (uint64_t id = 1; id <= 13; id++) EXPECT_EQ(ids.next(), id);
  }
  Value value;
  EXPECT_OK(engine.get(range_generator_key, value));
  ASSERT_TRUE(value.found());
  EXPECT_EQ(to_hex(value.bytes()), "010000000000000014");
  IdGenerator ids(engine, SystemKey::range_id_generator);
  EXPECT_EQ(ids.next(), 21u);
  // Each kind counts for itself, and above what was in use without it.
  IdGenerator nodes(engine, SystemKey::node_id_generator, 1);
  EXPECT_EQ(nodes.next(), 2u);
}

TEST(IdGenerator, NoNumberComesTwiceAmongThreadsAndServers) {
  const auto store = std::make_shared<MemoryStore>();
  MemoryEngine engines[2] = {{store, MemoryEngine::Use::shared},
                             {store, MemoryEngine::Use::shared}};
  IdGenerator servers[2] = {{engines[0], SystemKey::range_id_generator},
                            {engines[1], SystemKey::range_id_generator}};
  constexpr size_t threads_count = 4;
  constexpr size_t each = 500;
  std::vector<uint64_t> given[threads_count];
  std::vector<std::thread> threads;
  for (size_t i = 0; i < threads_count; i++) {
    threads.emplace_back([&, i] {
      for (size_t n = 0; n < each; n++) {
        const Result<uint64_t> id = servers[i % 2].next();
        if (id.has_value()) given[i].push_back(*id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const std::vector<uint64_t>& ids : given) {
    EXPECT_EQ(ids.size(), each);
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
    all.insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(all.size(), threads_count * each);
  EXPECT_EQ(all.count(0), 0u);
}

TEST(IdGenerator, GoingBackIsAnErrorAndNotANumberGivenTwice) {
  MemoryEngine engine;
  IdGenerator ids(engine, SystemKey::range_id_generator);
  for (uint64_t i = 0; i < id_block; i++) EXPECT_OK(ids.next());
  store(engine, from_hex("010000000000000005").value());
  EXPECT_CODE(ids.next(), Code::corrupt);
}

TEST(IdGenerator, BadValues) {
  MemoryEngine engine;
  IdGenerator ids(engine, SystemKey::range_id_generator);
  for (const std::string_view hex : {"", "01", "020000000000000005", "01000000000000000500"}) {
    store(engine, from_hex(hex).value());
    EXPECT_CODE(ids.next(), Code::corrupt);
  }
  store(engine, from_hex("01fffffffffffffffe").value());
  EXPECT_CODE(ids.next(), Code::exhausted);
  store(engine, from_hex("010000000000000005").value());
  EXPECT_EQ(ids.next(), 6u);
}

}  // namespace
}  // namespace trellis
