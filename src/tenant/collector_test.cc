#include "tenant/collector.h"

#include <future>

#include "support/collector_fixture.h"
#include "support/hooked_engine.h"
#include "support/recording_engine.h"
#include "tenant/tokens.h"

namespace trellis {
namespace collector_test {

INSTANTIATE_TEST_SUITE_P(BothWays, CollectorTest, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(CollectorTest, CollectsAfterTheLifeTime) {
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  ASSERT_OK(put(*tenant, writer, "a", "1"));
  ASSERT_OK(leave(*tenant, "a"));
  collect();
  EXPECT_TRUE(owner_.collected_.empty());
  clock_.advance_ms(59 * second_ms);
  collect();
  EXPECT_TRUE(owner_.collected_.empty());
  clock_.advance_ms(2 * second_ms);
  collect();
  EXPECT_EQ(owner_.collected_, (std::set<Bytes>{"a"}));
  EXPECT_EQ(due_entries(), 0u);
  EXPECT_EQ(tenant->figures().value(), Figures());
  EXPECT_EQ(recount(memory_, tenant->id()).value(), Figures());
  EXPECT_GE(gc_->load(tenant->id()).value().gc_safe_point, timestamp_at_ms(start_ms));
}

TEST_P(CollectorTest, ABarrierHoldsItAndExplainsItself) {
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  ASSERT_OK(gc_->set_barrier(tenant->id(), "backup-7", timestamp_at_ms(start_ms), 7'200, root));
  clock_.advance_ms(second_ms);
  ASSERT_OK(leave(*tenant, "a"));
  clock_.advance_ms(hour_ms);
  collect();
  EXPECT_TRUE(owner_.collected_.empty());
  const auto why = gc_->explain(tenant->id());
  ASSERT_OK(why);
  EXPECT_EQ(why->held_by.value().service, "backup-7");
  EXPECT_EQ(why->waiting_bytes, 100u);
  EXPECT_NE(why->text.find("backup-7"), std::string::npos) << why->text;
  EXPECT_EQ(due_entries(), 1u);
  // Lifted: the collector hears of it at once.
  ASSERT_OK(gc_->delete_barrier(tenant->id(), "backup-7", root));
  collect();
  EXPECT_EQ(owner_.collected_.size(), 1u);
  collect();
  clock_.advance_ms(hour_ms);
  collect();
  EXPECT_EQ(due_entries(), 0u);
}

TEST_P(CollectorTest, AnExpiredBarrierHoldsNothing) {
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  ASSERT_OK(gc_->set_barrier(tenant->id(), "backup-7", timestamp_at_ms(start_ms), 600, root));
  ASSERT_OK(leave(*tenant, "a"));
  clock_.advance_ms(300 * second_ms);
  collect();
  EXPECT_TRUE(owner_.collected_.empty());
  clock_.advance_ms(301 * second_ms);
  collect();
  EXPECT_EQ(owner_.collected_.size(), 1u);
}

TEST_P(CollectorTest, ManyNotesInSlices) {
  restart({}, {.slice_notes = 10});
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  for (int i = 0; i < 95; i++) {
    ASSERT_OK(leave(*tenant, std::to_string(i)));
    clock_.advance_ms(7 * second_ms);
  }
  clock_.advance_ms(hour_ms);
  EXPECT_GE(collect(), 10);
  EXPECT_EQ(owner_.collected_.size(), 95u);
  EXPECT_EQ(due_entries(), 0u);
  EXPECT_EQ(entries_of(tenant->id()), entries_in(Bytes("x\0\0\1k", 5), Bytes("x\0\0\1l", 5)));
}

// Few transactions for many notes, and no more in one than it can read.
TEST_P(CollectorTest, NotesGoInSpans) {
  restart({}, {.slice_notes = 50, .span_notes = 20, .span_bytes = 1'000});
  ASSERT_OK(collector_->set_pace({.paused = {}, .bytes_per_s = {}, .threads = 1}, root));
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  for (int i = 0; i < 60; i++) ASSERT_OK(leave_at(*tenant, start_ms + i, std::to_string(i), 10));
  char target = 'a';
  for (const uint64_t bytes : {400u, 600u, 1u, 5'000u, 1'000u})
    ASSERT_OK(leave_at(*tenant, start_ms + hour_ms, Bytes(1, target++), bytes));
  ASSERT_OK(leave_at(*tenant, start_ms + hour_ms + 1, "all there is", UINT64_MAX));
  clock_.advance_ms(2 * hour_ms);
  collect();
  EXPECT_EQ(owner_.collected_.size(), 66u);
  // A slice of 50, and one of the rest.
  EXPECT_EQ(owner_.spans_, (std::vector<size_t>{20, 20, 10, 11, 2, 1, 1, 1}));
  EXPECT_EQ(tenant->figures().value(), Figures());
  EXPECT_EQ(recount(memory_, tenant->id()).value(), Figures());
}

// --- what makes no sense ---

TEST_P(CollectorTest, ADueEntryWithoutSenseIsPassedOver) {
  const Bytes due = "\x04/keyspaces/due/";
  store(due + "?", "\x01");                                      // in front of all others
  store(due + Bytes(8, '\0') + Bytes("\0\0\1\x7f", 4), "\x01");  // a job that there is not
  store(due + Bytes(8, '\xff') + "x", "\x01");                   // behind them
  EXPECT_EQ(collector_->step().value(), std::nullopt);
  ASSERT_OK(make("shop"));
  ASSERT_OK(leave(*keyspaces_->tenant("shop").value(), "a"));
  clock_.advance_ms(hour_ms);
  collect();
  collect();
  EXPECT_EQ(owner_.collected_, (std::set<Bytes>{"a"}));
  EXPECT_EQ(due_entries(), 3u) << "they stay, for whoever looks into it";
  EXPECT_GE(collector_->totals().passed_over, 2u);
  EXPECT_LE(collector_->totals().passed_over, 3u) << "each is counted once";
}

TEST_P(CollectorTest, ANoteWithoutSenseIsPassedOver) {
  restart({}, {.slice_notes = 4});
  const KeyspaceId id = make("shop").value().id;
  const auto tenant = keyspaces_->tenant(id).value();
  const Bytes notes("x\0\0\1g", 5);
  for (int i = 0; i < 10; i++) ASSERT_OK(leave_at(*tenant, start_ms + i, std::to_string(i)));
  store(notes, "\x01");  // before all others
  for (int i = 0; i < 9; i++) {
    Bytes key = encode(GarbageKey{id, start_ms + 2, Model::raw, "broken" + std::to_string(i)});
    if (i % 2 == 0) key[13] = '?';  // a model that there is not
    store(key, "?");
  }
  clock_.advance_ms(hour_ms);
  collect();
  EXPECT_EQ(owner_.collected_.size(), 10u);
  EXPECT_EQ(collector_->totals().passed_over, 10u);
  EXPECT_EQ(due_entries(), 0u) << "nothing is left that could be done";
  EXPECT_EQ(entries_in(notes, prefix_end(notes)), 10u);
  EXPECT_EQ(collector_->totals().failed_steps, 0u);
  // What comes later finds its way past them.
  ASSERT_OK(leave(*tenant, "later"));
  clock_.advance_ms(hour_ms);
  collect();
  EXPECT_TRUE(owner_.collected_.contains("later"));
  EXPECT_EQ(collector_->totals().passed_over, 10u);
}

TEST_P(CollectorTest, WhatCannotBeCollectedIsPassedOver) {
  restart({}, {.slice_notes = 4});
  const auto tenant = keyspaces_->tenant(make("shop").value().id).value();
  for (int i = 0; i < 10; i++) ASSERT_OK(leave(*tenant, std::to_string(i)));
  owner_.broken_ = "5";
  ASSERT_OK(tenant->write(writer, Model::fs, Scope::in(tenant->id()), [&](CountedView& view) {
    view.leave_garbage(start_ms, "nobody's", 1);
    return Status();
  }));
  clock_.advance_ms(hour_ms);
  collect();
  EXPECT_EQ(owner_.collected_.size(), 9u);
  EXPECT_EQ(collector_->totals().passed_over, 2u);
  // Whoever waits for the garbage to go does not wait for these.
  const auto why = collector_->explain(tenant->id());
  ASSERT_OK(why);
  EXPECT_EQ(why->waiting_notes, 0u);
  EXPECT_EQ(why->broken_notes, 2u);
  EXPECT_FALSE(why->oldest_due_ms.has_value());
  EXPECT_EQ(collector_->totals().failed_steps, 0u);
  EXPECT_EQ(due_entries(), 1u) << "it is tried again";
  EXPECT_GT(collector_->step().value(), 0u) << "after a while";
  EXPECT_EQ(recount(memory_, tenant->id()).value(), tenant->figures().value());
  owner_.broken_.reset();
  clock_.advance_ms(hour_ms);
  collect();
  EXPECT_TRUE(owner_.collected_.contains("5"));
}

// What a slice removed is not looked for again: an engine may have to step over it.
TEST_P(CollectorTest, ASliceBeginsWhereTheLastOneEnded) {
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  for (int i = 0; i < 31; i++) ASSERT_OK(leave(*tenant, std::to_string(i)));
  clock_.advance_ms(hour_ms);
  RecordingEngine recording(memory_);
  Transactor transactor(recording, clock_, {.way = GetParam(), .check_scope = true});
  const MapHandle map{recording, transactor, clock_};
  const auto keyspaces = Keyspaces::open(map).value();
  Gc gc(map, keyspaces->changes());
  Collector collector(*keyspaces, gc, {.slice_notes = 10});
  collector.own(Model::raw, owner_);
  const Bytes first = encode(GarbageKey{tenant->id(), start_ms, Model::raw, "0"});
  for (int slice = 0; slice < 3; slice++) {
    recording.take();
    ASSERT_OK(collector.step());
    EXPECT_EQ(owner_.collected_.size(), 10u * (slice + 1));
    for (const EngineAccess& access : recording.take()) {
      const bool of_notes = access.begin.starts_with(first.substr(0, 5));  // 'x', keyspace, 'g'
      if (access.kind != EngineAccess::Kind::scan || !of_notes) continue;
      EXPECT_EQ(access.begin < first, slice == 0) << slice;
    }
  }
  // One that was left before in the meantime is found all the same.
  ASSERT_OK(leave_at(*tenant, start_ms - hour_ms, "old"));
  while (due_entries() > 0) {
    ASSERT_OK(collector.step());
    clock_.advance_ms(second_ms);
  }
  EXPECT_TRUE(owner_.collected_.contains("old"));
}

TEST_P(CollectorTest, ArchivedRetiresAndIsPurged) {
  restart({.archive_retention_ms = hour_ms}, {.slice_entries = 100});
  const KeyspaceId id = make("shop").value().id;
  const KeyspaceId neighbour = make("next").value().id;
  Tokens tokens(map_, keyspaces_->changes());
  ASSERT_OK(tokens.create(id, Role::read, "ci", 0, root));
  for (const char* name : {"shop", "next"}) {
    const auto tenant = keyspaces_->tenant(name).value();
    for (int i = 0; i < 1'000; i++)
      ASSERT_OK(put(*tenant, writer, std::to_string(i), std::string(20, 'x')));
    ASSERT_OK(leave(*tenant, "0"));
  }
  const size_t neighbours = entries_of(neighbour);
  archive("shop");
  EXPECT_EQ(keyspaces_->load(id).value().retire_at_ms, clock_.unix_ms() + hour_ms);
  clock_.advance_ms(hour_ms - 1);
  collect();
  EXPECT_EQ(keyspaces_->load(id).value().state, KeyspaceState::archived);
  clock_.advance_ms(1);
  ASSERT_EQ(collector_->step().value(), 0u);
  EXPECT_EQ(keyspaces_->load(id).value().state, KeyspaceState::tombstone);
  EXPECT_REASON(keyspaces_->load("shop"), Code::not_found, "keyspace_not_found");

  ASSERT_EQ(collector_->step().value(), 0u);
  ASSERT_EQ(collector_->step().value(), 0u);
  const auto under_way = load_purge(memory_, id).value().value();
  EXPECT_EQ(under_way.finished_ms, 0u);
  EXPECT_GT(under_way.bytes_total, 20'000u);
  collect();
  const auto done = load_purge(memory_, id).value().value();
  EXPECT_GT(done.finished_ms, 0u);
  EXPECT_EQ(done.bytes_done, done.bytes_total);
  EXPECT_EQ(entries_of(id), 0u);
  EXPECT_EQ(entries_of(neighbour), neighbours - 2);  // its note and the key it named
  EXPECT_TRUE(tokens.list(id).value_or(std::vector<Token>()).empty());
  EXPECT_EQ(due_entries(), 0u);

  // What is left keeps the id from being given again, and is not listed.
  EXPECT_GT(keyspaces_->load(id).value().purged_at_s, 0u);
  EXPECT_EQ(keyspaces_->list(KeyspaceId{0}, 100).value().keyspaces.size(), 2u);
  EXPECT_REASON(
      keyspaces_->create({.name = "x", .id = id.value, .config = {}, .request_id = {}}, root),
      Code::exists, "keyspace_exists");
  EXPECT_NE(make("shop").value().id, id);
}

TEST_P(CollectorTest, UndoKeepsEverything) {
  restart({.archive_retention_ms = hour_ms});
  const KeyspaceId id = make("shop").value().id;
  ASSERT_OK(put(*keyspaces_->tenant("shop").value(), writer, "k", "v"));
  archive("shop");
  clock_.advance_ms(hour_ms - 1);
  ASSERT_OK(keyspaces_->set_state("shop", KeyspaceState::disabled, root));
  EXPECT_EQ(keyspaces_->load(id).value().retire_at_ms, 0u);
  clock_.advance_ms(10 * hour_ms);
  collect();
  EXPECT_EQ(due_entries(), 0u);
  EXPECT_EQ(keyspaces_->load(id).value().state, KeyspaceState::disabled);
  EXPECT_GT(entries_of(id), 0u);
}

TEST_P(CollectorTest, ABarrierHoldsABurial) {
  const KeyspaceId id = make("shop").value().id;
  ASSERT_OK(put(*keyspaces_->tenant("shop").value(), writer, "k", "v"));
  ASSERT_OK(gc_->set_barrier(id, "backup-7", timestamp_at_ms(start_ms), 7'200, root));
  bury("shop");
  collect();
  EXPECT_EQ(load_purge(memory_, id).value().value().blocker, "backup-7");
  EXPECT_GT(entries_of(id), 0u);
  clock_.advance_ms(7'201 * second_ms);
  collect();
  EXPECT_EQ(entries_of(id), 0u);
  EXPECT_EQ(load_purge(memory_, id).value().value().blocker, "");
}

// Notes of many minutes, all held: one look at them is enough, however long they are held.
TEST_P(CollectorTest, WhatIsHeldIsLookedAtOnce) {
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  ASSERT_OK(gc_->set_barrier(tenant->id(), "backup-7", timestamp_at_ms(start_ms), 7'200, root));
  for (int i = 0; i < 20; i++) {
    ASSERT_OK(leave(*tenant, std::to_string(i)));
    clock_.advance_ms(60 * second_ms);
  }
  for (int i = 0; i < 100; i++) {
    ASSERT_OK(collector_->step());
    clock_.advance_ms(1);
  }
  EXPECT_EQ(due_entries(), 1u);
}

// The notes of a tombstone go with the rest of it.
TEST_P(CollectorTest, GarbageOfATombstoneIsNotCollected) {
  const KeyspaceId id = make("shop").value().id;
  ASSERT_OK(leave(*keyspaces_->tenant("shop").value(), "a"));
  ASSERT_OK(gc_->set_barrier(id, "backup-7", timestamp_at_ms(start_ms), never_expires, root));
  bury("shop");
  clock_.advance_ms(hour_ms);
  collect();
  EXPECT_EQ(collector_->totals().failed_steps, 0u);
  EXPECT_EQ(due_entries(), 1u);  // of the burial
  // Lifted: the burial goes on at once.
  int woken = 0;
  gc_->on_due([&] { woken++; });
  ASSERT_OK(gc_->delete_barrier(id, "backup-7", root));
  EXPECT_EQ(woken, 1);
  collect();
  EXPECT_EQ(entries_of(id), 0u);
  clock_.advance_ms(hour_ms);
  collect();
  EXPECT_TRUE(owner_.collected_.empty());
  EXPECT_EQ(due_entries(), 0u);
}

TEST_P(CollectorTest, FiguresFallWithABurial) {
  restart({}, {.slice_entries = 10});
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  for (int i = 0; i < 100; i++) ASSERT_OK(put(*tenant, writer, std::to_string(i), "v"));
  EXPECT_EQ(tenant->figures().value().keys, 100);
  bury("shop");
  for (int i = 0; i < 6; i++) ASSERT_OK(collector_->step());
  EXPECT_LT(tenant->figures().value().keys, 100);
  EXPECT_EQ(tenant->figures().value(), stored_figures(memory_, tenant->id()).value());
}

// A long burial does not hold up the garbage of others.
TEST_P(CollectorTest, EntriesTakeTurns) {
  restart({}, {.slice_entries = 10});
  ASSERT_OK(make("big"));
  ASSERT_OK(make("small"));
  const auto big = keyspaces_->tenant("big").value();
  for (int i = 0; i < 1'000; i++) ASSERT_OK(put(*big, writer, std::to_string(i), "v"));
  ASSERT_OK(leave(*keyspaces_->tenant("small").value(), "a"));
  bury("big");
  clock_.advance_ms(hour_ms);
  for (int i = 0; i < 10; i++) ASSERT_OK(collector_->step());
  EXPECT_EQ(owner_.collected_.size(), 1u);
  EXPECT_GT(entries_of(big->id()), 500u);
}

TEST_P(CollectorTest, IdleKeyspacesCostNothing) {
  for (int i = 0; i < 100; i++) ASSERT_OK(make("k" + std::to_string(i)));
  EXPECT_EQ(due_entries(), 0u);
  EXPECT_EQ(collector_->step().value(), std::nullopt);
}

// Crashes anywhere: every step is repeated until it works, and the result is the same.
TEST_P(CollectorTest, SurvivesFaults) {
  const KeyspaceId id = make("shop").value().id;
  const KeyspaceId other = make("other").value().id;
  FaultyEngine faulty(memory_, {.seed = 3,
                                .fail_read_one_in = 20,
                                .fail_commit_one_in = 10,
                                .conflict_one_in = 10,
                                .maybe_one_in = 10});
  for (const char* name : {"shop", "other"}) {
    const auto tenant = keyspaces_->tenant(name).value();
    for (int i = 0; i < 300; i++) ASSERT_OK(put(*tenant, writer, std::to_string(i), "value"));
    for (int i = 0; i < 100; i++) ASSERT_OK(leave(*tenant, std::to_string(i)));
  }
  bury("shop");
  clock_.advance_ms(hour_ms);
  Transactor transactor(faulty, clock_, {.way = GetParam(), .check_scope = true});
  const MapHandle map{faulty, transactor, clock_};
  Result<std::unique_ptr<Keyspaces>> keyspaces = Keyspaces::open(map);
  while (!keyspaces) keyspaces = Keyspaces::open(map);
  Gc gc(map, (*keyspaces)->changes());
  Collector collector(**keyspaces, gc, {.slice_notes = 7, .slice_entries = 20});
  collector.own(Model::raw, owner_);
  for (int i = 0; i < 10'000 && due_entries() > 0; i++) discard(collector.step());
  EXPECT_EQ(due_entries(), 0u);
  EXPECT_EQ(entries_of(id), 0u);
  EXPECT_EQ(recount(memory_, other).value(), stored_figures(memory_, other).value());
  EXPECT_EQ(recount(memory_, other).value().keys, 200);
  EXPECT_GT(faulty.counts().maybes_applied, 0u);
}

// To give the disk back costs as much for one key as for a million: only much is worth it.
TEST_P(CollectorTest, TheDiskGetsBackWhatIsWorthIt) {
  HookedEngine hooked(memory_);
  Transactor transactor(hooked, clock_, {.way = GetParam(), .check_scope = true});
  const MapHandle map{hooked, transactor, clock_};
  const auto keyspaces = Keyspaces::open(map).value();
  Gc gc(map, keyspaces->changes());
  collector_.emplace(*keyspaces, gc);
  for (const char* name : {"small", "large"}) {
    ASSERT_OK(make(name));
    const auto tenant = keyspaces_->tenant(name).value();
    const int values = std::string_view(name) == "large" ? 20 : 1;
    for (int i = 0; i < values; i++)
      ASSERT_OK(put(*tenant, writer, std::to_string(i), std::string(1'000'000, 'x')));
    bury(name);
    EXPECT_EQ(hooked.reclaims, 0);
    collect();
  }
  EXPECT_GT(hooked.reclaims, 0);
}

// Whoever stops the server does not wait until the disk has everything back: that is begun again.
TEST_P(CollectorTest, StoppingEndsAReclaim) {
  HookedEngine hooked(memory_);
  Transactor transactor(hooked, clock_, {.way = GetParam(), .check_scope = true});
  const MapHandle map{hooked, transactor, clock_};
  const auto keyspaces = Keyspaces::open(map).value();
  Gc gc(map, keyspaces->changes());
  const KeyspaceId id = make("shop").value().id;
  const auto tenant = keyspaces_->tenant("shop").value();
  for (int i = 0; i < 17; i++)
    ASSERT_OK(put(*tenant, writer, std::to_string(i), std::string(1'000'000, 'x')));
  bury("shop");
  collector_.emplace(*keyspaces, gc);
  hooked.on_reclaim = [&] { collector_->stop(); };
  while (hooked.reclaims == 0) ASSERT_OK(collector_->step());
  EXPECT_EQ(load_purge(memory_, id).value().value().finished_ms, 0u);
  EXPECT_EQ(due_entries(), 1u);
  const int reclaims = hooked.reclaims;
  collector_.emplace(*keyspaces, gc);
  collect();
  EXPECT_GT(hooked.reclaims, reclaims);
  EXPECT_GT(load_purge(memory_, id).value().value().finished_ms, 0u);
  EXPECT_EQ(due_entries(), 0u);
}

// A clock that is a year ahead for a moment: the safe point goes no further than the garbage.
TEST_P(CollectorTest, TheSafePointGoesNoFurtherThanItMust) {
  const KeyspaceId id = make("shop").value().id;
  const auto tenant = keyspaces_->tenant(id).value();
  ASSERT_OK(leave(*tenant, "a"));
  ASSERT_OK(leave_at(*tenant, start_ms + 5 * second_ms, "b"));
  clock_.jump_to_ms(start_ms + 365 * 24 * hour_ms);
  collect();
  EXPECT_EQ(owner_.collected_.size(), 2u);
  clock_.jump_to_ms(start_ms + 10 * second_ms);
  EXPECT_LE(gc_->load(id).value().txn_safe_point, timestamp_at_ms(clock_.unix_ms()));
  EXPECT_OK(gc_->set_barrier(id, "backup-7", timestamp_at_ms(clock_.unix_ms()), 600, root));
}

TEST_P(CollectorTest, TimesBehindTheLastTimestampCome) {
  clock_.jump_to_ms(ms_of_timestamp(UINT64_MAX) + 1);
  ASSERT_OK(leave(*keyspaces_->tenant(make("shop").value().id).value(), "a"));
  clock_.advance_ms(61 * second_ms);
  EXPECT_GT(collect(), 0);
  EXPECT_EQ(owner_.collected_.size(), 1u);
}

// The safe point is ahead of a clock that was set back: what is not due yet is left alone.
TEST_P(CollectorTest, CollectsNothingBeforeItIsDue) {
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  ASSERT_OK(leave(*tenant, "a"));
  clock_.advance_ms(hour_ms);
  collect();
  EXPECT_EQ(owner_.collected_.size(), 1u);
  clock_.jump_to_ms(start_ms);
  ASSERT_OK(leave_at(*tenant, start_ms + second_ms, "b"));
  collect();
  EXPECT_EQ(owner_.collected_.size(), 1u);
  clock_.advance_ms(hour_ms);
  collect();
  EXPECT_EQ(owner_.collected_.size(), 2u);
}

// The clock is set back while the collector works on what was due before.
class ClockGoesBack : public CollectorTest {
 protected:
  void SetUp() override {
    CollectorTest::SetUp();
    collector_.reset();
    gc_.emplace(hooked_map_, keyspaces_->changes());
    hooked_keyspaces_ = Keyspaces::open(hooked_map_, {.archive_retention_ms = hour_ms}).value();
    collector_.emplace(*hooked_keyspaces_, *gc_);
    collector_->own(Model::raw, owner_);
  }
  // A step that begins at the one time and ends at the other.
  void step(uint64_t begin_ms, uint64_t end_ms) {
    clock_.jump_to_ms(begin_ms);
    hooked_.after_get = [&, end_ms] { clock_.jump_to_ms(end_ms); };
    ASSERT_OK(collector_->step());
    hooked_.after_get = nullptr;
    clock_.jump_to_ms(end_ms);
  }

  HookedEngine hooked_{memory_};
  Transactor hooked_transactor_{hooked_, clock_, {.way = GetParam(), .check_scope = true}};
  MapHandle hooked_map_{hooked_, hooked_transactor_, clock_};
  std::unique_ptr<Keyspaces> hooked_keyspaces_;
};
INSTANTIATE_TEST_SUITE_P(BothWays, ClockGoesBack, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(ClockGoesBack, NoNoteIsForgotten) {
  const KeyspaceId id = make("shop").value().id;
  const auto tenant = keyspaces_->tenant(id).value();
  ASSERT_OK(gc_->set_barrier(id, "backup-7", timestamp_at_ms(start_ms), never_expires, root));
  ASSERT_OK(leave_at(*tenant, start_ms, "a"));
  ASSERT_OK(leave_at(*tenant, start_ms + 600 * second_ms, "b"));
  for (int i = 0; i < 5; i++) step(start_ms + 601 * second_ms, start_ms + 30 * second_ms);
  ASSERT_OK(gc_->delete_barrier(id, "backup-7", root));
  clock_.jump_to_ms(start_ms + 61 * second_ms);
  collect();
  EXPECT_EQ(owner_.collected_, (std::set<Bytes>{"a"}));
  clock_.jump_to_ms(start_ms + hour_ms);
  collect();
  EXPECT_EQ(owner_.collected_, (std::set<Bytes>{"a", "b"}));
  EXPECT_EQ(due_entries(), 0u);
}

TEST_P(ClockGoesBack, NoRetirementIsForgotten) {
  const KeyspaceId id = make("shop").value().id;
  keyspaces_.swap(hooked_keyspaces_);
  archive("shop");
  keyspaces_.swap(hooked_keyspaces_);
  step(start_ms + hour_ms, start_ms);
  EXPECT_EQ(keyspaces_->load(id).value().state, KeyspaceState::archived);
  clock_.jump_to_ms(start_ms + hour_ms);
  collect();
  EXPECT_EQ(keyspaces_->load(id).value().state, KeyspaceState::tombstone);
}

TEST_P(ClockGoesBack, NoRequestIsKeptForEver) {
  ASSERT_OK(make("shop", "r-1"));
  step(start_ms + 24 * hour_ms, start_ms);
  clock_.jump_to_ms(start_ms + 24 * hour_ms);
  collect();
  EXPECT_REASON(make("shop", "r-1"), Code::exists, "keyspace_exists");
}

TEST_P(CollectorTest, TheThreadWakesUp) {
  ASSERT_OK(make("shop"));
  ASSERT_OK(put(*keyspaces_->tenant("shop").value(), writer, "k", "v"));
  std::promise<void> purged;
  const auto subscription = keyspaces_->changes().subscribe([&] {
    if (keyspaces_->changes().read(0, 1'000).value().back().action == "purge") purged.set_value();
  });
  keyspaces_->on_due([&] { collector_->wake(); });
  collector_->start();
  bury("shop");
  EXPECT_EQ(purged.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  collector_->stop();
}

}  // namespace collector_test
}  // namespace trellis
