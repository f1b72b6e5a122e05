// How long the collector works and rests, and on how many threads.
#include <condition_variable>
#include <mutex>
#include <set>

#include "support/collector_fixture.h"
#include "support/hooked_engine.h"
#include "tenant/collector.h"

namespace trellis {
namespace collector_test {

class CollectorThreads : public CollectorTest {};
INSTANTIATE_TEST_SUITE_P(BothWays, CollectorThreads, testing::Values(Way::latched, Way::expecting),
                         way_name);

// Small ones get their turn in each slice, whatever it takes. Where no large one takes several all
// have theirs: a heap of them is gone through.
TEST_P(CollectorThreads, NoLargeNoteBeginsLateInASlice) {
  for (const auto when : {CountedView::When::behind_safe_point, CountedView::When::at_once}) {
    owner_.is_at_once_ = when == CountedView::When::at_once;
    owner_.collected_.clear();
    owner_.on_collect_ = [&] { clock_.advance_ms(15); };
    restart({}, {.large_us_max = 20'000});
    ASSERT_OK(collector_->set_pace({.paused = {}, .bytes_per_s = {}, .threads = 1}, root));
    const auto tenant = keyspaces_->tenant(make(owner_.is_at_once_ ? "b" : "a").value().id).value();
    const uint64_t due_ms = clock_.unix_ms();
    for (int i = 0; i < 7; i++) {
      const Bytes target = std::to_string(i);
      const uint64_t bytes = i % 2 == 0 ? 2 << 20 : 100;
      ASSERT_OK(put(*tenant, writer, target, "v"));
      ASSERT_OK(tenant->write(writer, Model::raw, Scope::in(tenant->id()), [&](CountedView& view) {
        view.leave_garbage(due_ms, target, bytes, when);
        return Status();
      }));
    }
    clock_.advance_ms(200'000);
    owner_.left_ = "0";
    owner_.left_times_ = 2;
    using Targets = std::set<Bytes>;
    EXPECT_EQ(collector_->step().value_or(std::nullopt), 0u);
    EXPECT_EQ(owner_.collected_, (Targets{"1", "3", "5"}));
    // Who waits for what is over waits for less.
    EXPECT_EQ(collector_->rest_us(), owner_.is_at_once_ ? 60'000u : 120'000u);
    EXPECT_EQ(collector_->step().value_or(std::nullopt), 0u);
    EXPECT_EQ(owner_.collected_, (Targets{"1", "2", "3", "5"}));
    EXPECT_EQ(collector_->step().value_or(std::nullopt), 0u);
    EXPECT_EQ(owner_.collected_, (Targets{"0", "1", "2", "3", "4", "5", "6"}));
    collect();
    EXPECT_EQ(owner_.collected_.size(), 7u);
    EXPECT_EQ(due_entries(), 0u);
    EXPECT_EQ(recount(memory_, tenant->id()).value(),
              stored_figures(memory_, tenant->id()).value());
  }
}

class PaceTest : public CollectorTest {
 protected:
  // A step of which one commit takes so long.
  uint64_t rest_after_ms(uint64_t took_ms) {
    hooked_.on_commit = [&, took_ms] {
      clock_.advance_ms(took_ms);
      return Status();
    };
    EXPECT_EQ(collector_->step().value_or(std::nullopt), 0u);
    EXPECT_EQ(hooked_.on_commit, nullptr);
    return collector_->rest_us() / 1'000;
  }
  void use_hooks(CollectorOptions options) {
    keyspaces_ = Keyspaces::open(hooked_map_).value();
    gc_.emplace(hooked_map_, keyspaces_->changes());
    collector_.emplace(*keyspaces_, *gc_, options);
    collector_->own(Model::raw, owner_);
  }

  HookedEngine hooked_{memory_};
  Transactor hooked_transactor_{hooked_, clock_, {.way = GetParam(), .check_scope = true}};
  MapHandle hooked_map_{hooked_, hooked_transactor_, clock_};
};
INSTANTIATE_TEST_SUITE_P(BothWays, PaceTest, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(PaceTest, ABurialRestsFourTimesAsLongUpToALimit) {
  use_hooks({.slice_entries = 10});
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  for (int i = 0; i < 100; i++) ASSERT_OK(put(*tenant, writer, std::to_string(i), "v"));
  bury("shop");
  EXPECT_EQ(rest_after_ms(10), 40u);
  EXPECT_EQ(rest_after_ms(20), 80u);
  EXPECT_EQ(rest_after_ms(10'000), 250u);
  EXPECT_EQ(rest_after_ms(10), 40u);
}

TEST_P(PaceTest, RestsLessWhileTheBacklogGrows) {
  use_hooks({.slice_notes = 10});
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  // So many that the last of a slice is due 2 ms after that of the last, while a slice takes 10 ms.
  uint64_t due_ms = start_ms;
  for (int i = 0; i < 1'000; i++)
    ASSERT_OK(leave_at(*tenant, due_ms += i % 5 == 0 ? 1 : 0, std::to_string(i)));
  // And then few.
  for (int i = 1'000; i < 1'500; i++) ASSERT_OK(leave_at(*tenant, due_ms += 10, std::to_string(i)));
  clock_.advance_ms(hour_ms);
  uint64_t last_ms = 40;
  for (int i = 0; i < 100; i++) {
    const uint64_t rest_ms = rest_after_ms(10);
    EXPECT_LE(rest_ms, last_ms) << i;
    last_ms = rest_ms;
    EXPECT_TRUE(i > 0 || rest_ms == 40);
  }
  EXPECT_EQ(last_ms, 2u) << "a quarter of what it takes";
  // It stays so until it has caught up.
  for (int i = 0; i < 49; i++) EXPECT_EQ(rest_after_ms(10), 2u);
  EXPECT_EQ(owner_.collected_.size(), 1'490u);
  collect();
  EXPECT_EQ(owner_.collected_.size(), 1'500u);
  for (int i = 0; i < 20; i++) ASSERT_OK(leave(*tenant, "more" + std::to_string(i)));
  clock_.advance_ms(hour_ms);
  EXPECT_EQ(rest_after_ms(10), 40u);
}

// What became due while the collector was at work is not left for a later look.
TEST_P(PaceTest, GoesOnWithWhatBecameDueMeanwhile) {
  use_hooks({});
  ASSERT_OK(make("shop"));
  const auto tenant = keyspaces_->tenant("shop").value();
  for (int i = 0; i < 50; i++)
    ASSERT_OK(leave_at(*tenant, start_ms + i * second_ms / 10, std::to_string(i)));
  clock_.advance_ms(61 * second_ms);
  for (int i = 0; i < 5; i++) rest_after_ms(second_ms);
  EXPECT_EQ(owner_.collected_.size(), 50u);
}

// A keyspace that fails does not slow the others down; if all fail, it waits.
TEST_P(CollectorThreads, AKeyspaceThatFailsLeavesTheOthersAlone) {
  ASSERT_OK(make("bad"));
  ASSERT_OK(make("good"));
  const auto bad = keyspaces_->tenant("bad").value();
  ASSERT_OK(leave(*bad, "a"));
  store(encode(KeyspaceGcSafePointKey{bad->id()}), "?");
  ASSERT_OK(leave(*keyspaces_->tenant("good").value(), "b"));
  clock_.advance_ms(hour_ms);
  for (int i = 0; i < 4; i++) discard(collector_->step());
  EXPECT_EQ(owner_.collected_, (std::set<Bytes>{"b"}));
  EXPECT_GE(collector_->totals().failed_steps, 2u);
}

// --- several threads, at a pace ---

TEST_P(CollectorThreads, ABurialIsCutWhereTheRangesAre) {
  const KeyspaceId shop = make("shop").value().id;
  const KeyspaceId beside = make("beside").value().id;
  const auto tenant = keyspaces_->tenant(shop).value();
  for (int i = 0; i < 300; i++)
    ASSERT_OK(put(*tenant, writer, std::to_string(1'000 + i), Bytes(i % 7, 'v')));
  ASSERT_OK(leave(*tenant, "1001"));
  ASSERT_OK(put(*keyspaces_->tenant(beside).value(), writer, "kept", "v"));
  const size_t kept = entries_of(beside);
  const Figures figures = stored_figures(memory_, shop).value();
  bury("shop");
  std::vector<Bytes> asked;
  const auto cut = [&](ByteView begin, ByteView end) {
    asked.emplace_back(begin);
    std::vector<Bytes> borders;
    for (int i = 1'010; i < 1'300; i += 40) {
      const Bytes border = encode(RawKey{shop, std::to_string(i)});
      if (border > begin && border < end) borders.push_back(border);
    }
    return borders;
  };
  // Cut anew by each process that goes on with it.
  for (int life = 0; entries_of(shop) > 0; life++) {
    ASSERT_LT(life, 100);
    restart({}, {.slice_entries = 7});
    collector_->cut_at(cut);
    ASSERT_OK(collector_->set_pace({.paused = {}, .bytes_per_s = {}, .threads = 3}, root));
    asked.clear();
    for (int i = 0; i < 4; i++) ASSERT_OK(collector_->step());
    const PurgeProgress progress = load_purge(memory_, shop).value().value();
    const Figures left = recount(memory_, shop).value();
    EXPECT_EQ(static_cast<int64_t>(progress.bytes_done), figures.bytes - left.bytes);
    if (entries_of(shop) > 0) {
      EXPECT_EQ(stored_figures(memory_, shop).value().bytes, left.bytes);
    }
    // What the record of progress says is gone is gone.
    const auto [begin, end] = keyspace_interval(KeyMode::raw, shop);
    EXPECT_EQ(entries_in(begin, std::min(progress.cursor, end)), 0u);
  }
  EXPECT_FALSE(asked.empty());
  collect();
  const PurgeProgress progress = load_purge(memory_, shop).value().value();
  EXPECT_NE(progress.finished_ms, 0u);
  EXPECT_EQ(progress.bytes_done, progress.bytes_total);
  EXPECT_EQ(progress.entries_done, 301u);
  EXPECT_EQ(entries_of(beside), kept);
}

// An owner whose collects meet: each waits until as many are inside as there are threads.
class MeetingOwner final : public GarbageOwner {
 public:
  explicit MeetingOwner(unsigned threads) : threads_(threads) {}
  Result<size_t> collect(Tenant& tenant, std::span<const Garbage> notes) override {
    std::unique_lock lock(mutex_);
    inside_max_ = std::max(inside_max_, ++inside_);
    met_.notify_all();
    met_.wait_for(lock, std::chrono::seconds(30), [&] { return inside_max_ >= threads_; });
    inside_--;
    TRY(tenant.collect(Model::raw, Scope::in(tenant.id()), [&](CountedView& view) {
      for (const Garbage& note : notes) view.forget_garbage(note.due_ms, note.target);
      return Status();
    }));
    return notes.size();
  }
  bool is_shared(const Garbage& note) const override { return note.target == "shared"; }

  const unsigned threads_;
  std::mutex mutex_;
  std::condition_variable met_;
  unsigned inside_ = 0;
  unsigned inside_max_ = 0;
};

TEST_P(CollectorThreads, NotesAreCollectedByAsManyThreadsAsAreSet) {
  restart({}, {.span_notes = 2});
  MeetingOwner owner(3);
  collector_->own(Model::raw, owner);
  ASSERT_OK(collector_->set_pace({.paused = {}, .bytes_per_s = {}, .threads = 3}, root));
  const auto tenant = keyspaces_->tenant(make("shop").value().id).value();
  for (int i = 0; i < 6; i++) ASSERT_OK(leave(*tenant, std::to_string(i)));
  EXPECT_FALSE(collector_->progress(tenant->id()));
  clock_.advance_ms(200'000);
  ASSERT_OK(collector_->step());
  EXPECT_EQ(owner.inside_max_, 3u);
  collect();
  EXPECT_EQ(collector_->totals().notes, 6u);
  EXPECT_FALSE(collector_->progress(tenant->id()));  // it is done
  EXPECT_EQ(recount(memory_, tenant->id()).value().bytes, 0);
}

TEST_P(CollectorThreads, WhatAnOwnerSharesIsCollectedByAllThreads) {
  MeetingOwner owner(4);
  collector_->own(Model::raw, owner);
  ASSERT_OK(collector_->set_pace({.paused = {}, .bytes_per_s = {}, .threads = 4}, root));
  const auto tenant = keyspaces_->tenant(make("shop").value().id).value();
  ASSERT_OK(leave_at(*tenant, clock_.unix_ms(), "shared", 10 << 20));
  clock_.advance_ms(200'000);
  ASSERT_OK(collector_->step());
  EXPECT_EQ(owner.inside_max_, 4u);
}

TEST_P(CollectorThreads, PausedItDoesNothingAlsoAfterARestart) {
  const auto tenant = keyspaces_->tenant(make("shop").value().id).value();
  ASSERT_OK(put(*tenant, writer, "a", "v"));
  ASSERT_OK(leave(*tenant, "a"));
  ASSERT_OK(collector_->set_pace({.paused = true, .bytes_per_s = 5, .threads = 7}, root));
  clock_.advance_ms(200'000);
  EXPECT_EQ(collect(), 0);
  restart();
  ASSERT_OK(collector_->load_pace());
  EXPECT_TRUE(collector_->pace().paused);
  EXPECT_EQ(collector_->pace().bytes_per_s, 5u);
  EXPECT_EQ(collector_->pace().threads, 7u);
  EXPECT_EQ(collect(), 0);
  EXPECT_TRUE(owner_.collected_.empty());
  const auto resumed =
      collector_->set_pace({.paused = false, .bytes_per_s = {}, .threads = {}}, root);
  ASSERT_OK(resumed);
  EXPECT_EQ(resumed->threads, 7u);
  EXPECT_GT(collect(), 0);
  EXPECT_TRUE(owner_.collected_.contains("a"));
  for (const unsigned threads : {0u, collector_threads_max + 1})
    EXPECT_EQ(collector_->set_pace({.paused = {}, .bytes_per_s = {}, .threads = threads}, root)
                  .error()
                  .code,
              Code::invalid);
}

TEST_P(CollectorThreads, WhoSetItsPaceIsInTheLog) {
  const uint64_t before = keyspaces_->changes().revision().value();
  ASSERT_OK(collector_->set_pace({.paused = true, .bytes_per_s = 5, .threads = 7}, root));
  EXPECT_FALSE(collector_->set_pace({.paused = {}, .bytes_per_s = {}, .threads = 0}, root));
  const auto changes = keyspaces_->changes().read(before, 10);
  ASSERT_OK(changes);
  ASSERT_EQ(changes->size(), 1u);
  EXPECT_EQ(changes->at(0).actor, root.name);
  EXPECT_EQ(changes->at(0).action, "collector");
  EXPECT_EQ(changes->at(0).name, "");
  EXPECT_EQ(changes->at(0).detail, "paused, bytes per second 5, threads 7");
}

TEST_P(CollectorThreads, ALimitIsARest) {
  const auto tenant = keyspaces_->tenant(make("shop").value().id).value();
  ASSERT_OK(put(*tenant, writer, "a", Bytes(10'000, 'v')));
  ASSERT_OK(leave(*tenant, "a"));
  ASSERT_OK(collector_->set_pace({.paused = {}, .bytes_per_s = 1'000, .threads = {}}, root));
  clock_.advance_ms(200'000);
  ASSERT_OK(collector_->step());
  EXPECT_TRUE(owner_.collected_.contains("a"));
  EXPECT_GE(collector_->rest_us(), 10'000'000u);
  EXPECT_LT(collector_->rest_us(), 11'000'000u);
}

}  // namespace collector_test
}  // namespace trellis
