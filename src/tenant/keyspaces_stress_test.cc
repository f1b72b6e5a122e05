// Many threads, few names, an engine that fails: whatever happens, nothing is half-made.
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/log.h"
#include "base/random.h"
#include "codec/system_keys.h"
#include "support/tenant_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace keyspaces_stress_test {

constexpr unsigned threads_count = 32;
constexpr unsigned names_count = 12;

uint64_t run_us() {
  if (test_scale() == "quick") return 1'000'000;
  return test_scale() == "long" ? 60'000'000 : 4'000'000;
}

class KeyspacesStress : public TenantFixture {
 protected:
  void run_thread(Keyspaces& keyspaces, Collector& collector, uint64_t seed) {
    Random random(seed);
    const SystemClock watch;
    const uint64_t until_us = watch.monotonic_us() + run_us();
    while (watch.monotonic_us() < until_us) {
      const std::string name = "k" + std::to_string(random.below(names_count));
      step(keyspaces, random, name);
      if (random.one_in(20)) {
        const std::unique_lock lock(collector_mutex_, std::try_to_lock);
        if (lock) discard(collector.step());
      }
      if (random.one_in(50)) clock_.advance_ms(random.below(5'000));
      done_++;
    }
  }

  void step(Keyspaces& keyspaces, Random& random, const std::string& name) {
    switch (random.below(8)) {
      case 0:
      case 1: {
        const bool with_request = random.one_in(2);
        const auto made = keyspaces.create(
            {.name = name,
             .id = random.one_in(10) ? std::optional(random.below(5'000) + 1) : std::nullopt,
             .config = {},
             .request_id = with_request ? std::to_string(random.next()) : ""},
            root);
        if (made) {
          const std::lock_guard lock(made_mutex_);
          EXPECT_TRUE(made_.insert(made->id.value).second) << "id given twice: " << made->id.value;
        }
        break;
      }
      case 2:
      case 3: {
        const auto to = static_cast<KeyspaceState>(random.below(4));
        discard(keyspaces.set_state(name, to, root));
        break;
      }
      case 4:
        if (const auto keyspace = keyspaces.load(name))
          discard(keyspaces.patch_config(keyspace->id, {{"n", std::to_string(random.next())}}, {},
                                         root));
        break;
      case 5:
        discard(keyspaces.rename(name, "k" + std::to_string(random.below(names_count)), root));
        break;
      default:
        if (const auto tenant = keyspaces.tenant(name))
          discard(put(**tenant, random.one_in(2) ? writer : keyspace_admin,
                      std::to_string(random.below(20)), random.bytes(random.below(50))));
    }
  }

  // Every keyspace is whole: its records agree with each other and with the log.
  void check() {
    std::map<uint32_t, Keyspace> metas;
    const Bytes begin = encode(KeyspaceMetaKey{KeyspaceId{0}});
    ASSERT_OK(memory_.scan({.begin = begin, .end = "\x04/keyspaces/meta0"},
                           [&](ByteView, ByteView value) {
                             const auto keyspace = decode_keyspace(value);
                             EXPECT_OK(keyspace);
                             metas[keyspace->id.value] = *keyspace;
                             return Visit::go_on;
                           }));
    std::map<std::string, uint32_t> names;
    ASSERT_OK(memory_.scan({.begin = "\x04/keyspaces/id/", .end = "\x04/keyspaces/id0"},
                           [&](ByteView key, ByteView value) {
                             names[std::string(decode<KeyspaceNameKey>(key)->name)] =
                                 static_cast<uint32_t>(std::stoul(std::string(value)));
                             return Visit::go_on;
                           }));
    size_t living = 0;
    for (const auto& [id, keyspace] : metas) {
      if (keyspace.state != KeyspaceState::tombstone) {
        living++;
        EXPECT_EQ(names[keyspace.name], id) << keyspace.name;
      }
      EXPECT_EQ(stored_figures(memory_, keyspace.id).value(),
                recount(memory_, keyspace.id).value());
      if (keyspace.purged_at_s != 0) {
        EXPECT_EQ(entries_of(keyspace.id), 0u);
      }
    }
    EXPECT_EQ(names.size(), living);
    check_log(metas);
    for (const uint32_t id : made_) EXPECT_TRUE(metas.contains(id)) << id;
  }

  void check_log(std::map<uint32_t, Keyspace>& metas) {
    std::map<uint32_t, Keyspace> logged;
    const uint64_t last = keyspaces_->changes().revision().value();
    uint64_t revision = 0;
    while (revision < last) {
      const auto changes = keyspaces_->changes().read(revision, 10'000);
      ASSERT_OK(changes);
      ASSERT_FALSE(changes->empty());
      for (const Change& change : *changes) {
        EXPECT_EQ(change.revision, ++revision);
        ASSERT_TRUE(change.after.has_value());
        logged[change.keyspace.value] = *change.after;
      }
    }
    EXPECT_EQ(revision, last);
    EXPECT_EQ(logged.size(), metas.size());
    for (const auto& [id, keyspace] : logged) EXPECT_EQ(keyspace, metas[id]);
  }

  std::mutex made_mutex_;
  std::set<uint32_t> made_;
  std::mutex collector_mutex_;
  std::atomic<uint64_t> done_ = 0;
};
INSTANTIATE_TEST_SUITE_P(BothWays, KeyspacesStress, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(KeyspacesStress, NothingIsHalfMade) {
  const uint64_t seed = test_seed(20'261'115);
  setup_log(LogLevel::error, LogFormat::text);  // a line for each change would be most of the work
  FaultyEngine faulty(memory_, {.seed = seed,
                                .fail_read_one_in = 100,
                                .fail_commit_one_in = 50,
                                .conflict_one_in = 50,
                                .maybe_one_in = 50});
  Transactor transactor(faulty, clock_, {.way = GetParam(), .check_scope = true});
  const MapHandle map{faulty, transactor, clock_};
  const KeyspacesOptions options{.archive_retention_ms = 60'000,
                                 .tenants_max = 6,
                                 .changes = {.entries_max = UINT32_MAX}};  // all, to compare with
  auto keyspaces = Keyspaces::open(map, options);
  while (!keyspaces) keyspaces = Keyspaces::open(map, options);
  Gc gc(map, (*keyspaces)->changes());
  Collector collector(**keyspaces, gc);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < threads_count; i++)
    threads.emplace_back([&, i] { run_thread(**keyspaces, collector, seed + i); });
  for (std::thread& thread : threads) thread.join();
  check();
  std::printf("%llu operations, %zu keyspaces, %llu changes\n",
              static_cast<unsigned long long>(done_.load()), made_.size(),
              static_cast<unsigned long long>(keyspaces_->changes().revision().value()));
  EXPECT_GT(faulty.counts().maybes_applied, 0u);
}

}  // namespace keyspaces_stress_test
}  // namespace trellis
