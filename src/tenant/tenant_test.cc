#include "tenant/tenant.h"

#include <atomic>
#include <thread>

#include "base/no_wait.h"
#include "support/hooked_engine.h"
#include "support/tenant_fixture.h"

namespace trellis {
namespace tenant_test {

class TenantTest : public TenantFixture {
 protected:
  void SetUp() override {
    TenantFixture::SetUp();
    ASSERT_OK(make("shop"));
    tenant_ = keyspaces_->tenant("shop").value();
  }
  void set_state(KeyspaceState state) { ASSERT_OK(keyspaces_->set_state("shop", state, root)); }
  void set_quota(const Quota& quota) {
    const QuotaPatch all{quota.bytes, quota.keys, quota.operations_per_second};
    ASSERT_OK(keyspaces_->set_quota("shop", all, root));
  }

  std::shared_ptr<Tenant> tenant_;
};
INSTANTIATE_TEST_SUITE_P(BothWays, TenantTest, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(TenantTest, RolesAndStates) {
  // ok, or the reason of the refusal, of: reader reads, reader writes, writer writes, admin reads,
  // admin writes.
  const auto probe = [&] {
    const auto word = [](const Status& status) {
      return std::string(status ? "ok" : status.error().reason);
    };
    return std::vector{word(tenant_->admit(reader, Access::read)),
                       word(put(*tenant_, reader, "k", "v")), word(put(*tenant_, writer, "k", "v")),
                       word(tenant_->admit(keyspace_admin, Access::read)),
                       word(put(*tenant_, keyspace_admin, "k", "v"))};
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(probe(), (Words{"ok", "role_too_weak", "ok", "ok", "ok"}));
  set_state(KeyspaceState::disabled);
  EXPECT_EQ(probe(),
            (Words{"keyspace_disabled", "keyspace_disabled", "keyspace_disabled", "ok", "ok"}));
  set_state(KeyspaceState::archived);
  EXPECT_EQ(probe(), (Words{"keyspace_archived", "keyspace_archived", "keyspace_archived", "ok",
                            "keyspace_archived"}));
  set_state(KeyspaceState::disabled);
  set_state(KeyspaceState::enabled);
  EXPECT_EQ(probe(), (Words{"ok", "role_too_weak", "ok", "ok", "ok"}));
  set_state(KeyspaceState::disabled);
  set_state(KeyspaceState::archived);
  set_state(KeyspaceState::tombstone);
  EXPECT_EQ(probe(), Words(5, "keyspace_gone"));
}

TEST_P(TenantTest, FiguresEqualARecount) {
  ASSERT_OK(put(*tenant_, writer, "a", "12345"));
  ASSERT_OK(put(*tenant_, writer, "b", "1"));
  ASSERT_OK(put(*tenant_, writer, "a", "1"));
  const Figures expected{.bytes = 2 * (4 + 1 + 1), .keys = 2};
  EXPECT_EQ(tenant_->figures().value(), expected);
  EXPECT_EQ(stored_figures(memory_, tenant_->id()).value(), expected);
  EXPECT_EQ(recount(memory_, tenant_->id()).value(), expected);
  open();  // as after a restart
  EXPECT_EQ(keyspaces_->tenant("shop").value()->figures().value(), expected);
}

TEST_P(TenantTest, QuotasOfBytesAndKeys) {
  set_quota({.bytes = 30});
  ASSERT_OK(put(*tenant_, writer, "a", std::string(25, 'x')));  // 4 + 1 + 25
  const Status over = put(*tenant_, writer, "b", "");
  EXPECT_REASON(over, Code::exhausted, "quota_exceeded");
  EXPECT_EQ(over.error().retry_after_ms, 0u);  // waiting makes no room
  EXPECT_NE(over.error().message.find("over the quota of 30 B: 30 B are used and this needs 5 B"),
            std::string::npos)
      << over.error().message;
  EXPECT_OK(put(*tenant_, writer, "a", std::string(24, 'x')));  // less is always possible
  EXPECT_EQ(tenant_->figures().value().bytes, 29);
  set_quota({.keys = 2});
  EXPECT_OK(put(*tenant_, writer, "b", std::string(100, 'x')));
  EXPECT_REASON(put(*tenant_, writer, "c", ""), Code::exhausted, "quota_exceeded");
  set_quota({});
  EXPECT_OK(put(*tenant_, writer, "c", ""));
  set_quota({.bytes = 1, .keys = 1});  // below what is there: nothing is lost, nothing is added
  EXPECT_REASON(put(*tenant_, writer, "d", ""), Code::exhausted, "quota_exceeded");
  EXPECT_OK(put(*tenant_, writer, "b", ""));
}

TEST_P(TenantTest, RateOfOperations) {
  set_quota({.operations_per_second = 10});
  int admitted = 0;
  while (tenant_->admit(reader, Access::read)) admitted++;
  EXPECT_EQ(admitted, 10);
  const Status over = tenant_->admit(reader, Access::read);
  EXPECT_REASON(over, Code::exhausted, "rate_exceeded");
  ASSERT_GT(over.error().retry_after_ms, 0u);
  clock_.advance_ms(over.error().retry_after_ms);
  EXPECT_OK(tenant_->admit(reader, Access::read));
  EXPECT_REASON(put(*tenant_, writer, "k", "v"), Code::exhausted, "rate_exceeded");
  set_quota({});
  EXPECT_OK(put(*tenant_, writer, "k", "v"));
}

TEST_P(TenantTest, WhoMustNotWaitIsToldSoAndPaysNothing) {
  if (GetParam() == Way::expecting) return;  // nobody waits
  set_quota({.operations_per_second = 2});
  ASSERT_OK(map_.transact(Scope::all_of(tenant_->id()), [&](View&) -> Status {
    const NoWait no_wait;
    for (int i = 0; i < 5; i++) {
      EXPECT_REASON(put(*tenant_, writer, "k", "v"), Code::busy, would_wait_reason);
      EXPECT_REASON(tenant_->admit(reader, Access::read), Code::busy, would_wait_reason);
    }
    return {};
  }));
  EXPECT_EQ(tenant_->load().writes, 0u);
  const NoWait no_wait;
  EXPECT_OK(put(*tenant_, writer, "k", "v"));
  EXPECT_OK(tenant_->admit(reader, Access::read));
  EXPECT_REASON(put(*tenant_, writer, "k", "v"), Code::exhausted, "rate_exceeded");
}

TEST_P(TenantTest, ConcurrentWritersDoNotPassAQuota) {
  constexpr int64_t limit = 2'000;
  set_quota({.bytes = limit});
  // On a shared engine figures are of a moment ago: who reads them while others write misses these.
  ASSERT_OK(tenant_->figures());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; i++) {
        const Status status = put(*tenant_, writer, std::to_string(t * 1'000 + i), "0123456789");
        if (!status) {
          EXPECT_EQ(status.error().code, Code::exhausted) << status.error().message;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Figures figures = tenant_->figures().value();
  EXPECT_LE(figures.bytes, limit);
  EXPECT_GT(figures.bytes, limit - 20);
  EXPECT_EQ(figures, recount(memory_, tenant_->id()).value());
}

// What a delete frees is there for others when it is done, not while it may yet fail.
TEST_P(TenantTest, ADeleteThatFailsFreesNothing) {
  HookedEngine hooked(memory_);
  Transactor transactor(hooked, clock_, {.way = GetParam(), .check_scope = true});
  Tenant tenant({hooked, transactor, clock_}, tenant_->id());
  const auto remove = [&](ByteView user_key) {
    const Bytes key = encode(RawKey{tenant.id(), user_key});
    return tenant.write(writer, Model::raw, Scope::in(tenant.id()).exclusive(key),
                        [&](CountedView& view) -> Status {
                          Value old;
                          TRY(view.get(key, old));
                          view.count_keys(-1);
                          view.remove(key, old);
                          return {};
                        });
  };
  set_quota({.keys = 1});
  ASSERT_OK(put(tenant, writer, "a", "1"));
  hooked.on_commit = [&]() -> Status {
    std::thread([&] {
      EXPECT_REASON(put(tenant, writer, "b", "1"), Code::exhausted, "quota_exceeded");
    }).join();
    return Error{Code::no_space, "the disk is full"};
  };
  EXPECT_CODE(remove("a"), Code::no_space);
  EXPECT_EQ(tenant.figures().value().keys, 1);
  ASSERT_OK(remove("a"));
  EXPECT_EQ(tenant.figures().value(), Figures());
  EXPECT_OK(put(tenant, writer, "b", "1"));
  EXPECT_EQ(tenant.figures().value(), recount(memory_, tenant.id()).value());
}

TEST_P(TenantTest, OnADiskThatIsNearlyFullOnlyWhatMakesRoomIsWritten) {
  HookedEngine hooked(memory_);
  Transactor transactor(hooked, clock_, {.way = GetParam(), .check_scope = true});
  Tenant tenant({hooked, transactor, clock_}, tenant_->id());
  ASSERT_OK(put(tenant, writer, "a", "123"));
  hooked.on_room = []() -> Status { return Error{Code::no_space, "nearly full"}; };
  EXPECT_CODE(put(tenant, writer, "a", "1234"), Code::no_space);
  EXPECT_CODE(put(tenant, writer, "a", "321"), Code::no_space);
  EXPECT_CODE(put(tenant, writer, "b", "1"), Code::no_space);
  EXPECT_OK(put(tenant, writer, "a", "12"));
  const Bytes key = encode(RawKey{tenant.id(), "a"});
  const Scope scope = Scope::in(tenant.id()).exclusive(key);
  const auto touch_nothing = [](CountedView&) { return Status(); };
  EXPECT_OK(tenant.write(writer, Model::raw, scope, touch_nothing));
  // A note is more than what goes at once, but what it leads to goes too.
  const auto leave_note = [&](CountedView& view) -> Status {
    Value old;
    TRY(view.get(key, old));
    view.remove(key, old);
    view.count_keys(-1);
    view.leave_garbage(1, Bytes(100, 'n'), 0);
    return {};
  };
  EXPECT_OK(tenant.write(writer, Model::raw, scope, leave_note));
  EXPECT_OK(tenant.collect(Model::raw, scope, [&](CountedView& view) -> Status {
    view.put(key, "collectors may", Value());
    return {};
  }));
}

// No write of a thread that was told "disabled" is followed by one that works; and after the change
// is answered nothing is written any more.
TEST_P(TenantTest, AStateChangeHoldsForAllAtOnce) {
  std::atomic<bool> answered = false;
  std::atomic<bool> stop = false;
  std::atomic<int> written = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; !stop; i++) {
        const bool was_answered = answered;
        const Status status = put(*tenant_, writer, std::to_string(t), std::to_string(i));
        if (status) written++;
        if (was_answered) {
          EXPECT_REASON(status, Code::denied, "keyspace_disabled");
        }
      }
    });
  }
  while (written < 50) std::this_thread::yield();
  set_state(KeyspaceState::disabled);
  answered = true;
  const int at_answer = written;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(written, at_answer + 4);  // answered to their callers a little later
}

TEST_P(TenantTest, UnknownOutcomesAreCountedRight) {
  FaultyEngine faulty(memory_, {.seed = 7, .fail_commit_one_in = 10, .maybe_one_in = 5});
  Transactor transactor(faulty, clock_, {.way = GetParam(), .check_scope = true});
  Tenant tenant({faulty, transactor, clock_}, tenant_->id());
  for (int i = 0; i < 300; i++)
    discard(put(tenant, writer, std::to_string(i % 50), std::string(i % 7, 'x')));
  EXPECT_GT(faulty.counts().maybes_applied, 0u);
  EXPECT_GT(faulty.counts().maybes_dropped, 0u);
  Result<Figures> figures = tenant.figures();
  while (!figures) figures = tenant.figures();
  EXPECT_EQ(*figures, recount(memory_, tenant_->id()).value());
}

}  // namespace tenant_test
}  // namespace trellis
