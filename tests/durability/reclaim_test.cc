// What was removed leaves the disk when the engine is told, unread, and nothing else does.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <map>
#include <thread>

#include "store_fixture.h"
#include "support/power_cutter.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using Model = std::map<Bytes, Bytes>;

Bytes key_of(uint64_t number) { return fmt::format("k{:06}", number); }

Status remove_all(Engine& engine, ByteView begin, ByteView end) {
  Commit one;
  one.writes.remove_range(begin, end);
  one.durability = Durability::off;
  return commit(engine, one);
}

Model stored(Engine& engine, ByteView prefix) {
  Model all;
  Bytes from(prefix);
  for (;;) {
    const auto page =
        engine.scan({.begin = from, .end = prefix_end(prefix)}, [&](ByteView key, ByteView value) {
          all.emplace(key, value);
          return Visit::go_on;
        });
    EXPECT_TRUE(page.has_value());
    if (!page || !page->resume) return all;
    from = *page->resume;
  }
}

class Reclaim : public StoreFixture {
 protected:
  uint64_t table_bytes() const {
    uint64_t bytes = 0;
    for (const std::string& file : files_ending(".sst")) bytes += files_->read_file(file).size();
    return bytes;
  }

  static constexpr int entries = 2'000;
  static void fill(Engine& engine, ByteView prefix) {
    Random random(prefix[0]);
    Commit all;
    for (int i = 0; i < entries; i++)
      all.writes.put(Bytes(prefix) + std::to_string(i), random.bytes(1'000));
    ASSERT_TRUE(commit(engine, all).has_value());
  }
};

TEST_F(Reclaim, TheDiskGetsItBack) {
  auto engine = open();
  for (const char* prefix : {"a", "b", "c"}) fill(*engine, prefix);
  ASSERT_TRUE(engine->compact().has_value());
  const uint64_t full = table_bytes();
  ASSERT_GT(full, 3u * entries * 1'000);
  ASSERT_TRUE(remove_all(*engine, "b", "c").has_value());
  std::atomic<bool> canceled = true;
  ASSERT_TRUE(engine->reclaim({{"b", "c"}}, &canceled).has_value());
  EXPECT_GE(table_bytes(), full) << "nothing was done";
  canceled = false;
  ASSERT_TRUE(engine->reclaim({{"b", "c"}}, &canceled).has_value());
  EXPECT_LT(table_bytes(), full * 7 / 10);
  EXPECT_EQ(stored(*engine, "a").size(), static_cast<size_t>(entries));
  EXPECT_EQ(stored(*engine, "b").size(), 0u);
  EXPECT_EQ(stored(*engine, "c").size(), static_cast<size_t>(entries));
}

// Who reads what is damaged here fails.
TEST_F(Reclaim, WhatNobodySeesIsNotRead) {
  auto engine = open();
  for (const char* prefix : {"a", "b", "c"}) fill(*engine, prefix);
  ASSERT_TRUE(engine->compact().has_value());
  engine.reset();
  for (const std::string& table : files_ending(".sst")) {
    const size_t bytes = files_->read_file(table).size();
    if (bytes > 1'000'000) flip_byte(table, bytes / 2);
  }
  engine = open();
  ASSERT_FALSE(engine->scan({.begin = "b", .end = "c", .entries_max = 10'000, .bytes_max = 1 << 30},
                            [](ByteView, ByteView) { return Visit::go_on; }))
      << "the damage is elsewhere";
  const uint64_t full = table_bytes();
  ASSERT_TRUE(remove_all(*engine, "b", "c").has_value());
  ASSERT_TRUE(put(*engine, "b7", "here").has_value());
  ASSERT_TRUE(engine->reclaim({{"b", "c"}}, nullptr).has_value());
  EXPECT_LT(table_bytes(), full * 7 / 10);
  EXPECT_EQ(get(*engine, "b7"), "here");
  EXPECT_EQ(get(*engine, "b1000"), "(none)");
  EXPECT_EQ(stored(*engine, "a").size(), static_cast<size_t>(entries));
  EXPECT_EQ(stored(*engine, "c").size(), static_cast<size_t>(entries));
}

// A map beside the store, changed as it is.
class ReclaimModel : public Reclaim {
 protected:
  static constexpr uint64_t keys = 2'000;

  uint64_t some_key() { return random_.below(keys); }

  void put_some(uint64_t begin) {
    Commit all;
    all.durability = Durability::off;
    for (int i = 0; i < 200; i++) {
      const Bytes key = key_of(random_.one_in(2) ? some_key() : begin + random_.below(100));
      all.writes.put(key, model_[key] = random_.bytes(random_.below(2'000)));
    }
    ASSERT_TRUE(commit(*engine_, all).has_value());
  }

  void remove_some(uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; i++) {
      Commit one;
      one.writes.remove(key_of(i));
      one.durability = Durability::off;
      ASSERT_TRUE(commit(*engine_, one).has_value());
      model_.erase(key_of(i));
    }
  }

  void remove_interval(uint64_t begin, uint64_t end) {
    ASSERT_TRUE(remove_all(*engine_, key_of(begin), key_of(end)).has_value());
    model_.erase(model_.lower_bound(key_of(begin)), model_.lower_bound(key_of(end)));
  }

  void reclaim(uint64_t begin, uint64_t end) {
    std::vector<KeyInterval> intervals = {{key_of(begin), key_of(end)}};
    if (begin > 0 && random_.one_in(2))
      intervals.push_back({key_of(0), key_of(some_key() % begin)});
    if (random_.one_in(2)) intervals.push_back({key_of(end), random_.one_in(2) ? "" : "k9"});
    ASSERT_TRUE(engine_->reclaim(intervals, nullptr).has_value());
  }

  void step() {
    const uint64_t begin = some_key();
    const uint64_t end = begin + 1 + random_.below(random_.one_in(4) ? keys : 100);
    switch (random_.below(8)) {
      case 0:
      case 1:
      case 2: return put_some(begin);
      case 3: return remove_some(begin, std::min(end, begin + 100));
      case 4: return remove_interval(begin, end);
      case 5: remove_interval(begin, end); return reclaim(begin, end);
      case 6: return reclaim(begin, end);
      case 7:
        EXPECT_TRUE(engine_->compact().has_value());
        engine_.reset();
        engine_ = open();
    }
  }

  Random random_{test_seed(20261120)};
  std::unique_ptr<RocksdbEngine> engine_ = open();
  Model model_;
};

// Whatever is asked to go, and whatever hides what went: point deletes, ranges, older levels.
TEST_F(ReclaimModel, NothingThatAnyoneReadsChanges) {
  for (uint64_t i = 0; i < test_rounds(600) && !HasFailure(); i++) {
    SCOPED_TRACE(i);
    step();
    ASSERT_TRUE(stored(*engine_, "k") == model_);
  }
}

// RocksDB must not be given a write then (WalSync::check). It goes by reading.
TEST_F(Reclaim, NeedsNoLogThatTakesWrites) {
  auto engine = open();
  for (const char* prefix : {"a", "b", "c"}) fill(*engine, prefix);
  ASSERT_TRUE(remove_all(*engine, "b", "c").has_value());
  engine.reset();
  engine = open();  // all is in tables
  const uint64_t full = table_bytes();
  std::atomic<bool> is_full = true;
  files_->set_write_hook([&](const std::string& path, std::string&) {
    return is_full && path.ends_with(".log") ? rocksdb::IOStatus::NoSpace("full")
                                             : rocksdb::IOStatus::OK();
  });
  ASSERT_FALSE(put(*engine, "k", "v").has_value());
  is_full = false;
  // RocksDB goes on by itself, with the same log.
  Status given_back = engine->reclaim({{"b", "c"}}, nullptr);
  for (int i = 0; i < 3'000 && !given_back; i++) {
    SystemClock().pause_us(10'000);
    given_back = engine->reclaim({{"b", "c"}}, nullptr);
  }
  EXPECT_TRUE(given_back.has_value()) << to_string(given_back.error());
  EXPECT_LT(table_bytes(), full * 7 / 10);
  EXPECT_FALSE(put(*engine, "k", "v").has_value());
}

// Into what is just being given back, by several.
TEST_F(Reclaim, WhatIsWrittenMeanwhileStays) {
  constexpr int writers = 3;
  constexpr uint64_t keys = 3'000;
  const uint64_t rounds = test_rounds(200);
  Random random(test_seed(20261121));
  auto engine = open();
  std::vector<Model> models(writers);
  std::atomic<int> at_work = writers;
  std::vector<std::thread> threads;
  for (int w = 0; w < writers; w++) {
    threads.emplace_back([&, w, random = Random(random.next())]() mutable {
      // Each third key is this one's.
      const auto number = [&] { return random.below(keys) * writers + static_cast<uint64_t>(w); };
      for (uint64_t round = 0; round < rounds; round++) {
        Commit all;
        all.durability = Durability::off;
        for (int i = 0; i < 100; i++) {
          const Bytes key = key_of(number());
          const bool goes = random.one_in(2);
          if (goes) {
            all.writes.remove(key);
            models[w].erase(key);
          } else {
            all.writes.put(key, models[w][key] = random.bytes(500));
          }
        }
        // Most of the time nearly nothing is there.
        if (random.one_in(2)) {
          for (const auto& [key, value] : models[w]) all.writes.remove(key);
          models[w].clear();
        }
        EXPECT_TRUE(commit(*engine, all).has_value());
      }
      at_work--;
    });
  }
  for (int i = 0; i < 2; i++) {
    threads.emplace_back([&, random = Random(random.next())]() mutable {
      while (at_work > 0) {
        const uint64_t begin = random.below(keys * writers);
        const uint64_t end = begin + 1 + random.below(keys * writers);
        EXPECT_TRUE(engine->reclaim({{key_of(begin), key_of(end)}}, nullptr).has_value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Model model;
  for (const Model& one : models) model.insert(one.begin(), one.end());
  EXPECT_TRUE(stored(*engine, "k") == model);
  EXPECT_TRUE(engine->compact().has_value());
  EXPECT_TRUE(stored(*engine, "k") == model);
}

// A compaction that passes over an interval leaves out the deletes that are in it, too.
TEST_F(Reclaim, NoOlderEntryComesToLight) {
  constexpr int count = 16'000;  // in the last level, and enough that there is one above it
  std::unique_ptr<RocksdbEngine> engine;
  std::atomic<int> looks = 0;
  files_->set_write_hook([&](const std::string& path, std::string&) {
    if (engine != nullptr && looks > 0 && path.ends_with(".sst")) {
      looks++;
      std::thread([&] { EXPECT_EQ(get(*engine, "b5"), "(none)"); }).join();
    }
    return rocksdb::IOStatus::OK();
  });
  engine = open();
  Random random(3);
  Commit removal;
  for (int i = 0; i < count; i++) {
    const Bytes key = "b" + std::to_string(i);
    ASSERT_TRUE(put(*engine, key, random.bytes(1'000)).has_value());
    removal.writes.remove(key);
  }
  ASSERT_TRUE(engine->compact().has_value());
  ASSERT_TRUE(put(*engine, "b!", "passed over first").has_value());
  engine.reset();
  engine = open();  // has that in a table
  removal.writes.remove_range("b!", "b!!");
  ASSERT_TRUE(commit(*engine, removal).has_value());
  looks = 1;
  ASSERT_TRUE(engine->reclaim({{"b", "c"}}, nullptr).has_value());
  EXPECT_GT(looks, 3);
  looks = 0;
  EXPECT_EQ(stored(*engine, "b").size(), 0u);
}

// At the worst of times: while it is looked whether anybody sees something, and behind that.
TEST_F(Reclaim, WhatIsWrittenOrLoadedAtAnyStepStays) {
  constexpr int steps_max = 20;
  constexpr uint64_t loaded = 10'000;  // enough for tables
  std::unique_ptr<RocksdbEngine> engine;
  Bytes folder;                  // of what is loaded
  std::atomic<int> step = -1;    // less than 0: not now
  std::atomic<int> load_at = 0;  // the step, or a later one that can
  const auto load_some = [&] {
    const std::unique_ptr<Load> load = engine->begin_load();
    WriteSet puts;
    Random random(1);
    for (uint64_t n = 0; n < loaded; n++) puts.put(folder + key_of(n), random.bytes(900));
    load->put(std::move(puts));
    EXPECT_TRUE(load->commit({}).has_value());
  };
  const auto written_at = [](int number) { return fmt::format("b100{}", number); };
  // In a thread, as others would. A load needs syncs and flushes, so none can wait for it.
  const auto act = [&, reclaims = std::this_thread::get_id()](bool can_load) {
    if (std::this_thread::get_id() != reclaims || step < 0 || step >= steps_max) return;
    const int number = step.exchange(-1);
    std::thread([&] {
      EXPECT_TRUE(put(*engine, written_at(number), "here").has_value());
      if (!can_load || number < load_at) return;
      load_at = steps_max;
      load_some();
    }).join();
    step = number + 1;
  };
  files_->set_read_hook([&] { act(true); });
  files_->set_sync_hook([&](const std::string& path) {
    if (path.ends_with(".log")) act(false);
    return rocksdb::IOStatus::OK();
  });
  for (int first = 0; first < 4; first++) {
    SCOPED_TRACE(first);
    engine = open();
    fill(*engine, "b");
    ASSERT_TRUE(engine->compact().has_value());
    engine.reset();
    engine = open();  // nothing is in its cache
    // A few are seen, so that looking reads them. And nobody else writes to where it is loaded, or
    // it would go through the log.
    ASSERT_TRUE(remove_all(*engine, "b0", "b99").has_value());
    folder = fmt::format("bx{}", first);
    load_at = first;
    step = 0;
    EXPECT_TRUE(engine->reclaim({{"b", "c"}}, nullptr).has_value());
    const int steps = step.exchange(-1);
    EXPECT_GT(steps, 4);
    EXPECT_EQ(load_at, steps_max) << "nothing was loaded";
    for (const bool is_compact : {false, true}) {
      EXPECT_TRUE(!is_compact || engine->compact().has_value());
      EXPECT_EQ(stored(*engine, folder).size(), loaded);
      for (int i = 0; i < steps; i++) EXPECT_EQ(get(*engine, written_at(i)), "here");
    }
    ASSERT_TRUE(remove_all(*engine, "b", "c").has_value());
    engine.reset();
  }
}

// What hides it must not be lost where it went from the tables already.
TEST(ReclaimCut, AllOrNothingAtAnyWrite) {
  setup_log(LogLevel::error, LogFormat::text);  // RocksDB warns of every cut
  PowerCutter cutter(test_seed(20261123));
  SystemClock clock;
  constexpr uint64_t count = 3'000;
  Random random(1);
  int lost = 0;
  int gone = 0;
  for (uint64_t round = 0; round < test_rounds(20) && !testing::Test::HasFailure(); round++) {
    SCOPED_TRACE(round);
    const auto reopen = [&] {
      return cutter.reopen({.path = "/store", .clock = clock, .cache_bytes = 8 << 20});
    };
    std::unique_ptr<RocksdbEngine> engine = reopen();
    ASSERT_NE(engine, nullptr);
    Commit all;
    for (uint64_t i = 0; i < count; i++) all.writes.put(key_of(i), random.bytes(1'000));
    all.durability = Durability::always;
    ASSERT_TRUE(commit(*engine, all).has_value());
    ASSERT_TRUE(random.one_in(2) || engine->compact().has_value());
    Commit removal;
    removal.writes.remove_range(key_of(0), key_of(count));
    removal.writes.put("gone", std::to_string(round));
    removal.durability = Durability::off;
    ASSERT_TRUE(commit(*engine, removal).has_value());
    cutter.arm(20);
    discard(engine->reclaim({{"k", "l"}}, nullptr));
    engine.reset();
    engine = reopen();
    ASSERT_NE(engine, nullptr);
    Value stored_round;
    ASSERT_TRUE(engine->get("gone", stored_round).has_value());
    const bool is_gone = stored_round.found() && stored_round.bytes() == std::to_string(round);
    stored_round = Value();
    EXPECT_EQ(stored(*engine, "k").size(), is_gone ? 0u : count);
    (is_gone ? gone : lost)++;
    ASSERT_TRUE(engine->reclaim({{"k", "l"}}, nullptr).has_value());
    EXPECT_EQ(stored(*engine, "k").size(), is_gone ? 0u : count);
  }
  EXPECT_TRUE(test_scale() == "quick" || (lost > 0 && gone > 0)) << lost << ' ' << gone;
}

}  // namespace
}  // namespace trellis
