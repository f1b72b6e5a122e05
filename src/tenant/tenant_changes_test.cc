// What an admin changes, seen by a Tenant in the moment of the change.
#include <atomic>
#include <latch>
#include <thread>

#include "support/hooked_engine.h"
#include "support/tenant_fixture.h"
#include "tenant/tokens.h"

namespace trellis {
namespace tenant_changes_test {

// The same map, through an engine with hooks, every commit waited for.
class TenantChanges : public TenantFixture {
 protected:
  void SetUp() override {
    auto opened = Keyspaces::open(hooked_map_);
    ASSERT_OK(opened);
    keyspaces_ = std::move(*opened);
  }
  // Tenants know what they are.
  void use(const std::string& name) {
    ASSERT_OK(keyspaces_->tenant(name).value()->admit(reader, Access::read));
  }
  KeyspaceId id_of(const std::string& name) {
    const auto tenant = keyspaces_->tenant(name);
    EXPECT_OK(tenant);
    return tenant ? (*tenant)->id() : KeyspaceId{keyspace_id_max};
  }

  HookedEngine hooked_{memory_};
  Transactor hooked_transactor_{hooked_, clock_, {.way = GetParam(), .check_scope = true}};
  MapHandle hooked_map_{hooked_, hooked_transactor_, clock_, Durability::always};
};
INSTANTIATE_TEST_SUITE_P(BothWays, TenantChanges, testing::Values(Way::latched, Way::expecting),
                         way_name);

// A rename that is visible and not yet answered: the name is free for somebody else, whose data it
// is from then on.
TEST_P(TenantChanges, ANameGoesToItsNewOwnerBeforeTheRenameIsAnswered) {
  const KeyspaceId first = make("shop").value().id;
  use("shop");
  std::optional<KeyspaceId> second;
  hooked_.on_durable = [&]() -> Status {
    TRY_ASSIGN(const Keyspace made, make("shop"));
    second = made.id;
    EXPECT_EQ(id_of("shop"), made.id);
    EXPECT_EQ(id_of("store"), first);
    return {};
  };
  ASSERT_OK(keyspaces_->rename("shop", "store", root));
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(id_of("shop"), *second);
}

TEST_P(TenantChanges, ANameGoesToItsNewOwnerAfterARenameOfUnknownOutcome) {
  const KeyspaceId first = make("shop").value().id;
  use("shop");
  hooked_.on_durable = [] { return Error{Code::unavailable, "the disk is gone"}; };
  EXPECT_CODE(keyspaces_->rename("shop", "store", root), Code::maybe);
  const auto second = make("shop");  // it was done
  ASSERT_OK(second);
  EXPECT_EQ(id_of("shop"), second->id);
  EXPECT_EQ(id_of("store"), first);
}

TEST_P(TenantChanges, ANameIsFreeBeforeATombstoneIsAnswered) {
  ASSERT_OK(make("shop"));
  ASSERT_OK(keyspaces_->set_state("shop", KeyspaceState::disabled, root));
  ASSERT_OK(keyspaces_->set_state("shop", KeyspaceState::archived, root));
  EXPECT_OK(keyspaces_->tenant("shop").value()->admit(root, Access::read));
  bool called = false;
  hooked_.on_durable = [&]() -> Status {
    called = true;
    TRY(make("shop"));
    EXPECT_OK(keyspaces_->tenant("shop").value()->admit(reader, Access::read));
    return {};
  };
  ASSERT_OK(keyspaces_->set_state("shop", KeyspaceState::tombstone, root));
  EXPECT_TRUE(called);
}

// The data may wait a second for the disk; what an operator decides may not.
TEST_P(TenantChanges, AnAdministrativeChangeIsOnTheDiskBeforeItIsAnswered) {
  const MapHandle lazy{hooked_, hooked_transactor_, clock_, Durability::everysec};
  keyspaces_ = Keyspaces::open(lazy).value();
  Tokens tokens(lazy, keyspaces_->changes());
  Gc gc(lazy, keyspaces_->changes());
  const KeyspaceId id = make("shop").value().id;
  const auto synced = [&](const std::function<void()>& act) {
    bool waited = false;
    hooked_.on_durable = [&] {
      waited = true;
      return Status();
    };
    act();
    hooked_.on_durable = nullptr;
    return waited;
  };
  EXPECT_FALSE(synced([&] {
    const auto tenant = keyspaces_->tenant("shop").value();
    EXPECT_OK(put(*tenant, writer, "a", "1"));
  }));
  EXPECT_TRUE(
      synced([&] { EXPECT_OK(keyspaces_->set_state("shop", KeyspaceState::disabled, root)); }));
  EXPECT_TRUE(synced([&] { EXPECT_OK(keyspaces_->set_quota("shop", {.keys = 1}, root)); }));
  std::string token;
  EXPECT_TRUE(synced([&] { token = tokens.create(id, Role::read, "", 0, root).value().token.id; }));
  EXPECT_TRUE(synced([&] { EXPECT_OK(tokens.revoke(id, token, root)); }));
  EXPECT_TRUE(synced([&] { EXPECT_OK(gc.set_barrier(id, "backup", 1, 60, root)); }));
}

TEST_P(TenantChanges, AQuotaChangesInPart) {
  ASSERT_OK(make("shop"));
  ASSERT_OK(keyspaces_->set_quota("shop", {.bytes = 10, .keys = 20}, root));
  // Another admin, between the two: nothing of it is lost.
  hooked_.on_commit = [&]() -> Status {
    if (GetParam() == Way::latched) return {};  // would wait for ourselves
    TRY(keyspaces_->set_quota("shop", {.bytes = 11}, root));
    return {};
  };
  const auto changed = keyspaces_->set_quota("shop", {.operations_per_second = 30}, root);
  ASSERT_OK(changed);
  const uint64_t bytes = GetParam() == Way::latched ? 10 : 11;
  EXPECT_EQ(changed->quota, (Quota{.bytes = bytes, .keys = 20, .operations_per_second = 30}));
  EXPECT_EQ(keyspaces_->set_quota("shop", {.keys = 0}, root).value().quota.keys, 0u);
}

TEST_P(TenantChanges, AChangeOfUnknownOutcomeHolds) {
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  use("shop");
  int woken = 0;
  const auto subscription = keyspaces_->changes().subscribe([&] { woken++; });
  hooked_.on_durable = [] { return Error{Code::unavailable, "the disk is gone"}; };
  EXPECT_CODE(keyspaces_->set_quota("shop", {.keys = 1}, root), Code::maybe);
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(tenant->keyspace().value().quota.keys, 1u);
  ASSERT_OK(put(*tenant, writer, "a", "1"));
  EXPECT_REASON(put(*tenant, writer, "b", "1"), Code::exhausted, "quota_exceeded");

  hooked_.on_durable = [] { return Error{Code::unavailable, "the disk is gone"}; };
  EXPECT_CODE(make("next"), Code::maybe);
  EXPECT_EQ(woken, 2);
  hooked_.on_durable = [] { return Error{Code::unavailable, "the disk is gone"}; };
  EXPECT_CODE(keyspaces_->set_state("shop", KeyspaceState::disabled, root), Code::maybe);
  EXPECT_EQ(woken, 3);
  EXPECT_REASON(put(*tenant, writer, "a", "2"), Code::denied, "keyspace_disabled");
}

TEST_P(TenantChanges, AStateChangeThatFailsChangesNothing) {
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  ASSERT_OK(put(*tenant, writer, "a", "1"));
  hooked_.on_commit = [] { return Error{Code::no_space, "the disk is full"}; };
  EXPECT_CODE(keyspaces_->set_state("shop", KeyspaceState::disabled, root), Code::no_space);
  EXPECT_OK(put(*tenant, writer, "a", "2"));
}

// The first operations of a Tenant, all at once: none is refused because another one is still
// finding out what the state is.
TEST_P(TenantChanges, ATenantIsNotGoneBeforeItIsKnown) {
  ASSERT_OK(make("shop"));
  const KeyspaceId id = id_of("shop");
  std::atomic<int> refused = 0;
  for (int round = 0; round < 3'000; round++) {
    Tenant tenant(hooked_map_, id);
    std::latch start(2);
    const auto admit = [&] {
      start.arrive_and_wait();
      for (int i = 0; i < 20; i++)
        if (!tenant.admit(reader, Access::read)) refused++;
    };
    std::thread other(admit);
    admit();
    other.join();
  }
  EXPECT_EQ(refused, 0);
}

// Two operations read the state, one before and one after a change of it. What the later one read
// counts, whoever comes last.
TEST_P(TenantChanges, AnOldReadOfTheStateDoesNotCount) {
  if (GetParam() == Way::latched) GTEST_SKIP() << "no state changes while it is read";
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  bool called = false;
  hooked_.after_get = [&] {
    called = true;
    ASSERT_OK(keyspaces_->set_state("shop", KeyspaceState::disabled, root));
    EXPECT_REASON(tenant->admit(reader, Access::read), Code::denied, "keyspace_disabled");
  };
  EXPECT_REASON(tenant->admit(reader, Access::read), Code::denied, "keyspace_disabled");
  EXPECT_TRUE(called);
}

}  // namespace tenant_changes_test
}  // namespace trellis
