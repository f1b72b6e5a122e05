#include "engine/memory_engine.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "codec/counter_value.h"

namespace trellis {
namespace {

void put(Engine& engine, ByteView key, ByteView value,
         Durability durability = Durability::everysec) {
  Commit wanted;
  wanted.writes.put(key, value);
  wanted.durability = durability;
  const Status status = commit(engine, wanted);
  ASSERT_TRUE(status.has_value()) << to_string(status.error());
}

std::optional<Bytes> get(Engine& engine, ByteView key) {
  Value value;
  const Status status = engine.get(key, value);
  EXPECT_TRUE(status.has_value());
  if (!value.found()) return std::nullopt;
  return Bytes(value.bytes());
}

Bytes numbered(uint64_t number) {
  Bytes key = "k";
  append_be16(key, static_cast<uint16_t>(number));
  return key;
}

TEST(MemoryEngine, HandlesShareOneStore) {
  auto store = std::make_shared<MemoryStore>();
  MemoryEngine one(store, MemoryEngine::Use::shared);
  MemoryEngine two(store, MemoryEngine::Use::shared);
  EXPECT_TRUE(one.shared());
  EXPECT_FALSE(MemoryEngine().shared());
  put(one, "k", "1");
  EXPECT_EQ(get(two, "k"), "1");
  Value value;
  ASSERT_TRUE(one.get("k", value).has_value());
  put(two, "k", "2");
  Commit stale;
  stale.writes.put("k", "3");
  stale.expectations.push_back({"k", std::nullopt, one.evidence(value)});
  const Status status = commit(one, stale);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::conflict);
  EXPECT_EQ(get(one, "k"), "2");
}

TEST(MemoryEngine, AVisitorKeepsNobodyFromWriting) {
  auto store = std::make_shared<MemoryStore>();
  MemoryEngine reader(store, MemoryEngine::Use::shared);
  MemoryEngine writer(store, MemoryEngine::Use::shared);
  put(writer, "a", "1");
  put(writer, "b", "1");
  std::vector<Bytes> seen;
  const auto page = reader.scan({.begin = "a", .end = "z"}, [&](ByteView key, ByteView value) {
    std::thread([&] { put(writer, "b", "2"); }).join();  // would deadlock under the store's lock
    seen.push_back(Bytes(key) + Bytes(value));
    return Visit::go_on;
  });
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(seen, (std::vector<Bytes>{"a1", "b1"}));  // one instant all the same
}

// The evidence of a page tells entries apart that run together as bytes.
TEST(MemoryEngine, EvidenceOfAPageIsExact) {
  MemoryEngine engine;
  put(engine, "a", "bc");
  const auto page = engine.scan({.begin = "a", .end = "z", .want_evidence = true},
                                [](ByteView, ByteView) { return Visit::go_on; });
  ASSERT_TRUE(page.has_value());
  Commit moved;
  moved.writes.remove("a");
  moved.writes.put("ab", "c");
  ASSERT_TRUE(commit(engine, moved).has_value());
  Commit stale;
  stale.expectations.push_back({"a", "z", page->evidence});
  EXPECT_FALSE(commit(engine, stale).has_value());
}

TEST(MemoryStore, ACrashKeepsAPrefixAndWhatIsDurable) {
  std::set<uint64_t> lengths;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    SCOPED_TRACE(seed);
    auto store = std::make_shared<MemoryStore>(MemoryStore::Crashable::yes);
    MemoryEngine engine(store, MemoryEngine::Use::alone);
    for (uint64_t i = 0; i < 10; i++) put(engine, numbered(i), "v", Durability::off);
    ASSERT_TRUE(engine.wait_durable(engine.last_ticket()).has_value());
    for (uint64_t i = 10; i < 20; i++) put(engine, numbered(i), "v", Durability::off);
    Random random(seed);
    const auto report = store->crash(random);
    EXPECT_EQ(report.kept + report.dropped, 10u);
    MemoryEngine again(store, MemoryEngine::Use::alone);
    for (uint64_t i = 0; i < 20; i++) {
      EXPECT_EQ(get(again, numbered(i)).has_value(), i < 10 + report.kept) << i;
    }
    lengths.insert(report.kept);
  }
  EXPECT_EQ(lengths.size(), 11u);  // every prefix came up
}

const Bytes counter("x\0\0\1kc", 6);
const BlockId block{KeyspaceId{1}, DataId{1}, 0};

void write_durable_state(Engine& engine) {
  const BlockWrite whole{block, std::nullopt, "whole"};
  ASSERT_TRUE(engine.blocks().write({&whole, 1}).has_value());
  Commit base;
  base.writes.put("a", "1");
  base.writes.put("b", "1");
  base.writes.put(counter, encode_counter_value(5));
  base.durability = Durability::always;
  ASSERT_TRUE(commit(engine, base).has_value());
}

void write_undurable_state(Engine& engine) {
  Commit lost;
  lost.writes.put("a", "2");
  lost.writes.put("a", "3");
  lost.writes.remove_range("a", "c");
  lost.writes.put("c", "4");
  lost.writes.add(counter, 1);
  ASSERT_TRUE(commit(engine, lost).has_value());
  const BlockWrite patch{block, 1, "XX"};
  ASSERT_TRUE(engine.blocks().write({&patch, 1}).has_value());
  ASSERT_TRUE(engine.blocks().remove(KeyspaceId{1}, DataId{1}, 0, 9).has_value());
}

TEST(MemoryStore, ACrashTakesBackEveryKindOfWrite) {
  size_t checked = 0;
  for (uint64_t seed = 1; seed <= 50; seed++) {
    SCOPED_TRACE(seed);
    auto store = std::make_shared<MemoryStore>(MemoryStore::Crashable::yes);
    MemoryEngine before(store, MemoryEngine::Use::alone);
    write_durable_state(before);
    write_undurable_state(before);
    Random random(seed);
    if (store->crash(random).kept != 0) continue;
    checked++;
    MemoryEngine after(store, MemoryEngine::Use::alone);
    EXPECT_EQ(get(after, "a"), "1");
    EXPECT_EQ(get(after, "b"), "1");
    EXPECT_EQ(get(after, "c"), std::nullopt);
    EXPECT_EQ(get(after, counter), encode_counter_value(5));
    Value value;
    ASSERT_TRUE(after.blocks().read({&block, 1}, {&value, 1}).has_value());
    ASSERT_TRUE(value.found());
    EXPECT_EQ(value.bytes(), "whole");
  }
  EXPECT_GT(checked, 0u);
}

TEST(MemoryStore, AHandleFromBeforeTheCrashAnswersNothing) {
  auto store = std::make_shared<MemoryStore>(MemoryStore::Crashable::yes);
  MemoryEngine before(store, MemoryEngine::Use::alone);
  put(before, "k", "v", Durability::always);
  Random random(1);
  store->crash(random);
  Value value;
  ASSERT_FALSE(before.get("k", value).has_value());
  Commit late;
  late.writes.put("late", "v");
  EXPECT_FALSE(commit(before, late).has_value());
  EXPECT_FALSE(before.wait_durable(before.last_ticket()).has_value());
  MemoryEngine after(store, MemoryEngine::Use::alone);
  EXPECT_EQ(get(after, "k"), "v");
  EXPECT_EQ(get(after, "late"), std::nullopt);
}

}  // namespace
}  // namespace trellis
