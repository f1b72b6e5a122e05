// Raw data of a few keyspaces that come and go, with ttls, holds, quotas, a collector, a clock that
// jumps and an engine that fails, all at once: whatever happens, nothing is lost and nothing stays.
#include <atomic>
#include <set>
#include <thread>

#include "base/log.h"
#include "base/random.h"
#include "codec/system_keys.h"
#include "raw/raw.h"
#include "support/tenant_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr unsigned threads_count = 8;
constexpr unsigned names_count = 5;
constexpr uint64_t quota_keys = 30;

class RawLife : public TenantFixture {
 protected:
  uint64_t now() const { return clock_.unix_ms(); }

  void write(Keyspaces& keyspaces, Random& random, const std::string& name) {
    const auto tenant = keyspaces.tenant(name);
    if (!tenant) return;
    const auto key = [&] { return "k" + std::to_string(random.below(40)); };
    const uint64_t ttl_ms = random.one_in(2) ? random.below(300'000) : 0;
    switch (random.below(4)) {
      case 0: discard(raw_.remove(**tenant, keyspace_admin, key())); break;
      case 1: {
        std::vector<std::string> keys;
        std::vector<RawOperation> operations;
        for (uint64_t i = random.below(60) + 1; i > 0; i--) keys.push_back(key());
        for (const std::string& one : keys)
          operations.push_back(
              {.kind = random.one_in(2) ? RawOperation::Kind::put : RawOperation::Kind::remove,
               .key = one,
               .value = "batch",
               .ttl_ms = ttl_ms});
        discard(raw_.batch(**tenant, keyspace_admin, operations));
        break;
      }
      default:
        discard(raw_.put(**tenant, random.one_in(2) ? writer : keyspace_admin, key(),
                         random.bytes(random.below(50)), {.ttl_ms = ttl_ms}));
    }
  }

  void hold(Keyspaces& keyspaces, Gc& gc, Random& random, const std::string& name) {
    const auto keyspace = keyspaces.load(name);
    const KeyspaceId id =
        keyspace ? keyspace->id : KeyspaceId{static_cast<uint32_t>(random.below(30) + 1)};
    const std::string service = "s" + std::to_string(random.below(2));
    const uint64_t at_ms = now() - random.below(200'000);
    if (random.one_in(3))
      discard(gc.delete_barrier(id, service, root));
    else
      discard(gc.set_barrier(id, service, timestamp_at_ms(at_ms), random.below(300) + 1, root));
  }

  void step(Keyspaces& keyspaces, Gc& gc, Random& random) {
    const std::string name = random.one_in(names_count)
                                 ? std::string(default_keyspace_name)
                                 : "n" + std::to_string(random.below(names_count));
    switch (random.below(20)) {
      case 0:
        discard(keyspaces.create(
            {.name = name, .id = {}, .config = {}, .request_id = random.one_in(2) ? name : ""},
            root));
        break;
      case 1:
        discard(keyspaces.set_state(name, static_cast<KeyspaceState>(random.below(4)), root));
        break;
      case 2: hold(keyspaces, gc, random, name); break;
      case 3: {
        const uint64_t jump_ms = random.below(100'000);
        if (random.one_in(4))
          clock_.jump_to_ms(now() - std::min(jump_ms, now() - start_ms));
        else
          clock_.advance_ms(jump_ms);
        break;
      }
      default: write(keyspaces, random, name);
    }
  }

  void check(Keyspaces& keyspaces) {
    const Bytes first = encode(KeyspaceMetaKey{KeyspaceId{0}});
    std::vector<Keyspace> all;
    ASSERT_OK(memory_.scan({.begin = first, .end = "\x04/keyspaces/meta0"},
                           [&](ByteView, ByteView value) {
                             all.push_back(decode_keyspace(value).value());
                             return Visit::go_on;
                           }));
    for (const Keyspace& keyspace : all) {
      const Figures stored = stored_figures(memory_, keyspace.id).value();
      EXPECT_EQ(stored, recount(memory_, keyspace.id).value()) << keyspace.id.value;
      // Without latches others write behind the back of the figures.
      if (keyspace.quota.keys != 0 && GetParam() == Way::latched) {
        EXPECT_LE(stored.keys, static_cast<int64_t>(quota_keys));
      }
      if (keyspace.purged_at_s != 0) {
        EXPECT_EQ(entries_of(keyspace.id), 0u);
      }
      check_notes(keyspace);
    }
    if (GetParam() != Way::latched) return;  // there they may be a second old
    for (const auto& tenant : keyspaces.active_tenants()) {
      auto figures = tenant->figures();
      while (!figures) figures = tenant->figures();
      EXPECT_EQ(*figures, recount(memory_, tenant->id()).value()) << tenant->id().value;
    }
  }

  // Each entry that expires has its note, each note its entry of the due index.
  void check_notes(const Keyspace& keyspace) {
    if (keyspace.state == KeyspaceState::tombstone) return;
    std::set<std::pair<uint64_t, Bytes>> wanted;
    std::set<std::pair<uint64_t, Bytes>> notes;
    const auto [raw_begin, raw_end] = keyspace_interval(KeyMode::raw, keyspace.id);
    ASSERT_OK(memory_.scan({.begin = raw_begin, .end = raw_end}, [&](ByteView key, ByteView value) {
      const auto stored = decode_raw_value(value);
      if (stored->expires_at_ms != 0) wanted.emplace(stored->expires_at_ms, key.substr(4));
      return Visit::go_on;
    }));
    Bytes begin;
    append_keyspace_prefix(begin, KeyMode::txn, keyspace.id);
    begin += 'g';
    ASSERT_OK(memory_.scan({.begin = begin, .end = prefix_end(begin)}, [&](ByteView key, ByteView) {
      const auto note = decode<GarbageKey>(key);
      notes.emplace(note->due_ms, note->target);
      return Visit::go_on;
    }));
    EXPECT_EQ(notes, wanted) << keyspace.id.value;
    uint64_t last_due_ms = 0;
    ASSERT_OK(memory_.scan({.begin = "\x04/keyspaces/due/", .end = "\x04/keyspaces/due0"},
                           [&](ByteView key, ByteView) {
                             const auto due = decode<KeyspaceDueKey>(key);
                             if (due->keyspace == keyspace.id && due->job == DueJob::garbage)
                               last_due_ms = std::max(last_due_ms, due->due_ms);
                             return Visit::go_on;
                           }));
    for (const auto& [due_ms, target] : notes)
      EXPECT_LT(due_ms, last_due_ms + due_bucket_ms) << keyspace.id.value << " " << target;
  }

  // Nothing is left to do, and nothing that expired is left.
  void drain(Collector& collector) {
    clock_.advance_ms(10ull * 24 * 3600 * 1000);
    for (int i = 0; i < 1'000'000; i++) {
      const auto next_ms = collector.step();
      if (next_ms && !*next_ms) return;
      if (next_ms && **next_ms > 0) clock_.advance_ms(**next_ms);
    }
    ADD_FAILURE() << "never done";
  }

  Raw raw_;
};
INSTANTIATE_TEST_SUITE_P(BothWays, RawLife, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(RawLife, NothingIsLostAndNothingStays) {
  const uint64_t seed = test_seed(7'380);
  setup_log(LogLevel::error, LogFormat::text);
  FaultyEngine faulty(memory_, {.seed = seed,
                                .fail_read_one_in = 300,
                                .fail_commit_one_in = 100,
                                .conflict_one_in = 50,
                                .maybe_one_in = 100});
  Transactor transactor(faulty, clock_, {.way = GetParam(), .check_scope = true});
  const MapHandle map{faulty, transactor, clock_};
  const KeyspacesOptions options{.archive_retention_ms = 60'000, .tenants_max = 3};
  auto keyspaces = Keyspaces::open(map, options);
  while (!keyspaces) keyspaces = Keyspaces::open(map, options);
  Gc gc(map, (*keyspaces)->changes());
  ASSERT_OK(keyspaces_->set_quota(default_keyspace_name, {.keys = quota_keys}, root));
  Collector collector(**keyspaces, gc, {.slice_notes = 5, .slice_entries = 10});
  collector.own(Model::raw, raw_);
  for (int round = 0; round < 5; round++) {
    std::atomic<unsigned> working = threads_count;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < threads_count; i++)
      threads.emplace_back([&, i] {
        Random random(seed + 100 * round + i);
        for (uint64_t n = test_rounds(1'000); n > 0; n--) step(**keyspaces, gc, random);
        working--;
      });
    while (working > 0) discard(collector.step());
    for (std::thread& thread : threads) thread.join();
    check(**keyspaces);
    if (HasFailure()) return;
  }
  drain(collector);
  check(**keyspaces);
  // How much of it was done meanwhile is up to the scheduler; by now all of it is.
  EXPECT_GT(collector.totals().notes, 0u);
  EXPECT_GT(collector.totals().purged_bytes, 0u);
  EXPECT_EQ(entries_in("\x04/keyspaces/due/", "\x04/keyspaces/due0"), 0u);
}

}  // namespace
}  // namespace trellis
