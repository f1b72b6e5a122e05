// The view of a transaction against a simple model: reads and scans over its own writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "codec/keyspace_keys.h"
#include "engine/memory_engine.h"
#include "map/transact.h"
#include "support/hooked_engine.h"
#include "support/test_keyspace.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using Model = std::map<Bytes, Bytes>;

Bytes key_of(uint64_t number) { return encode(RawKey{ks, std::to_string(100 + number)}); }

struct Bounds {
  Bytes begin;
  Bytes end;
};

Bounds random_bounds(Random& random) {
  const auto [first, last] = keyspace_interval(KeyMode::raw, ks);
  Bounds bounds{random.one_in(4) ? first : key_of(random.below(40)),
                random.one_in(4) ? last : key_of(random.below(40))};
  if (bounds.begin > bounds.end) std::swap(bounds.begin, bounds.end);
  return bounds;
}

// All entries of an interval, page by page, as the view gives them.
std::vector<std::pair<Bytes, Bytes>> scan_all(View& view, Bounds bounds, bool reverse,
                                              size_t entries_max, size_t bytes_max) {
  std::vector<std::pair<Bytes, Bytes>> entries;
  for (;;) {
    size_t visited = 0;
    const auto page = view.scan({.begin = bounds.begin,
                                 .end = bounds.end,
                                 .reverse = reverse,
                                 .entries_max = entries_max,
                                 .bytes_max = bytes_max},
                                [&](ByteView key, ByteView value) {
                                  entries.emplace_back(key, value);
                                  visited++;
                                  return Visit::go_on;
                                });
    EXPECT_TRUE(page.has_value());
    if (!page) return entries;
    EXPECT_EQ(page->entries, visited);
    EXPECT_LE(visited, entries_max);
    if (!page->resume) return entries;
    EXPECT_GT(visited, 0u) << "a page that ends early has entries";
    (reverse ? bounds.end : bounds.begin) = *page->resume;
  }
}

std::vector<std::pair<Bytes, Bytes>> expected_entries(const Model& model, const Bounds& bounds,
                                                      bool reverse) {
  std::vector<std::pair<Bytes, Bytes>> entries;
  for (const auto& [key, value] : model)
    if (key >= bounds.begin && key < bounds.end) entries.emplace_back(key, value);
  if (reverse) std::reverse(entries.begin(), entries.end());
  return entries;
}

void random_step(Random& random, View& view, Model& model) {
  const Bytes key = key_of(random.below(40));
  switch (random.below(6)) {
    case 0:
    case 1: {
      const Bytes value = random.bytes(random.below(20));
      view.put(key, value);
      model[key] = value;
      break;
    }
    case 2:
      view.remove(key);
      model.erase(key);
      break;
    case 3: {
      if (!random.one_in(3)) break;
      const Bounds bounds = random_bounds(random);
      view.remove_range(bounds.begin, bounds.end);
      model.erase(model.lower_bound(bounds.begin), model.lower_bound(bounds.end));
      break;
    }
    case 4: {
      const Bytes other = key_of(random.below(40));
      const ByteView keys[] = {key, other, key};
      Value values[3];
      ASSERT_TRUE(view.multi_get(keys, values).has_value());
      for (size_t i = 0; i < 3; i++) {
        const auto expected = model.find(Bytes(keys[i]));
        ASSERT_EQ(values[i].found(), expected != model.end());
        if (values[i].found()) {
          ASSERT_EQ(values[i].bytes(), expected->second);
        }
      }
      break;
    }
    default: {
      const Bounds bounds = random_bounds(random);
      const bool reverse = random.one_in(2);
      ASSERT_EQ(scan_all(view, bounds, reverse, 1 + random.below(8), 1 + random.below(200)),
                expected_entries(model, bounds, reverse));
    }
  }
}

class ViewModel : public testing::TestWithParam<Way> {};

TEST_P(ViewModel, ReadsItsOwnWrites) {
  Random random(test_seed(11));
  MemoryEngine engine;
  SystemClock clock;
  Transactor transactor(engine, clock, {.way = GetParam(), .check_scope = true});
  Model model;
  for (uint64_t round = 0; round < test_rounds(400); round++) {
    SCOPED_TRACE(round);
    Model inside = model;
    const bool fails = random.one_in(5);
    const Status status = transactor.transact(Scope::all_of(ks), [&](View& view) -> Status {
      for (uint64_t steps = random.below(30); steps > 0; steps--) {
        random_step(random, view, inside);
        if (testing::Test::HasFatalFailure()) break;
      }
      if (fails) return Error{Code::denied, "changed my mind"};
      return {};
    });
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_EQ(status.has_value(), !fails);
    if (!fails) model = inside;
  }
}

Model stored_in(Engine& engine) {
  const auto [first, last] = keyspace_interval(KeyMode::raw, ks);
  Model stored;
  const auto page = engine.scan({.begin = first, .end = last, .bytes_max = SIZE_MAX},
                                [&](ByteView key, ByteView value) {
                                  stored.emplace(key, value);
                                  return Visit::go_on;
                                });
  EXPECT_TRUE(page.has_value() && !page->resume);
  return stored;
}

// What is committed ahead stays, also if the function fails; it is read as all else.
TEST_P(ViewModel, CommitsAhead) {
  Random random(test_seed(12));
  MemoryEngine engine;
  SystemClock clock;
  Transactor transactor(engine, clock, {.way = GetParam(), .check_scope = true});
  Model model;
  const Bytes prefix = key_of(11).substr(0, key_of(11).size() - 1);  // of 110 to 119
  const ByteView ahead[] = {prefix};
  const auto goes_ahead = [&](const auto& entry) { return entry.first.starts_with(prefix); };
  for (uint64_t round = 0; round < test_rounds(400); round++) {
    SCOPED_TRACE(round);
    Model inside = model;
    const bool fails = random.one_in(3);
    const Status status = transactor.transact(Scope::all_of(ks), [&](View& view) -> Status {
      for (uint64_t steps = random.below(40); steps > 0; steps--) {
        const Bytes key = key_of(random.below(40));
        Value value;
        EXPECT_TRUE(view.get(key, value).has_value());
        EXPECT_EQ(value.found(), inside.contains(key));
        if (random.one_in(3)) {
          view.remove(key);
          inside.erase(key);
        } else {
          inside[key] = random.bytes(random.below(20));
          view.put(key, inside[key]);
        }
        if (!random.one_in(5)) continue;
        EXPECT_TRUE(view.commit_ahead(ahead).has_value());
        std::erase_if(model, goes_ahead);
        std::copy_if(inside.begin(), inside.end(), std::inserter(model, model.end()), goes_ahead);
      }
      if (fails) return Error{Code::denied, "changed my mind"};
      return {};
    });
    ASSERT_EQ(status.has_value(), !fails);
    if (!fails) model = inside;
    ASSERT_EQ(stored_in(engine), model);
  }
}

void expect_read(View& view, const Model& model, const Bytes& key) {
  Value value;
  EXPECT_TRUE(view.get(key, value).has_value());
  const auto expected = model.find(key);
  EXPECT_EQ(value.found(), expected != model.end());
  EXPECT_TRUE(!value.found() || value.bytes() == expected->second);
}

// What a transaction writes that commits much ahead, in order for the most part, and a model of it.
class MuchAhead {
 public:
  MuchAhead(Random& random, Model stored)
      : inside_(stored), stored_(std::move(stored)), random_(random) {}

  void write_some(View& view) {
    if (random_.one_in(8)) remove_one(view);
    put_run(view, run_puts - 3);
    if (random_.one_in(8)) remove_one(view);
    if (random_.one_in(8)) expect_read(view, inside_, key_in(random_.below(next_ + 1)));
    put_run(view, 3);
    if (random_.one_in(2)) put(view, beside + std::to_string(random_.below(5)));
    if (random_.one_in(2)) put(view, key_of(random_.below(5)));
    if (random_.one_in(5)) put(view, key_in(random_.below(next_)));
  }
  void write_less(View& view) { put_run(view, random_.below(run_puts)); }

  void commit_ahead(View& view) {
    const ByteView ahead[] = {run, beside};
    EXPECT_TRUE(view.commit_ahead(ahead).has_value());
    const auto is_ahead = [](const Bytes& key) {
      return key.starts_with(run) || key.starts_with(beside);
    };
    std::erase_if(stored_, [&](const auto& one) { return is_ahead(one.first); });
    for (const auto& [key, value] : inside_)
      if (is_ahead(key)) stored_[key] = value;
    states_.push_back(stored_);
  }

  void read_some(View& view) {
    if (random_.one_in(3))
      expect_read(view, inside_,
                  random_.one_in(2) ? key_in(random_.below(next_ + 1))
                                    : beside + std::to_string(random_.below(5)));
    if (!random_.one_in(4)) return;
    const Bounds all{run, prefix_end(run)};
    EXPECT_TRUE(scan_all(view, all, false, 100, 10'000'000) ==
                expected_entries(inside_, all, false));
  }

  // What is stored afterwards; of a failure, what some call committed ahead.
  bool may_leave(const Model& stored, bool failed) const {
    return failed ? std::ranges::find(states_, stored) != states_.end() : stored == inside_;
  }

  static inline const Bytes run = encode(RawKey{ks, "run"});

 private:
  static constexpr size_t value_bytes = 600'000;  // a load begins with the third part
  static constexpr size_t run_puts = 7;
  static inline const Bytes beside = encode(RawKey{ks, "beside"});
  static Bytes key_in(size_t i) { return run + std::to_string(1'000 + i); }

  void put(View& view, const Bytes& key) {
    inside_[key] = random_.bytes(random_.below(100));
    view.put(key, inside_[key]);
  }
  void put_run(View& view, size_t count) {
    const bool at_once = random_.one_in(2);
    WriteSet puts;
    for (const size_t end = next_ + count; next_ < end; next_++) {
      const Bytes& value = inside_[key_in(next_)] = random_.bytes(value_bytes);
      at_once ? puts.put(key_in(next_), value) : view.put(key_in(next_), value);
    }
    view.put_all(std::move(puts));
  }
  void remove_one(View& view) {
    const Bytes key = key_in(random_.below(next_ + run_puts));
    view.remove(key);
    inside_.erase(key);
  }

  Model inside_;  // as the transaction sees it
  Model stored_;
  std::vector<Model> states_{stored_};
  size_t next_ = 0;
  Random& random_;
};

// Much of it, in order: loaded, where the engine has loads, and read, written and removed as all
// else.
TEST_P(ViewModel, CommitsMuchAhead) {
  Random random(test_seed(13));
  MemoryEngine memory;
  HookedEngine engine(memory);
  SystemClock clock;
  Transactor transactor(engine, clock, {.way = GetParam(), .check_scope = true});
  for (uint64_t round = 0; round < test_rounds(60); round++) {
    SCOPED_TRACE(round);
    MuchAhead much(random, stored_in(memory));
    const bool fails = random.one_in(3);
    const Status status = transactor.transact(Scope::all_of(ks), [&](View& view) -> Status {
      for (uint64_t steps = random.below(8); steps > 0; steps--) {
        much.write_some(view);
        much.commit_ahead(view);
        much.read_some(view);
      }
      if (random.one_in(2)) much.write_less(view);
      if (fails) return Error{Code::denied, "changed my mind"};
      return {};
    });
    ASSERT_EQ(status.has_value(), !fails);
    ASSERT_TRUE(much.may_leave(stored_in(memory), fails));
    // The next round begins a life that has nothing.
    Commit removal;
    removal.writes.remove_range(MuchAhead::run, prefix_end(MuchAhead::run));
    ASSERT_TRUE(commit(engine, removal).has_value());
  }
  const bool may_load = GetParam() == Way::latched;
  EXPECT_TRUE(may_load || engine.loads == 0);
  EXPECT_TRUE(!may_load || engine.loads > 0 || test_scale() == "quick");
}

INSTANTIATE_TEST_SUITE_P(BothWays, ViewModel, testing::Values(Way::latched, Way::expecting),
                         [](const auto& info) {
                           return info.param == Way::latched ? "latched" : "expecting";
                         });

TEST(View, RangesJoin) {
  MemoryEngine engine;
  SystemClock clock;
  Transactor transactor(engine, clock, {.way = {}, .check_scope = true});
  const Status status = transactor.transact(Scope::all_of(ks), [&](View& view) -> Status {
    for (uint64_t i = 0; i < 40; i++) view.put(key_of(i), "v");
    view.remove_range(key_of(10), key_of(20));
    view.remove_range(key_of(30), key_of(35));
    view.remove_range(key_of(5), key_of(10));   // touches the first
    view.remove_range(key_of(15), key_of(32));  // bridges both
    view.put(key_of(12), "back");
    const auto [first, last] = keyspace_interval(KeyMode::raw, ks);
    EXPECT_EQ(scan_all(view, {first, last}, false, 1000, 1000000).size(), 5u + 1 + 5);
    return {};
  });
  EXPECT_TRUE(status.has_value());
}

TEST(View, AddsAreNotReadBack) {
  MemoryEngine engine;
  SystemClock clock;
  Transactor transactor(engine, clock, {.way = {}, .check_scope = true});
  const Bytes counter("x\0\0\7krk\0\0", 9);
  const auto add = [&](View& view) -> Status {
    view.add(counter, 5);
    view.add(counter, -2);
    return {};
  };
  ASSERT_TRUE(transactor.transact(Scope::in(ks), add).has_value());
  Value value;
  ASSERT_TRUE(engine.get(counter, value).has_value());
  EXPECT_EQ(to_hex(value.bytes()), "010000000000000003");
  const Status read = transactor.transact(Scope::all_of(ks), [&](View& view) -> Status {
    view.add(counter, 1);
    Value own;
    return view.get(counter, own);
  });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, Code::invalid);
}

TEST(View, AddsWrapAsTheEnginesDo) {
  MemoryEngine engine;
  SystemClock clock;
  Transactor transactor(engine, clock, {.way = {}, .check_scope = true});
  const Bytes counter("x\0\0\7krk\0\0", 9);
  const Status status = transactor.transact(Scope::in(ks), [&](View& view) -> Status {
    view.add(counter, INT64_MAX);
    view.add(counter, INT64_MAX);
    return {};
  });
  ASSERT_TRUE(status.has_value());
  Value value;
  ASSERT_TRUE(engine.get(counter, value).has_value());
  EXPECT_EQ(to_hex(value.bytes()), "01fffffffffffffffe");
}

TEST(View, WhatATransactionHoldsIsBounded) {
  MemoryEngine engine;
  SystemClock clock;
  Transactor transactor(engine, clock, {.way = Way::expecting, .check_scope = true});
  const Bytes big(1 << 20, 'v');
  const auto put_many = [&](uint64_t first, uint64_t count) {
    return transactor.transact(Scope::all_of(ks), [&](View& view) -> Status {
      for (uint64_t i = first; i < first + count; i++) {
        view.put(key_of(i), big);
        view.put(key_of(i), big);  // overwriting costs nothing
      }
      return {};
    });
  };
  const Status too_much = put_many(0, 33);
  ASSERT_FALSE(too_much.has_value());
  EXPECT_EQ(too_much.error().code, Code::too_large);
  Value value;
  ASSERT_TRUE(engine.get(key_of(0), value).has_value());
  EXPECT_FALSE(value.found());

  for (uint64_t first = 0; first < 75; first += 25) ASSERT_TRUE(put_many(first, 25).has_value());
  const auto read_many = [&](uint64_t count) {
    return transactor.transact(Scope::all_of(ks), [&](View& view) -> Status {
      for (uint64_t i = 0; i < count; i++) {
        Value seen;
        TRY(view.get(key_of(i), seen));
        TRY(view.get(key_of(i), seen));  // again costs nothing
      }
      return {};
    });
  };
  EXPECT_TRUE(read_many(60).has_value());
  const Status read_too_much = read_many(70);
  ASSERT_FALSE(read_too_much.has_value());
  EXPECT_EQ(read_too_much.error().code, Code::too_large);
}

}  // namespace
}  // namespace trellis
