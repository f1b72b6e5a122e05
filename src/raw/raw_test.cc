#include "raw/raw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "codec/system_keys.h"
#include "engine/memory_engine.h"
#include "support/expect_ok.h"
#include "support/recording_engine.h"

namespace trellis {
namespace {

constexpr uint64_t start_ms = 1'700'000'000'000;
constexpr KeyspaceId ours{7};
constexpr KeyspaceId next_to_ours{8};

Keyspace keyspace_of(KeyspaceId id) {
  Keyspace keyspace;
  keyspace.id = id;
  keyspace.name = "test";
  return keyspace;
}

using Pairs = std::vector<std::pair<Bytes, Bytes>>;

// One note; whether it is gone.
Result<bool> collect(Raw& raw, Tenant& tenant, uint64_t due_ms, ByteView target) {
  const Garbage note{.due_ms = due_ms, .target = Bytes(target)};
  TRY_ASSIGN(const size_t gone, raw.collect(tenant, {&note, 1}));
  return gone == 1;
}

RawOperation put_op(ByteView key, ByteView value, uint64_t ttl_ms = 0,
                    RawCondition condition = {}) {
  return {RawOperation::Kind::put, key, value, ttl_ms, std::move(condition)};
}
RawOperation remove_op(ByteView key, RawCondition condition = {}) {
  return {RawOperation::Kind::remove, key, {}, 0, std::move(condition)};
}

class RawTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const KeyspaceId id : {ours, next_to_ours}) store_keyspace(keyspace_of(id));
  }

  void store_keyspace(const Keyspace& keyspace) {
    Commit one;
    one.writes.put(encode(KeyspaceMetaKey{keyspace.id}), encode_keyspace(keyspace));
    ASSERT_OK(commit(memory_, one));
  }

  // Our own, as an admin would.
  void change_keyspace(const Keyspace& keyspace) {
    store_keyspace(keyspace);
    tenant_.doubt(keyspace.state);
  }

  Status put(ByteView key, ByteView value, const RawPut& options = {}) {
    return raw_.put(tenant_, writer_, key, value, options);
  }
  std::optional<Bytes> get(ByteView key) {
    auto entry = raw_.get(tenant_, writer_, key);
    EXPECT_OK(entry);
    if (!entry || !*entry) return std::nullopt;
    return Bytes((*entry)->value());
  }
  Result<bool> remove(ByteView key, const RawCondition& condition = {}) {
    return raw_.remove(tenant_, writer_, key, condition);
  }
  Result<RawSwap> swap(ByteView key, std::optional<ByteView> expected,
                       std::optional<ByteView> desired, uint64_t ttl_ms = 0) {
    return raw_.compare_and_set(tenant_, writer_, key, expected, desired, ttl_ms);
  }
  Status batch(const std::vector<RawOperation>& operations) {
    return raw_.batch(tenant_, writer_, operations);
  }

  RawPage page(const RawScan& scan, Pairs& pairs) {
    auto result = raw_.scan(tenant_, writer_, scan, [&](ByteView key, ByteView value, uint64_t) {
      pairs.emplace_back(key, value);
      return Visit::go_on;
    });
    EXPECT_OK(result);
    return result ? *result : RawPage();
  }
  // All pages, joined; how many there were is in pages_.
  Pairs scan(RawScan scan) {
    Pairs pairs;
    Bytes bound;
    for (pages_ = 1;; pages_++) {
      const size_t before = pairs.size();
      const RawPage one = page(scan, pairs);
      EXPECT_EQ(one.entries, pairs.size() - before);
      EXPECT_LE(one.entries, scan.limit);
      if (!one.resume) return pairs;
      EXPECT_FALSE(one.resume->empty());
      bound = *one.resume;
      (scan.reverse ? scan.end : scan.begin) = bound;
    }
  }
  std::string keys_of(const RawScan& scan_of) {
    std::string keys;
    for (const auto& [key, value] : scan(scan_of)) keys += (keys.empty() ? "" : " ") + key;
    return keys;
  }

  // The notes that the collector would find, by due time and key.
  std::set<std::pair<uint64_t, Bytes>> notes() {
    std::set<std::pair<uint64_t, Bytes>> found;
    Bytes prefix;
    append_keyspace_prefix(prefix, KeyMode::txn, ours);
    prefix += 'g';
    EXPECT_OK(
        memory_.scan({.begin = prefix, .end = prefix_end(prefix)}, [&](ByteView key, ByteView) {
          const auto note = decode<GarbageKey>(key);
          EXPECT_OK(note);
          EXPECT_EQ(note->model, Model::raw);
          found.emplace(note->due_ms, note->target);
          return Visit::go_on;
        }));
    return found;
  }
  // What is counted, which must be what is there.
  Figures figures() {
    const auto counted = tenant_.figures();
    const auto stored = stored_figures(memory_, ours);
    const auto there = recount(memory_, ours);
    EXPECT_OK(counted);
    EXPECT_OK(stored);
    EXPECT_OK(there);
    EXPECT_EQ(counted->bytes, there->bytes);
    EXPECT_EQ(counted->keys, there->keys);
    EXPECT_EQ(*stored, *there);
    return *there;
  }

  const Caller writer_{Role::write, "writer"};
  MemoryEngine memory_;
  RecordingEngine engine_{memory_};
  FakeClock clock_{start_ms};
  Transactor transactor_{engine_, clock_, {.way = std::nullopt, .check_scope = true, .seed = 1}};
  const MapHandle map_{engine_, transactor_, clock_};
  Tenant tenant_{map_, ours};
  Tenant neighbour_{map_, next_to_ours};
  Raw raw_;
  size_t pages_ = 0;
};

using Notes = std::set<std::pair<uint64_t, Bytes>>;

// --- one key ---

TEST_F(RawTest, GivesBackWhatWasPut) {
  const Bytes binary("\0\xff\x01", 3);
  for (const ByteView value : {ByteView("v"), ByteView(), ByteView(binary)}) {
    EXPECT_OK(put("k", value));
    EXPECT_EQ(get("k"), value);
    EXPECT_OK(put(binary, value));
    EXPECT_EQ(get(binary), value);
  }
  EXPECT_EQ(get("other"), std::nullopt);
  EXPECT_EQ(figures().keys, 2);
}

TEST_F(RawTest, AnEntryCanBeMovedAndOutlivesTheNextWrite) {
  ASSERT_OK(put("k", "first", {.ttl_ms = 5}));
  auto found = raw_.get(tenant_, writer_, "k");
  ASSERT_OK(found);
  std::vector<RawEntry> entries;
  entries.push_back(std::move(**found));
  for (int i = 0; i < 10; i++) {
    auto another = raw_.get(tenant_, writer_, "k");
    ASSERT_OK(another);
    entries.push_back(std::move(**another));  // the vector grows and moves what it holds
  }
  ASSERT_OK(put("k", "second"));
  for (const RawEntry& entry : entries) {
    EXPECT_EQ(entry.value(), "first");
    EXPECT_EQ(entry.expires_at_ms(), start_ms + 5);
  }
}

TEST_F(RawTest, RemoveSaysWhetherItWasThere) {
  ASSERT_OK(put("k", "v"));
  EXPECT_EQ(*remove("k"), true);
  EXPECT_EQ(*remove("k"), false);
  EXPECT_EQ(get("k"), std::nullopt);
  EXPECT_EQ(figures(), Figures());
}

TEST_F(RawTest, MultiGetAnswersInTheOrderOfItsKeys) {
  ASSERT_OK(put("a", "1"));
  ASSERT_OK(put("b", "2", {.ttl_ms = 9}));
  ASSERT_OK(put("c", "3", {.ttl_ms = 1}));
  clock_.advance_ms(1);
  const ByteView keys[] = {"b", "none", "a", "c", "b"};
  const auto entries = raw_.multi_get(tenant_, writer_, keys);
  ASSERT_OK(entries);
  ASSERT_EQ(entries->size(), 5u);
  EXPECT_EQ((*entries)[0]->value(), "2");
  EXPECT_EQ((*entries)[0]->expires_at_ms(), start_ms + 9);
  EXPECT_FALSE((*entries)[1].has_value());
  EXPECT_EQ((*entries)[2]->value(), "1");
  EXPECT_EQ((*entries)[2]->expires_at_ms(), 0u);
  EXPECT_FALSE((*entries)[3].has_value());
  EXPECT_EQ((*entries)[4]->value(), "2");
  EXPECT_TRUE(raw_.multi_get(tenant_, writer_, {})->empty());
}

TEST_F(RawTest, LimitsAreKeptAndReached) {
  const Bytes longest(raw_key_bytes_max, 'k');
  const Bytes too_long(raw_key_bytes_max + 1, 'k');
  const Bytes largest(raw_value_bytes_max, 'v');
  const Bytes too_large(raw_value_bytes_max + 1, 'v');
  EXPECT_OK(put(longest, largest, {.ttl_ms = 5}));
  EXPECT_EQ(get(longest), largest);
  EXPECT_EQ(notes(), (Notes{{start_ms + 5, longest}}));
  EXPECT_REASON(put("k", too_large), Code::too_large, "value_too_large");
  EXPECT_REASON(swap("k", std::nullopt, too_large), Code::too_large, "value_too_large");

  const auto expect_refused = [&](ByteView key, Code code, std::string_view reason) {
    EXPECT_REASON(put(key, "v"), code, reason);
    EXPECT_REASON(raw_.get(tenant_, writer_, key), code, reason);
    EXPECT_REASON(remove(key), code, reason);
    EXPECT_REASON(swap(key, std::nullopt, "v"), code, reason);
    EXPECT_REASON(batch({put_op("k", "v"), put_op(key, "v")}), code, reason);
    const ByteView keys[] = {"k", key};
    EXPECT_REASON(raw_.multi_get(tenant_, writer_, keys), code, reason);
  };
  expect_refused("", Code::invalid, "empty_key");
  expect_refused(too_long, Code::too_large, "key_too_large");
  const std::vector<ByteView> many(raw_multi_get_keys_max + 1, "k");
  EXPECT_REASON(raw_.multi_get(tenant_, writer_, many), Code::too_large, "too_many_keys");
  EXPECT_EQ(figures().keys, 1);
}

TEST_F(RawTest, StoredBytesThatMakeNoSenseAreNamed) {
  Commit one;
  one.writes.put(encode(RawKey{ours, "bad"}), "\x09");
  ASSERT_OK(commit(memory_, one));
  const auto got = raw_.get(tenant_, writer_, "bad");
  EXPECT_CODE(got, Code::corrupt);
  EXPECT_NE(got.error().message.find("\"bad\""), std::string::npos) << got.error().message;
  EXPECT_CODE(put("bad", "v"), Code::corrupt);
  EXPECT_CODE(remove("bad"), Code::corrupt);
  EXPECT_CODE(
      raw_.scan(tenant_, writer_, {}, [](ByteView, ByteView, uint64_t) { return Visit::go_on; }),
      Code::corrupt);
}

TEST_F(RawTest, TheTenantDecidesWhoMayDoWhat) {
  const Caller reader{Role::read, "reader"};
  ASSERT_OK(put("k", "v"));
  EXPECT_OK(raw_.get(tenant_, reader, "k"));
  EXPECT_CODE(raw_.put(tenant_, reader, "k", "w"), Code::denied);
  EXPECT_CODE(raw_.remove(tenant_, reader, "k"), Code::denied);
  EXPECT_CODE(raw_.compare_and_set(tenant_, reader, "k", "v", "w"), Code::denied);
  const RawOperation operation = put_op("k", "w");
  EXPECT_CODE(raw_.batch(tenant_, reader, {&operation, 1}), Code::denied);
  EXPECT_EQ(get("k"), "v");

  Keyspace disabled = keyspace_of(ours);
  disabled.state = KeyspaceState::disabled;
  change_keyspace(disabled);
  EXPECT_CODE(raw_.get(tenant_, reader, "k"), Code::denied);
  EXPECT_CODE(
      raw_.scan(tenant_, reader, {}, [](ByteView, ByteView, uint64_t) { return Visit::go_on; }),
      Code::denied);
}

TEST_F(RawTest, AQuotaIsOfStoredBytesNotesIncluded) {
  ASSERT_OK(put("k", "v"));
  const auto used = static_cast<uint64_t>(figures().bytes);
  const uint64_t plain = 4 + 1 + 1 + 1;          // 'r' keyspace, key, format, value
  const uint64_t expiring = plain + 8 + 15 + 9;  // expiry, key and value of the note
  Keyspace limited = keyspace_of(ours);
  limited.quota.bytes = used + expiring - 1;
  change_keyspace(limited);
  EXPECT_CODE(put("a", "v", {.ttl_ms = 5}), Code::exhausted);
  EXPECT_EQ(notes(), Notes());
  EXPECT_EQ(get("a"), std::nullopt);
  EXPECT_OK(put("a", "v"));
  EXPECT_EQ(static_cast<uint64_t>(figures().bytes), used + plain);
}

// --- time ---

TEST_F(RawTest, ExpiresInItsMillisecond) {
  ASSERT_OK(put("k", "v", {.ttl_ms = 10}));
  ASSERT_OK(put("stays", "v"));
  const ByteView key = "k";
  clock_.advance_ms(9);
  EXPECT_EQ(get("k"), "v");
  EXPECT_EQ(keys_of({}), "k stays");
  EXPECT_REASON(put("k", "w", {.condition = RawCondition::must_be_absent()}), Code::refused,
                "condition_failed");

  clock_.advance_ms(1);
  EXPECT_EQ(get("k"), std::nullopt);
  EXPECT_FALSE((*raw_.multi_get(tenant_, writer_, {&key, 1}))[0].has_value());
  EXPECT_EQ(keys_of({}), "stays");
  EXPECT_REASON(put("k", "w", {.condition = RawCondition::must_exist()}), Code::refused,
                "condition_failed");
  EXPECT_REASON(put("k", "w", {.condition = RawCondition::must_equal(raw_tag("v"))}), Code::refused,
                "condition_failed");
  EXPECT_EQ(swap("k", "v", "w")->done, false);
  EXPECT_FALSE(swap("k", "v", "w")->current.has_value());
  EXPECT_EQ(figures().keys, 2) << "it is stored until it is collected";
  EXPECT_EQ(*remove("k"), false);
  EXPECT_EQ(figures().keys, 1);
  EXPECT_EQ(notes(), Notes());
}

TEST_F(RawTest, AnEntryWithATtlHasOneNote) {
  ASSERT_OK(put("k", "v", {.ttl_ms = 10}));
  EXPECT_EQ(notes(), (Notes{{start_ms + 10, "k"}}));
  ASSERT_OK(put("k", "w", {.ttl_ms = 10}));  // the same note again
  EXPECT_EQ(notes(), (Notes{{start_ms + 10, "k"}}));
  figures();
  ASSERT_OK(put("k", "w", {.ttl_ms = 20}));
  EXPECT_EQ(notes(), (Notes{{start_ms + 20, "k"}}));
  ASSERT_OK(put("k", "w"));
  EXPECT_EQ(notes(), Notes());
  EXPECT_EQ(swap("k", "w", "x", 30)->done, true);
  EXPECT_EQ(notes(), (Notes{{start_ms + 30, "k"}}));
  EXPECT_EQ(swap("k", "x", std::nullopt)->done, true);
  EXPECT_EQ(notes(), Notes());
  ASSERT_OK(batch({put_op("k", "1", 5), put_op("k", "2", 6), put_op("l", "3", 7), remove_op("l")}));
  EXPECT_EQ(notes(), (Notes{{start_ms + 6, "k"}}));
  figures();
  EXPECT_EQ(*remove("k"), true);
  EXPECT_EQ(notes(), Notes());
  EXPECT_EQ(figures(), Figures());
}

TEST_F(RawTest, ReplacingWhatHasExpiredMakesNoKey) {
  ASSERT_OK(put("k", "v", {.ttl_ms = 10}));
  clock_.advance_ms(10);
  EXPECT_OK(put("k", "w", {.condition = RawCondition::must_be_absent()}));
  EXPECT_EQ(figures().keys, 1);
  EXPECT_EQ(notes(), Notes());
  EXPECT_EQ(get("k"), "w");
}

TEST_F(RawTest, ATtlThatNeverEndsIsRefused) {
  const uint64_t longest = raw_expires_at_ms_max - start_ms;
  EXPECT_OK(put("k", "v", {.ttl_ms = longest}));
  EXPECT_EQ(notes(), (Notes{{raw_expires_at_ms_max, "k"}}));
  for (const uint64_t ttl : {longest + 1, UINT64_MAX - start_ms, UINT64_MAX}) {
    EXPECT_REASON(put("a", "v", {.ttl_ms = ttl}), Code::invalid, "ttl_too_large");
    EXPECT_REASON(swap("a", std::nullopt, "v", ttl), Code::invalid, "ttl_too_large");
    EXPECT_REASON(batch({put_op("a", "v", ttl)}), Code::invalid, "ttl_too_large");
  }
  EXPECT_EQ(get("a"), std::nullopt);
  clock_.jump_to_ms(UINT64_MAX);
  EXPECT_REASON(put("a", "v", {.ttl_ms = 1}), Code::invalid, "ttl_too_large");
}

TEST_F(RawTest, CollectsWhatHasExpired) {
  ASSERT_OK(put("k", "v", {.ttl_ms = 10}));
  ASSERT_OK(put("stays", "v", {.ttl_ms = 11}));
  clock_.advance_ms(10);
  EXPECT_EQ(*collect(raw_, tenant_, start_ms + 10, "k"), true);
  EXPECT_EQ(notes(), (Notes{{start_ms + 11, "stays"}}));
  EXPECT_EQ(figures().keys, 1);
  EXPECT_EQ(*collect(raw_, tenant_, start_ms + 10, "k"), true) << "again does no harm";
  EXPECT_EQ(figures().keys, 1);
}

TEST_F(RawTest, CollectsNothingThatHasChanged) {
  ASSERT_OK(put("k", "v", {.ttl_ms = 10}));
  clock_.advance_ms(10);
  // The collector has read the note; before it comes to the entry somebody writes it anew.
  ASSERT_OK(put("k", "w", {.ttl_ms = 10}));
  EXPECT_EQ(*collect(raw_, tenant_, start_ms + 10, "k"), true);
  EXPECT_EQ(get("k"), "w");
  EXPECT_EQ(notes(), (Notes{{start_ms + 20, "k"}}));
  ASSERT_OK(put("k", "x"));
  clock_.advance_ms(10);
  EXPECT_EQ(*collect(raw_, tenant_, start_ms + 20, "k"), true);
  EXPECT_EQ(get("k"), "x");
  figures();
}

TEST_F(RawTest, CollectsAStrayNote) {
  ASSERT_OK(put("k", "v"));
  const auto leave = [&](CountedView& view) -> Status {
    view.leave_garbage(start_ms, "k", 1);
    view.leave_garbage(start_ms, "", 1);  // cannot be a key
    return {};
  };
  ASSERT_OK(tenant_.collect(Model::raw, Scope::in(ours), leave));
  EXPECT_EQ(*collect(raw_, tenant_, start_ms, "k"), true);
  EXPECT_EQ(*collect(raw_, tenant_, start_ms, ""), true);
  EXPECT_EQ(notes(), Notes());
  EXPECT_EQ(get("k"), "v");
  figures();
}

TEST_F(RawTest, CollectsNothingThatIsThereAgain) {
  ASSERT_OK(put("k", "v", {.ttl_ms = 10}));
  clock_.advance_ms(10);
  clock_.jump_to_ms(start_ms + 5);  // somebody set the clock back
  EXPECT_EQ(*collect(raw_, tenant_, start_ms + 10, "k"), false);
  EXPECT_EQ(get("k"), "v");
  EXPECT_EQ(notes(), (Notes{{start_ms + 10, "k"}}));
  figures();
}

// Many notes in one transaction, each with what its own entry needs.
TEST_F(RawTest, CollectsTogether) {
  ASSERT_OK(put("expired", "v", {.ttl_ms = 10}));
  ASSERT_OK(put("changed", "v", {.ttl_ms = 10}));
  ASSERT_OK(put("not yet", "v", {.ttl_ms = 30}));
  ASSERT_OK(put("twice", "v", {.ttl_ms = 10}));
  const auto leave = [&](CountedView& view) -> Status {
    view.leave_garbage(start_ms + 5, "twice", 1);  // stray ones before and after its own
    view.leave_garbage(start_ms + 15, "twice", 1);
    return {};
  };
  ASSERT_OK(tenant_.collect(Model::raw, Scope::in(ours), leave));
  clock_.advance_ms(20);
  ASSERT_OK(put("changed", "w", {.ttl_ms = 100}));
  const std::vector<Garbage> together = {
      {start_ms + 5, "twice"},    {start_ms + 10, "changed"}, {start_ms + 10, "expired"},
      {start_ms + 10, "twice"},   {start_ms + 10, "absent"},  {start_ms + 15, "twice"},
      {start_ms + 30, "not yet"},
  };
  EXPECT_EQ(*raw_.collect(tenant_, together), 6u);
  EXPECT_EQ(notes(), (Notes{{start_ms + 30, "not yet"}, {start_ms + 120, "changed"}}));
  EXPECT_EQ(figures().keys, 2);
  EXPECT_EQ(*raw_.collect(tenant_, together), 6u) << "again does no harm";
  EXPECT_EQ(figures().keys, 2);
}

TEST_F(RawTest, CollectsNothingWithABrokenEntry) {
  ASSERT_OK(put("a", "v", {.ttl_ms = 10}));
  ASSERT_OK(put("b", "v", {.ttl_ms = 10}));
  clock_.advance_ms(10);
  Commit broken;
  broken.writes.put(encode(RawKey{ours, "b"}), "?");
  ASSERT_OK(commit(memory_, broken));
  const std::vector<Garbage> together = {{start_ms + 10, "a"}, {start_ms + 10, "b"}};
  EXPECT_CODE(raw_.collect(tenant_, together), Code::corrupt);
  EXPECT_EQ(notes().size(), 2u);
}

// --- conditions ---

TEST_F(RawTest, ATagIsItsHash) {
  EXPECT_EQ(raw_tag(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(raw_tag("abc"), "06b05ab6733a618578af5f94892f3950");
}

TEST_F(RawTest, ConditionsHoldOrNothingIsWritten) {
  const auto absent = RawCondition::must_be_absent();
  const auto there = RawCondition::must_exist();
  const auto equal = RawCondition::must_equal(raw_tag("v"));
  for (const RawCondition& condition : {there, equal}) {
    EXPECT_REASON(put("k", "w", {.condition = condition}), Code::refused, "condition_failed");
    EXPECT_REASON(remove("k", condition), Code::refused, "condition_failed");
  }
  EXPECT_EQ(*remove("k", absent), false);
  EXPECT_OK(put("k", "v", {.condition = absent}));
  EXPECT_REASON(put("k", "w", {.condition = absent}), Code::refused, "condition_failed");
  EXPECT_REASON(remove("k", absent), Code::refused, "condition_failed");
  EXPECT_EQ(get("k"), "v");
  EXPECT_OK(put("k", "w", {.condition = equal}));
  EXPECT_REASON(put("k", "x", {.condition = equal}), Code::refused, "condition_failed");
  EXPECT_REASON(remove("k", equal), Code::refused, "condition_failed");
  EXPECT_EQ(get("k"), "w");
  EXPECT_OK(put("k", "v", {.condition = there}));
  EXPECT_EQ(*remove("k", equal), true);
  EXPECT_EQ(figures(), Figures());
}

TEST_F(RawTest, ComparesAndSets) {
  EXPECT_EQ(swap("k", "v", "w")->done, false);
  EXPECT_EQ(swap("k", std::nullopt, std::nullopt)->done, true);
  EXPECT_EQ(figures(), Figures());
  EXPECT_EQ(swap("k", std::nullopt, "v")->done, true);

  const auto refused = swap("k", std::nullopt, "w");
  ASSERT_OK(refused);
  EXPECT_EQ(refused->done, false);
  EXPECT_EQ(refused->current->value(), "v");
  EXPECT_EQ(swap("k", "other", std::nullopt)->current->value(), "v");

  EXPECT_EQ(swap("k", "v", "", 10)->done, true);
  const auto expiring = swap("k", "v", "w");
  ASSERT_OK(expiring);
  EXPECT_EQ(expiring->current->value(), "");
  EXPECT_EQ(expiring->current->expires_at_ms(), start_ms + 10);
  EXPECT_EQ(swap("k", std::nullopt, "w")->done, false) << "empty is not absent";
  EXPECT_EQ(swap("k", "", std::nullopt)->done, true);
  EXPECT_EQ(get("k"), std::nullopt);
  EXPECT_EQ(figures(), Figures());
}

// --- batches ---

TEST_F(RawTest, ABatchIsItsOperationsOneAfterTheOther) {
  ASSERT_OK(put("old", "v"));
  ASSERT_OK(batch({put_op("a", "1", 0, RawCondition::must_be_absent()),
                   put_op("a", "2", 0, RawCondition::must_equal(raw_tag("1"))), remove_op("old"),
                   put_op("old", "new", 0, RawCondition::must_be_absent()), put_op("b", "3"),
                   remove_op("b", RawCondition::must_exist()), remove_op("b")}));
  EXPECT_EQ(scan({}), (Pairs{{"a", "2"}, {"old", "new"}}));
  EXPECT_EQ(figures().keys, 2);
  EXPECT_OK(batch({}));
}

TEST_F(RawTest, ABatchIsAllOrNothing) {
  ASSERT_OK(put("k", "v", {.ttl_ms = 10}));
  const Figures before = figures();
  const auto refused = batch({put_op("a", "1", 5), remove_op("k"),
                              put_op("k", "w", 0, RawCondition::must_exist()), put_op("b", "2")});
  EXPECT_REASON(refused, Code::refused, "condition_failed");
  EXPECT_TRUE(refused.error().message.starts_with("operation 2: ")) << refused.error().message;
  EXPECT_EQ(scan({}), (Pairs{{"k", "v"}}));
  EXPECT_EQ(notes(), (Notes{{start_ms + 10, "k"}}));
  EXPECT_EQ(figures(), before);
}

TEST_F(RawTest, ALargeBatchSeesItsOwnWrites) {
  // More than are locked one by one, with keys that come again near and far.
  std::vector<Bytes> keys;
  for (int i = 0; i < 200; i++) keys.push_back("k" + std::to_string(i));
  std::vector<RawOperation> operations;
  for (int round = 0; round < 3; round++)
    for (const Bytes& key : keys) {
      operations.push_back(put_op(key, "v", 5));
      operations.push_back(put_op(key, "w", 6, RawCondition::must_equal(raw_tag("v"))));
    }
  ASSERT_OK(batch(operations));
  EXPECT_EQ(figures().keys, 200);
  EXPECT_EQ(notes().size(), 200u);
  for (RawOperation& operation : operations) operation = remove_op(operation.key);
  ASSERT_OK(batch(operations));
  EXPECT_EQ(figures(), Figures());
}

TEST_F(RawTest, BatchesAreBounded) {
  std::vector<Bytes> keys;
  for (size_t i = 0; i <= raw_batch_operations_max; i++) keys.push_back("k" + std::to_string(i));
  std::vector<RawOperation> operations;
  for (const Bytes& key : keys) operations.push_back(put_op(key, "v", 7));
  EXPECT_REASON(batch(operations), Code::too_large, "batch_too_large");
  operations.pop_back();
  EXPECT_OK(batch(operations));
  EXPECT_EQ(figures().keys, static_cast<int64_t>(raw_batch_operations_max));

  const Bytes large(raw_batch_bytes_max / 2 - 3, 'v');
  EXPECT_OK(batch({put_op("a", large), put_op("b", large)}));
  EXPECT_REASON(batch({put_op("a", large), put_op("b", large), put_op("c", "")}), Code::too_large,
                "batch_too_large");
}

TEST_F(RawTest, TheLargestBatchOfKeysFitsIntoACommit) {
  // Each makes an entry and a note, and takes a note back.
  std::vector<Bytes> keys;
  for (size_t i = 0; i < raw_batch_bytes_max / 3 / raw_key_bytes_max; i++)
    keys.push_back(Bytes(raw_key_bytes_max - 1, 'k') + static_cast<char>(i));
  for (const uint64_t ttl : {10, 20}) {
    std::vector<RawOperation> operations;
    for (const Bytes& key : keys) operations.push_back(put_op(key, "v", ttl));
    EXPECT_OK(batch(operations));
  }
  EXPECT_EQ(notes().size(), keys.size());
  figures();
}

// --- scans ---

TEST_F(RawTest, ScansItsKeyspaceInOrder) {
  for (const ByteView key : {"b", "a", "ab", "c", "\xff"}) ASSERT_OK(put(key, key));
  ASSERT_OK(raw_.put(neighbour_, writer_, "a", "theirs"));
  EXPECT_EQ(keys_of({}), "a ab b c \xff");
  EXPECT_EQ(keys_of({.reverse = true}), "\xff c b ab a");
  EXPECT_EQ(keys_of({.begin = "ab"}), "ab b c \xff");
  EXPECT_EQ(keys_of({.end = "b"}), "a ab");
  EXPECT_EQ(keys_of({.begin = "ab", .end = "c", .reverse = true}), "b ab");
  EXPECT_EQ(keys_of({.prefix = "a"}), "a ab");
  EXPECT_EQ(keys_of({.begin = "aa", .prefix = "a"}), "ab");
  EXPECT_EQ(keys_of({.end = "ab", .prefix = "a"}), "a");
  EXPECT_EQ(keys_of({.end = "z", .prefix = "a", .reverse = true}), "ab a");
  EXPECT_EQ(keys_of({.prefix = "\xff"}), "\xff");
  EXPECT_EQ(keys_of({.begin = "c", .prefix = "a"}), "");
  EXPECT_EQ(keys_of({.end = "a", .prefix = "b"}), "");
  EXPECT_EQ(keys_of({.begin = "c", .end = "b"}), "");
  EXPECT_EQ(scan({.end = "b", .keys_only = true}), (Pairs{{"a", ""}, {"ab", ""}}));
}

TEST_F(RawTest, ScansTheLastKeyspace) {
  const KeyspaceId last{keyspace_id_max};
  store_keyspace(keyspace_of(last));
  Tenant tenant(map_, last);
  ASSERT_OK(raw_.put(tenant, writer_, "\xff\xff", "v"));
  for (const bool reverse : {false, true}) {
    size_t seen = 0;
    const auto page = raw_.scan(tenant, writer_, {.prefix = "\xff", .reverse = reverse},
                                [&](ByteView key, ByteView, uint64_t) {
                                  EXPECT_EQ(key, "\xff\xff");
                                  seen++;
                                  return Visit::go_on;
                                });
    EXPECT_OK(page);
    EXPECT_EQ(seen, 1u);
  }
}

TEST_F(RawTest, PagesEndAtTheirLimits) {
  Pairs all;
  for (int i = 0; i < 20; i++) {
    all.emplace_back("k" + std::to_string(10 + i), Bytes(static_cast<size_t>(i), 'v'));
    ASSERT_OK(put(all.back().first, all.back().second));
  }
  Pairs reversed(all.rbegin(), all.rend());
  for (const size_t limit : {1, 3, 7, 20, 21}) {
    EXPECT_EQ(scan({.limit = limit}), all);
    EXPECT_GE(pages_, 20 / limit);
    EXPECT_EQ(scan({.reverse = true, .limit = limit}), reversed);
  }
  for (const size_t bytes : {1, 10, 50, 1'000}) {
    EXPECT_EQ(scan({.bytes_max = bytes}), all);
    EXPECT_GE(pages_, std::min<size_t>(19, 250 / bytes));
    EXPECT_EQ(scan({.reverse = true, .bytes_max = bytes}), reversed);
  }
  Pairs first;
  EXPECT_EQ(page({.bytes_max = 9}, first).entries, 2u);  // 3 + 0 and 3 + 1; 3 + 2 is too much
  EXPECT_EQ(page({.bytes_max = 9, .keys_only = true}, first).entries, 3u);

  const auto stop_at_once = [](ByteView, ByteView, uint64_t) { return Visit::stop; };
  const auto stopped = raw_.scan(tenant_, writer_, {}, stop_at_once);
  EXPECT_EQ(stopped->entries, 1u);
  EXPECT_EQ(stopped->resume, Bytes("k10\0", 4));
  for (const RawScan& bad : {RawScan{.limit = 0}, RawScan{.limit = raw_scan_entries_max + 1},
                             RawScan{.bytes_max = 0}, RawScan{.bytes_max = raw_scan_bytes_max + 1}})
    EXPECT_REASON(raw_.scan(tenant_, writer_, bad, stop_at_once), Code::invalid, "illegal_limit");
  EXPECT_EQ(scan({.limit = raw_scan_entries_max, .bytes_max = raw_scan_bytes_max}), all);
}

TEST_F(RawTest, AScanOverExpiredEntriesIsBounded) {
  std::vector<Bytes> keys;
  for (int i = 0; i < 10'000; i++) keys.push_back("k" + std::to_string(10'000 + i));
  std::vector<RawOperation> operations;
  for (const Bytes& key : keys) operations.push_back(put_op(key, "v", 10));
  ASSERT_OK(batch(operations));
  ASSERT_OK(put("a", "first"));
  ASSERT_OK(put("z", "last"));
  clock_.advance_ms(10);
  EXPECT_EQ(keys_of({.limit = 2}), "a z");
  EXPECT_GE(pages_, 10u);
  EXPECT_LE(pages_, 12u);
  EXPECT_EQ(keys_of({.reverse = true, .limit = 2}), "z a");
  EXPECT_GE(pages_, 10u);
}

// --- isolation ---

class IsolationTest : public testing::TestWithParam<Way> {
 protected:
  // Everything that the model can do, on keys that `seed` picks.
  void work(Tenant& tenant, FakeClock& clock, unsigned seed) {
    const Caller writer{Role::write, "writer"};
    Raw raw;
    const Bytes key = "k" + std::to_string(seed);
    const ByteView keys[] = {key, "k"};
    const auto visit = [](ByteView, ByteView, uint64_t) { return Visit::go_on; };
    EXPECT_OK(raw.put(tenant, writer, key, "v", {.ttl_ms = 10}));
    EXPECT_OK(raw.put(tenant, writer, "k", "v", {.condition = RawCondition::must_be_absent()}));
    EXPECT_OK(raw.get(tenant, writer, key));
    EXPECT_OK(raw.multi_get(tenant, writer, keys));
    EXPECT_OK(raw.compare_and_set(tenant, writer, "k", "v", "w", 20));
    EXPECT_OK(raw.compare_and_set(tenant, writer, "k", "v", "w", 20));
    std::vector<RawOperation> many;
    const std::vector<Bytes> names = {"a", "b", "\xff\xff\xff\xff", Bytes("\0", 1)};
    for (int i = 0; i < 200; i++) many.push_back(put_op(names[i % 4], "v", 5));
    EXPECT_OK(raw.batch(tenant, writer, many));
    EXPECT_OK(raw.batch(tenant, writer, std::span(many).first(4)));
    for (const bool reverse : {false, true})
      for (const ByteView bound : {ByteView(), ByteView("\xff\xff\xff\xff"), ByteView("\0", 1)}) {
        EXPECT_OK(raw.scan(tenant, writer, {.begin = bound, .reverse = reverse}, visit));
        EXPECT_OK(raw.scan(tenant, writer, {.end = bound, .reverse = reverse}, visit));
        EXPECT_OK(raw.scan(tenant, writer, {.prefix = bound, .reverse = reverse}, visit));
      }
    const uint64_t due_ms = clock.unix_ms() + 10;
    clock.advance_ms(10);
    EXPECT_OK(collect(raw, tenant, due_ms, key));
    EXPECT_OK(raw.remove(tenant, writer, "k"));
    EXPECT_OK(tenant.figures());
  }
};

TEST_P(IsolationTest, NothingOutsideItsKeyspaceIsTouched) {
  const bool shared = GetParam() == Way::expecting;
  MemoryEngine memory(std::make_shared<MemoryStore>(),
                      shared ? MemoryEngine::Use::shared : MemoryEngine::Use::alone);
  RecordingEngine engine(memory);
  FakeClock clock(start_ms);
  Transactor transactor(engine, clock, {.way = GetParam(), .check_scope = true, .seed = 1});
  std::vector<std::unique_ptr<Tenant>> tenants;
  for (const uint32_t id : {0u, 1u, 2u, 0xffu, 0x100u, 0xffffu, 0xfffffeu, keyspace_id_max}) {
    Commit one;
    one.writes.put(encode(KeyspaceMetaKey{KeyspaceId{id}}),
                   encode_keyspace(keyspace_of(KeyspaceId{id})));
    ASSERT_OK(commit(memory, one));
    tenants.push_back(
        std::make_unique<Tenant>(MapHandle{engine, transactor, clock}, KeyspaceId{id}));
  }
  for (unsigned round = 0; round < 2; round++)
    for (const auto& tenant : tenants) {
      work(*tenant, clock, round);
      const auto accesses = engine.take();
      EXPECT_GT(accesses.size(), 100u);
      EXPECT_EQ(outside_of(accesses, tenant->id()), "") << "of keyspace " << tenant->id().value;
      EXPECT_NE(outside_of(accesses, KeyspaceId{12345}), "") << "the check sees something";
    }
}

INSTANTIATE_TEST_SUITE_P(Ways, IsolationTest, testing::Values(Way::latched, Way::expecting),
                         [](const auto& info) {
                           return info.param == Way::latched ? "latched" : "expecting";
                         });

}  // namespace
}  // namespace trellis
