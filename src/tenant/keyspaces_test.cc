#include "tenant/keyspaces.h"

#include <set>

#include "base/limits.h"
#include "codec/system_keys.h"
#include "support/tenant_fixture.h"

namespace trellis {
namespace keyspaces_test {

using KeyspacesTest = TenantFixture;
INSTANTIATE_TEST_SUITE_P(BothWays, KeyspacesTest, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(KeyspacesTest, DefaultIsAlwaysThere) {
  const auto keyspace = keyspaces_->load("DEFAULT");
  ASSERT_OK(keyspace);
  EXPECT_EQ(keyspace->id, default_keyspace);
  EXPECT_EQ(keyspace->state, KeyspaceState::enabled);
  open();  // again, on the same map
  EXPECT_EQ(keyspaces_->load("DEFAULT").value(), *keyspace);
  EXPECT_REASON(keyspaces_->set_state("DEFAULT", KeyspaceState::disabled, root), Code::invalid,
                "default_keyspace");
  EXPECT_REASON(keyspaces_->rename("DEFAULT", "other", root), Code::invalid, "default_keyspace");
  EXPECT_OK(keyspaces_->patch_config(default_keyspace, {{"a", "1"}}, {}, root));
}

TEST_P(KeyspacesTest, StoredAsTheSeedHasIt) {
  auto made = keyspaces_->create(
      {.name = "shop", .id = 513, .config = {{"b", "2"}, {"a", "1"}}, .request_id = {}}, root);
  ASSERT_OK(made);
  Value value;
  ASSERT_OK(
      memory_.get(from_hex("042f6b65797370616365732f6d6574612f3030303030353133").value(), value));
  ASSERT_TRUE(value.found());
  // id, name, created_at, state_changed_at, config in the order of its keys, then ours.
  EXPECT_EQ(to_hex(value.bytes()),
            "088104120473686f702080e2cfaa062880e2cfaa06"
            "3a060a01611201313a060a0162120132a80602");
  ASSERT_OK(memory_.get("\x04/keyspaces/id/shop", value));
  EXPECT_EQ(value.bytes(), "513");
  // What PD writes is read: without our fields, and with fields that nobody knows yet.
  const auto plain = decode_keyspace(from_hex("0801120473686f70180220052806fa0f0178").value());
  ASSERT_OK(plain);
  EXPECT_EQ(plain->name, "shop");
  EXPECT_EQ(plain->state, KeyspaceState::archived);
  EXPECT_EQ(plain->state_changed_at_s, 6u);
  EXPECT_CODE(decode_keyspace("\xff\xff"), Code::corrupt);
  const std::string name = "120473686f70";
  EXPECT_OK(decode_keyspace(from_hex(name).value()));
  EXPECT_CODE(decode_keyspace(from_hex(name + "1807").value()), Code::corrupt);  // no such state
  EXPECT_CODE(decode_keyspace(from_hex(name + "0880808008").value()), Code::corrupt);  // 25 bits
  EXPECT_CODE(decode_keyspace(""), Code::corrupt);
}

TEST_P(KeyspacesTest, NamesAndIds) {
  for (const std::string name : {"a", "-", "_", "Az09-_", "id"}) EXPECT_OK(make(name));
  EXPECT_OK(make(std::string(64, 'x')));
  for (const std::string& name : {std::string(), std::string(65, 'x'), std::string("a b"),
                                  std::string("a/b"), std::string("ä"), std::string("a\0b", 3)})
    EXPECT_REASON(make(name), Code::invalid, "illegal_name");
  for (const std::string name : {"DEFAULT", "SYSTEM"})
    EXPECT_REASON(make(name), Code::invalid, "reserved_name");
  EXPECT_REASON(make("a"), Code::exists, "keyspace_exists");

  const auto with_id = [&](std::string name, uint64_t id) {
    return keyspaces_->create({.name = name, .id = id, .config = {}, .request_id = {}}, root);
  };
  for (const uint64_t id : {uint64_t{0}, uint64_t{1} << 24, uint64_t{1} << 32, UINT64_MAX})
    EXPECT_REASON(with_id("x", id), Code::invalid, "illegal_id");
  EXPECT_EQ(with_id("last", keyspace_id_max).value().id.value, keyspace_id_max);
  EXPECT_REASON(with_id("x", keyspace_id_max), Code::exists, "keyspace_exists");
  EXPECT_REASON(with_id("x", 1), Code::exists, "keyspace_exists");
  // Chosen by number: the generator passes over it.
  const uint32_t next = make("before").value().id.value + 1;
  EXPECT_OK(with_id("chosen", next));
  EXPECT_EQ(make("after").value().id.value, next + 1);
}

TEST_P(KeyspacesTest, IdsAreNeverGivenTwice) {
  std::set<uint32_t> ids;
  for (int i = 0; i < 250; i++) {
    if (i % 60 == 59) open();  // a restart skips what it had reserved
    const auto made = make("k" + std::to_string(i));
    ASSERT_OK(made);
    EXPECT_TRUE(ids.insert(made->id.value).second);
  }
  Commit near_the_end;
  near_the_end.writes.put(encode(KeyspaceAllocatorKey{}), std::to_string(keyspace_id_max - 1));
  ASSERT_OK(commit(memory_, near_the_end));
  open();
  EXPECT_EQ(make("last").value().id.value, keyspace_id_max);
  const size_t entries = entries_in("\x04", "\x05");
  EXPECT_REASON(make("too-many"), Code::invalid, "ids_exhausted");
  EXPECT_EQ(entries_in("\x04", "\x05"), entries);
  EXPECT_REASON(keyspaces_->load("too-many"), Code::not_found, "keyspace_not_found");
}

TEST_P(KeyspacesTest, CreateIsIdempotentByRequestId) {
  const auto first = make("shop", "r-1");
  ASSERT_OK(first);
  EXPECT_EQ(make("shop", "r-1").value().id, first->id);
  EXPECT_REASON(make("shop", "r-2"), Code::exists, "keyspace_exists");
  EXPECT_REASON(make("other", "r-1"), Code::invalid, "request_reused");
  EXPECT_REASON(make("shop"), Code::exists, "keyspace_exists");
  ASSERT_OK(keyspaces_->rename("shop", "store", root));
  EXPECT_EQ(make("shop", "r-1").value().name, "store");
  // The collector forgets it after a day.
  Gc gc(map_, keyspaces_->changes());
  Collector collector(*keyspaces_, gc);
  EXPECT_GT(collector.step().value().value(), 23u * 3600 * 1000);
  clock_.advance_ms(24ull * 3600 * 1000);
  EXPECT_EQ(collector.step().value(), 0u);
  EXPECT_EQ(collector.step().value(), std::nullopt);
  EXPECT_NE(make("shop", "r-1").value().id, first->id);
}

TEST_P(KeyspacesTest, StateMachine) {
  using enum KeyspaceState;
  constexpr KeyspaceState states[] = {enabled, disabled, archived, tombstone};
  const std::vector<std::vector<KeyspaceState>> ways = {
      {}, {disabled}, {disabled, archived}, {disabled, archived, tombstone}};
  int number = 0;
  for (size_t from = 0; from < 4; from++) {
    for (const KeyspaceState to : states) {
      const std::string name = "k" + std::to_string(number++);
      const KeyspaceId id = make(name).value().id;
      for (const KeyspaceState step : ways[from])
        ASSERT_OK(keyspaces_->set_state(name, step, root));
      const Keyspace before = keyspaces_->load(id).value();
      clock_.advance_ms(5'000);
      const auto after = keyspaces_->set_state(name, to, root);
      const bool allowed = (from == 0 && to == disabled) || (from == 1 && to == enabled) ||
                           (from == 1 && to == archived) || (from == 2 && to == disabled) ||
                           (from == 2 && to == tombstone);
      if (states[from] == tombstone) {
        EXPECT_REASON(after, Code::not_found, "keyspace_not_found");  // its name is free
      } else if (states[from] == to) {
        EXPECT_EQ(after.value(), before);  // also state_changed_at
      } else if (allowed) {
        ASSERT_OK(after);
        EXPECT_EQ(after->state, to);
        EXPECT_EQ(after->state_changed_at_s, before.state_changed_at_s + 5);
      } else {
        EXPECT_REASON(after, Code::conflict, "illegal_state_change");
        EXPECT_EQ(keyspaces_->load(id).value(), before);
      }
    }
  }
}

TEST_P(KeyspacesTest, ConfigPatch) {
  const KeyspaceId id = make("shop").value().id;
  const auto patch = [&](Keyspaces::ConfigPatch what, Keyspaces::ConfigPatch when = {}) {
    return keyspaces_->patch_config(id, what, when, root);
  };
  EXPECT_EQ(patch({{"a", "1"}, {"b", "2"}}).value().config, (Config{{"a", "1"}, {"b", "2"}}));
  const uint64_t revision = keyspaces_->changes().revision().value();
  EXPECT_OK(patch({{"a", "1"}, {"gone", std::nullopt}}));  // changes nothing, and logs nothing
  EXPECT_EQ(keyspaces_->changes().revision().value(), revision);
  EXPECT_EQ(patch({{"a", std::nullopt}}).value().config, (Config{{"b", "2"}}));
  EXPECT_REASON(patch({{"c", "3"}}, {{"b", "1"}}), Code::refused, "precondition_failed");
  EXPECT_REASON(patch({{"c", "3"}}, {{"b", std::nullopt}}), Code::refused, "precondition_failed");
  EXPECT_REASON(patch({{"c", "3"}}, {{"a", "1"}}), Code::refused, "precondition_failed");
  EXPECT_OK(patch({{"c", "3"}}, {{"b", "2"}, {"a", std::nullopt}}));
  for (const char* key : {"gc_management_type", "region_bound_type"}) {
    EXPECT_REASON(patch({{key, "x"}}), Code::invalid, "config_key_refused");
    EXPECT_REASON(patch({{key, std::nullopt}}), Code::invalid, "config_key_refused");
  }
  EXPECT_REASON(patch({{"big", std::string(keyspace_config_bytes_max, 'x')}}), Code::too_large,
                "config_too_large");
  EXPECT_REASON(patch({{"\xff", "x"}}), Code::invalid, "illegal_config");
  // The log names what changed, and nothing else that somebody sent.
  EXPECT_OK(patch({{"b", "2"}, {"n", "1"}, {"\xff", std::nullopt}}));
  const auto log = keyspaces_->changes().read(0, 100);
  ASSERT_OK(log);
  EXPECT_EQ(log->back().detail, "n");
  ASSERT_OK(keyspaces_->set_state("shop", KeyspaceState::disabled, root));
  EXPECT_OK(patch({{"d", "4"}}));
  ASSERT_OK(keyspaces_->set_state("shop", KeyspaceState::archived, root));
  EXPECT_REASON(patch({{"e", "5"}}), Code::conflict, "config_locked");
  EXPECT_REASON(keyspaces_->patch_config(KeyspaceId{77}, {}, {}, root), Code::not_found,
                "keyspace_not_found");
}

TEST_P(KeyspacesTest, Rename) {
  const KeyspaceId id = make("old").value().id;
  ASSERT_OK(make("taken"));
  EXPECT_REASON(keyspaces_->rename("old", "taken", root), Code::exists, "keyspace_exists");
  EXPECT_REASON(keyspaces_->rename("old", "a b", root), Code::invalid, "illegal_name");
  auto held = keyspaces_->tenant("old").value();
  EXPECT_EQ(keyspaces_->rename("old", "new", root).value().id, id);
  EXPECT_REASON(keyspaces_->load("old"), Code::not_found, "keyspace_not_found");
  EXPECT_REASON(keyspaces_->tenant("old"), Code::not_found, "keyspace_not_found");
  EXPECT_EQ(keyspaces_->tenant("new").value(), held);
  // The name goes to another one: a connection keeps the keyspace, not the name.
  const KeyspaceId other = make("old").value().id;
  EXPECT_EQ(keyspaces_->tenant("old").value()->id(), other);
  EXPECT_OK(put(*held, writer, "k", "v"));
  EXPECT_EQ(entries_of(other), 0u);
}

TEST_P(KeyspacesTest, ListInPages) {
  for (int i = 0; i < 25; i++) ASSERT_OK(make("k" + std::to_string(i)));
  std::vector<std::string> names;
  std::optional<KeyspaceId> from = KeyspaceId{0};
  while (from) {
    const auto page = keyspaces_->list(*from, 7);
    ASSERT_OK(page);
    EXPECT_LE(page->keyspaces.size(), 7u);
    for (const Keyspace& keyspace : page->keyspaces) names.push_back(keyspace.name);
    from = page->next;
  }
  EXPECT_EQ(names.size(), 26u);
  EXPECT_EQ(names.front(), "DEFAULT");
  EXPECT_EQ(names.back(), "k24");
  EXPECT_TRUE(keyspaces_->list(KeyspaceId{keyspace_id_max}, 7).value().keyspaces.empty());
}

TEST_P(KeyspacesTest, APageOfLargeConfigsIsShort) {
  const Config large{{"k", std::string(60'000, 'v')}};
  for (int i = 0; i < 40; i++)
    ASSERT_OK(keyspaces_->create(
        {.name = "k" + std::to_string(i), .id = {}, .config = large, .request_id = {}}, root));
  size_t listed = 0;
  size_t pages = 0;
  for (std::optional<KeyspaceId> from = KeyspaceId{0}; from; pages++) {
    const auto page = keyspaces_->list(*from, 1'000);
    ASSERT_OK(page);
    EXPECT_LE(page->keyspaces.size(), 20u);
    listed += page->keyspaces.size();
    from = page->next;
  }
  EXPECT_EQ(listed, 41u);
  EXPECT_EQ(pages, 3u);
}

TEST_P(KeyspacesTest, EveryActionIsLoggedOnce) {
  const uint64_t since = keyspaces_->changes().revision().value();
  const KeyspaceId id = make("shop").value().id;
  ASSERT_OK(keyspaces_->patch_config(id, {{"a", "1"}}, {}, root));
  ASSERT_OK(keyspaces_->set_quota("shop", {.bytes = 1'000}, root));
  ASSERT_OK(keyspaces_->rename("shop", "store", root));
  ASSERT_OK(keyspaces_->set_state("store", KeyspaceState::disabled, root));
  EXPECT_FALSE(keyspaces_->set_state("store", KeyspaceState::tombstone, root).has_value());
  const auto changes = keyspaces_->changes().read(since, 100);
  ASSERT_OK(changes);
  std::vector<std::string> actions;
  for (const Change& change : *changes) {
    actions.push_back(change.action + " " + change.detail);
    EXPECT_EQ(change.actor, "root");
    EXPECT_EQ(change.revision, since + actions.size());
    EXPECT_EQ(change.after.value().revision, change.revision);
  }
  EXPECT_EQ(actions, (std::vector<std::string>{
                         "create ", "config a", "quota bytes 1000, keys 0, operations per second 0",
                         "rename shop -> store", "state ENABLED -> DISABLED"}));
  EXPECT_EQ(changes->back().after.value(), keyspaces_->load("store").value());
  EXPECT_EQ(keyspaces_->changes().read(since + 2, 2).value().size(), 2u);
  EXPECT_TRUE(keyspaces_->changes().read(since + 5, 2).value().empty());
  EXPECT_REASON(keyspaces_->changes().read(since + 6, 2), Code::invalid, "revision_in_future");
}

TEST_P(KeyspacesTest, OldChangesGo) {
  open({.changes = {.entries_max = 10}});
  for (int i = 0; i < 30; i++) ASSERT_OK(make("k" + std::to_string(i)));
  const uint64_t last = keyspaces_->changes().revision().value();
  EXPECT_EQ(keyspaces_->changes().read(last - 10, 100).value().size(), 10u);
  EXPECT_REASON(keyspaces_->changes().read(last - 11, 100), Code::not_found, "compacted");
  EXPECT_REASON(keyspaces_->changes().read(0, 100), Code::not_found, "compacted");
  open({.changes = {.entries_max = 1'000}});  // from now on
  EXPECT_REASON(keyspaces_->changes().read(last - 11, 100), Code::not_found, "compacted");
  EXPECT_EQ(keyspaces_->changes().read(last - 10, 100).value().size(), 10u);
  int woken = 0;
  const auto subscription = keyspaces_->changes().subscribe([&] { woken++; });
  ASSERT_OK(make("one-more"));
  EXPECT_EQ(woken, 1);
}

// Whoever gets fewer than asked for takes that for the end.
TEST_P(KeyspacesTest, LargeChangesAreReadToTheEnd) {
  const KeyspaceId id = make("shop").value().id;
  for (int i = 0; i < 300; i++) {
    const std::string value(60'000, static_cast<char>('a' + i % 2));
    ASSERT_OK(keyspaces_->patch_config(id, {{"k", value}}, {}, root));
  }
  const uint64_t last = keyspaces_->changes().revision().value();
  EXPECT_EQ(keyspaces_->changes().read(0, 1'000).value().size(), last);
  EXPECT_EQ(keyspaces_->changes().read(0, 290).value().size(), 290u);
}

TEST_P(KeyspacesTest, IdleTenantsAreForgotten) {
  open({.tenants_max = 8});
  std::vector<std::string> names;
  for (int i = 0; i < 100; i++) {
    names.push_back("k" + std::to_string(i));
    ASSERT_OK(make(names.back()));
  }
  const auto held = keyspaces_->tenant(names[0]).value();
  for (const std::string& name : names)
    ASSERT_OK(put(*keyspaces_->tenant(name).value(), writer, "k", "v"));
  EXPECT_LE(keyspaces_->active_tenants().size(), 9u);
  EXPECT_EQ(keyspaces_->tenant(names[0]).value(), held);  // never two of one keyspace
  for (const std::string& name : names)
    EXPECT_EQ(keyspaces_->tenant(name).value()->figures().value().keys, 1);
}

}  // namespace keyspaces_test
}  // namespace trellis
