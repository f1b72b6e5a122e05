// Random operations on raw data against a simple model, on every engine.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/random.h"
#include "raw/raw_world.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

// What a write would answer, and leave behind, if nothing fails.
struct Prediction {
  Contents after;
  bool refused = false;  // a condition does not hold; then `after` is what was before
  bool was_there = false;
  bool swapped = false;
};

bool holds(const RawCondition& condition, const ModelEntry* entry) {
  switch (condition.kind) {
    case RawCondition::Kind::none: return true;
    case RawCondition::Kind::must_be_absent: return entry == nullptr;
    case RawCondition::Kind::must_exist: return entry != nullptr;
    case RawCondition::Kind::must_equal:
      return entry != nullptr && raw_tag(entry->value) == condition.tag;
  }
  return false;
}

const ModelEntry* find_visible(const Contents& contents, ByteView key, uint64_t now_ms) {
  const auto found = contents.find(key);
  return found != contents.end() && found->second.visible(now_ms) ? &found->second : nullptr;
}

// One writer of the keys that start with its own prefix, which therefore knows what they hold.
class Actor {
 public:
  Actor(RawWorld& world, size_t keyspace, Bytes prefix, uint64_t seed)
      : world_(world), keyspace_(keyspace), prefix_(std::move(prefix)), random_(seed) {
    for (const ByteView name : {ByteView("\0", 1), ByteView("\0\0", 2), ByteView("\xff\xff", 2)})
      names_.push_back(prefix_ + Bytes(name));
    for (int i = 0; i < 20; i++) names_.push_back(prefix_ + "k" + std::to_string(i));
  }

  void step() {
    server_ = random_.below(world_.servers());
    now_ms_ = world_.clock().unix_ms();
    switch (random_.below(10)) {
      case 0: return get();
      case 1: return multi_get();
      case 2:
      case 3: return put();
      case 4: return remove();
      case 5: return compare_and_set();
      case 6:
      case 7: return batch();
      case 8: return scan();
      case 9: return collect();
    }
  }

  const Contents& contents() const { return contents_; }
  void forget_expired() {
    std::erase_if(contents_, [&](const auto& entry) {
      return !entry.second.visible(world_.clock().unix_ms());
    });
  }

 private:
  Tenant& tenant() { return world_.tenant(server_, keyspace_); }
  const Bytes& any_key() { return names_[random_.below(names_.size())]; }
  Bytes any_value() { return random_.bytes(random_.one_in(50) ? 5'000 : random_.below(4)); }
  uint64_t any_ttl_ms() { return random_.one_in(2) ? 0 : 1 + random_.below(50); }
  const ModelEntry* visible(ByteView key) { return find_visible(contents_, key, now_ms_); }

  RawCondition any_condition(ByteView key) {
    const ModelEntry* entry = visible(key);
    switch (random_.below(8)) {
      case 0: return RawCondition::must_be_absent();
      case 1: return RawCondition::must_exist();
      case 2: return RawCondition::must_equal(raw_tag(any_value()));
      case 3: return RawCondition::must_equal(raw_tag(entry != nullptr ? entry->value : ""));
    }
    return {};
  }

  // True if a call that failed says nothing: only what was injected may fail.
  template <class T>
  bool failed(const Result<T>& result) {
    if (result) return false;
    const Code code = result.error().code;
    if (code == Code::refused) return false;
    EXPECT_TRUE(code == Code::unavailable || code == Code::maybe || code == Code::conflict)
        << to_string(result.error());
    return true;
  }
  // Takes over what a write did. True if its answer is worth looking at.
  template <class T>
  bool settle(const Result<T>& result, const Prediction& predicted) {
    if (!failed(result)) {
      EXPECT_EQ(!result.has_value(), predicted.refused);
      contents_ = predicted.after;
      return result.has_value();
    }
    if (result.error().code == Code::maybe) {
      Contents now = world_.stored(keyspace_, prefix_);
      EXPECT_TRUE(now == predicted.after || now == contents_) << "half of a write";
      contents_ = std::move(now);
    }
    return false;
  }

  void expect_entry(const std::optional<RawEntry>& got, const ModelEntry* wanted) {
    ASSERT_EQ(got.has_value(), wanted != nullptr);
    if (!got) return;
    EXPECT_EQ(got->value(), wanted->value);
    EXPECT_EQ(got->expires_at_ms(), wanted->expires_at_ms);
  }

  // --- reads ---

  void get() {
    const Bytes& key = any_key();
    const auto got = world_.raw().get(tenant(), world_.caller(), key);
    if (!failed(got)) expect_entry(*got, visible(key));
  }

  void multi_get() {
    std::vector<ByteView> keys;
    for (uint64_t i = random_.below(8); i > 0; i--) keys.push_back(any_key());
    const auto got = world_.raw().multi_get(tenant(), world_.caller(), keys);
    if (failed(got)) return;
    ASSERT_EQ(got->size(), keys.size());
    for (size_t i = 0; i < keys.size(); i++) expect_entry((*got)[i], visible(keys[i]));
  }

  void scan() {
    RawScan scan{.prefix = prefix_, .reverse = random_.one_in(2)};
    if (random_.one_in(3)) scan.begin = any_key();
    if (random_.one_in(3)) scan.end = any_key();
    scan.limit = 1 + random_.below(6);
    if (random_.one_in(2)) scan.bytes_max = 1 + random_.below(40);
    scan.keys_only = random_.one_in(4);
    Contents wanted;
    for (const auto& [key, entry] : contents_)
      if (entry.visible(now_ms_) && key >= scan.begin && (scan.end.empty() || key < scan.end))
        wanted[key] = {scan.keys_only ? "" : entry.value, entry.expires_at_ms};

    Contents got;
    Bytes last;
    Bytes bound;
    const auto visit = [&](ByteView key, ByteView value, uint64_t expires_at_ms) {
      if (!last.empty()) {
        EXPECT_TRUE(scan.reverse ? key < last : key > last) << "out of order";
      }
      last = key;
      got[Bytes(key)] = {Bytes(value), expires_at_ms};
      return Visit::go_on;
    };
    for (;;) {
      const auto page = world_.raw().scan(tenant(), world_.caller(), scan, visit);
      if (failed(page)) return;
      EXPECT_LE(page->entries, scan.limit);
      if (!page->resume) break;
      bound = *page->resume;
      (scan.reverse ? scan.end : scan.begin) = bound;
    }
    EXPECT_EQ(got, wanted);
  }

  // --- writes ---

  uint64_t expiry(uint64_t ttl_ms) const { return ttl_ms == 0 ? 0 : now_ms_ + ttl_ms; }

  Prediction predict(std::span<const RawOperation> operations) {
    Prediction predicted{.after = contents_};
    for (const RawOperation& operation : operations) {
      const ModelEntry* entry = find_visible(predicted.after, operation.key, now_ms_);
      if (!holds(operation.condition, entry)) return {.after = contents_, .refused = true};
      predicted.was_there = entry != nullptr;
      if (operation.kind == RawOperation::Kind::put)
        predicted.after[Bytes(operation.key)] = {Bytes(operation.value), expiry(operation.ttl_ms)};
      else
        predicted.after.erase(Bytes(operation.key));
    }
    return predicted;
  }

  void put() {
    const Bytes& key = any_key();
    const Bytes value = any_value();
    const RawPut options{.ttl_ms = any_ttl_ms(), .condition = any_condition(key)};
    const RawOperation same{RawOperation::Kind::put, key, value, options.ttl_ms, options.condition};
    const Prediction predicted = predict({&same, 1});
    settle(world_.raw().put(tenant(), world_.caller(), key, value, options), predicted);
  }

  void remove() {
    const Bytes& key = any_key();
    const RawOperation same{RawOperation::Kind::remove, key, {}, 0, any_condition(key)};
    const Prediction predicted = predict({&same, 1});
    const auto removed = world_.raw().remove(tenant(), world_.caller(), key, same.condition);
    if (settle(removed, predicted)) {
      EXPECT_EQ(*removed, predicted.was_there);
    }
  }

  void compare_and_set() {
    const Bytes& key = any_key();
    const ModelEntry* entry = visible(key);
    const Bytes guess = entry != nullptr && random_.one_in(2) ? entry->value : any_value();
    const Bytes value = any_value();
    const uint64_t ttl_ms = any_ttl_ms();
    const auto expected = random_.one_in(3) ? std::nullopt : std::optional<ByteView>(guess);
    const auto desired = random_.one_in(3) ? std::nullopt : std::optional<ByteView>(value);

    Prediction predicted{.after = contents_};
    predicted.swapped = entry == nullptr ? !expected : expected == entry->value;
    if (predicted.swapped && desired) predicted.after[key] = {value, expiry(ttl_ms)};
    if (predicted.swapped && !desired) predicted.after.erase(key);
    std::optional<ModelEntry> current;
    if (!predicted.swapped && entry != nullptr) current = *entry;

    const auto swap =
        world_.raw().compare_and_set(tenant(), world_.caller(), key, expected, desired, ttl_ms);
    if (!settle(swap, predicted)) return;
    EXPECT_EQ(swap->done, predicted.swapped);
    expect_entry(swap->current, current ? &*current : nullptr);
  }

  void batch() {
    const bool large = random_.one_in(20);  // more than are locked one by one
    const bool careful = random_.one_in(4);
    std::vector<Bytes> values;
    std::vector<RawOperation> operations;
    const uint64_t count = random_.below(large ? 300 : 8);
    values.reserve(count);
    for (uint64_t i = 0; i < count; i++) {
      const Bytes& key = any_key();
      RawOperation& operation = operations.emplace_back(RawOperation{.key = key});
      if (careful) operation.condition = any_condition(key);
      if (random_.one_in(3)) {
        operation.kind = RawOperation::Kind::remove;
        continue;
      }
      operation.value = values.emplace_back(any_value());
      operation.ttl_ms = any_ttl_ms();
    }
    const Prediction predicted = predict(operations);
    settle(world_.raw().batch(tenant(), world_.caller(), operations), predicted);
  }

  // Of a note that is there or not, due or not: as a collector may come that is late, or early.
  void collect() {
    const Bytes& key = any_key();
    const auto found = contents_.find(key);
    uint64_t due_ms = now_ms_ - random_.below(50);
    Prediction predicted{.after = contents_};
    if (found != contents_.end() && found->second.expires_at_ms != 0 && !random_.one_in(4)) {
      due_ms = found->second.expires_at_ms;
      if (!found->second.visible(now_ms_)) predicted.after.erase(key);
    } else if (found != contents_.end() && found->second.expires_at_ms == due_ms) {
      predicted.after.erase(key);
    }
    const bool gone = due_ms <= now_ms_;
    const auto collected = world_.collect(tenant(), due_ms, key);
    if (settle(collected, predicted)) {
      EXPECT_EQ(*collected, gone);
    }
  }

  RawWorld& world_;
  const size_t keyspace_;
  const Bytes prefix_;
  Random random_;
  std::vector<Bytes> names_;
  Contents contents_;
  size_t server_ = 0;
  uint64_t now_ms_ = 0;
};

class RawModel : public testing::TestWithParam<RawSetup> {
 protected:
  // What is stored is what the actors of each keyspace know.
  static void expect_contents(RawWorld& world, const std::vector<std::vector<Actor*>>& actors) {
    for (size_t keyspace = 0; keyspace < RawWorld::keyspaces; keyspace++) {
      Contents all;
      for (const Actor* actor : actors[keyspace])
        all.insert(actor->contents().begin(), actor->contents().end());
      EXPECT_EQ(world.stored(keyspace), all);
    }
  }
  bool faulty() const {
    return GetParam().use == EngineUse::faulty || GetParam().use == EngineUse::faulty_two_servers;
  }
  // A tenant that is not alone on its map, or was not alone when it counted anew, knows only about
  // what there is.
  bool exact_in_memory(bool threads) const {
    return GetParam().use != EngineUse::two_servers &&
           GetParam().use != EngineUse::faulty_two_servers &&
           (!threads || GetParam().way == Way::latched);
  }
};

// Rounds of random operations with the clock standing still, each followed by a look at everything.
TEST_P(RawModel, DoesWhatAMapWould) {
  const uint64_t seed = test_seed(1);
  RawWorld world(GetParam(), seed);
  std::vector<std::unique_ptr<Actor>> actors;
  std::vector<std::vector<Actor*>> by_keyspace(RawWorld::keyspaces);
  for (size_t keyspace = 0; keyspace < RawWorld::keyspaces; keyspace++) {
    actors.push_back(std::make_unique<Actor>(world, keyspace, "", seed + keyspace));
    by_keyspace[keyspace].push_back(actors.back().get());
  }
  Random random(seed);
  for (uint64_t round = 0; round < test_rounds(300) && !HasFailure(); round++) {
    world.backend().set_faults(true);
    for (int i = 0; i < 50; i++) actors[random.below(actors.size())]->step();
    world.backend().set_faults(false);
    expect_contents(world, by_keyspace);
    world.check_invariants(exact_in_memory(false));
    world.clock().advance_ms(random.below(30));
    if (!random.one_in(5)) continue;
    world.collect_all();
    for (const auto& actor : actors) actor->forget_expired();
    expect_contents(world, by_keyspace);
    world.check_invariants(exact_in_memory(false));
  }
  if (faulty()) {
    EXPECT_GT(world.backend().faults(), 0u);
  }
}

void run_threads(size_t count, const std::function<void(size_t)>& run) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; i++) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
}

// The same with several threads in every keyspace, each with keys of its own.
TEST_P(RawModel, ThreadsDoNotSeeEachOther) {
  constexpr size_t threads = 6;
  const uint64_t seed = test_seed(2);
  RawWorld world(GetParam(), seed);
  std::vector<std::unique_ptr<Actor>> actors;
  std::vector<std::vector<Actor*>> by_keyspace(RawWorld::keyspaces);
  for (size_t i = 0; i < threads; i++) {
    const size_t keyspace = i % RawWorld::keyspaces;
    actors.push_back(
        std::make_unique<Actor>(world, keyspace, Bytes(1, static_cast<char>('a' + i)), seed + i));
    by_keyspace[keyspace].push_back(actors.back().get());
  }
  Random random(seed);
  for (uint64_t round = 0; round < test_rounds(30) && !HasFailure(); round++) {
    world.backend().set_faults(true);
    run_threads(threads, [&](size_t i) {
      for (int step = 0; step < 100; step++) actors[i]->step();
    });
    world.backend().set_faults(false);
    expect_contents(world, by_keyspace);
    world.check_invariants(exact_in_memory(true));
    world.clock().advance_ms(random.below(30));
  }
}

// Everybody writes the same few keys, the clock runs and a collector comes along: whoever wins, the
// notes and figures are right.
TEST_P(RawModel, NotesAndFiguresSurviveContention) {
  constexpr size_t writers = 4;
  const uint64_t seed = test_seed(3);
  RawWorld world(GetParam(), seed);
  world.backend().set_faults(true);
  std::atomic<size_t> writing = writers;
  const auto write = [&](size_t thread) {
    Random random(seed + thread);
    for (uint64_t i = 0; i < test_rounds(3'000); i++) {
      Tenant& tenant = world.tenant(thread, random.below(RawWorld::keyspaces));
      const Bytes key(1, static_cast<char>('a' + random.below(3)));
      const Bytes other(1, static_cast<char>('a' + random.below(3)));
      const Bytes value = random.bytes(random.below(3));
      const uint64_t ttl_ms = random.below(4);
      const RawOperation both[] = {
          {.key = key, .value = value, .ttl_ms = ttl_ms},
          {.kind = RawOperation::Kind::remove, .key = other, .condition = {}}};
      switch (random.below(4)) {
        case 0:
          discard(world.raw().put(tenant, world.caller(), key, value, {.ttl_ms = ttl_ms}));
          break;
        case 1: discard(world.raw().remove(tenant, world.caller(), key)); break;
        case 2: discard(world.raw().batch(tenant, world.caller(), both)); break;
        case 3:
          discard(world.raw().compare_and_set(tenant, world.caller(), key, std::nullopt, value,
                                              ttl_ms));
          break;
      }
    }
    writing--;
  };
  run_threads(writers + 1, [&](size_t thread) {
    if (thread < writers) return write(thread);
    while (writing > 0) {
      world.clock().advance_ms(1);
      for (size_t keyspace = 0; keyspace < RawWorld::keyspaces; keyspace++)
        discard(world.collect_together(world.tenant(thread, keyspace), keyspace));
    }
  });
  world.backend().set_faults(false);
  world.check_invariants(exact_in_memory(true));
  world.clock().advance_ms(10);
  world.collect_all();
  world.check_invariants(exact_in_memory(true));
  for (size_t keyspace = 0; keyspace < RawWorld::keyspaces; keyspace++) {
    EXPECT_TRUE(world.notes(keyspace).empty());
    for (const auto& [key, entry] : world.stored(keyspace)) EXPECT_EQ(entry.expires_at_ms, 0u);
  }
}

// A number that everybody raises, by compare_and_set or by a put with a tag: no step is lost and
// none is made twice, except where an outcome is unknown.
TEST_P(RawModel, ConditionsOrderWriters) {
  constexpr size_t threads = 4;
  const uint64_t seed = test_seed(4);
  RawWorld world(GetParam(), seed);
  ASSERT_OK(world.raw().put(world.tenant(0, 1), world.caller(), "number", "0"));
  world.backend().set_faults(true);
  std::atomic<uint64_t> done = 0;
  std::atomic<uint64_t> unknown = 0;
  run_threads(threads, [&](size_t thread) {
    Tenant& tenant = world.tenant(thread, 1);
    Random random(seed + thread);
    for (uint64_t i = 0; i < test_rounds(2'000); i++) {
      const auto entry = world.raw().get(tenant, world.caller(), "number");
      if (!entry) continue;
      const Bytes before((*entry)->value());
      const Bytes after = std::to_string(std::stoull(before) + 1);
      Status status;
      bool swapped = true;
      if (random.one_in(2)) {
        const auto swap =
            world.raw().compare_and_set(tenant, world.caller(), "number", before, after);
        if (!swap) status = swap.error();
        if (swap) swapped = swap->done;
      } else {
        status = world.raw().put(tenant, world.caller(), "number", after,
                                 {.condition = RawCondition::must_equal(raw_tag(before))});
      }
      if (status && swapped) done++;
      if (!status && status.error().code == Code::maybe) unknown++;
    }
  });
  world.backend().set_faults(false);
  const auto entry = world.raw().get(world.tenant(0, 1), world.caller(), "number");
  ASSERT_OK(entry);
  const uint64_t number = std::stoull(Bytes((*entry)->value()));
  EXPECT_GE(number, done.load());
  EXPECT_LE(number, done.load() + unknown.load());
  EXPECT_GT(done.load(), 0u);
  if (!faulty()) {
    EXPECT_EQ(unknown.load(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RawModel, testing::ValuesIn(raw_setups()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace trellis
