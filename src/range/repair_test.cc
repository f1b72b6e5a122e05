#include "range/repair.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/random.h"
#include "codec/local_keys.h"
#include "codec/meta_keys.h"
#include "engine/memory_engine.h"
#include "range/embedded_ranges.h"
#include "support/expect_ok.h"
#include "support/range_map.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using Entries = std::map<Bytes, Bytes>;

Entries entries_of(Engine& engine, ByteView begin, ByteView end) {
  Entries all;
  Bytes from(begin);
  for (;;) {
    const auto page = engine.scan({.begin = from, .end = end}, [&](ByteView key, ByteView value) {
      all.emplace(key, value);
      return Visit::go_on;
    });
    EXPECT_OK(page);
    if (!page || !page->resume) return all;
    from = *page->resume;
  }
}

// A store with ranges, data, and a hand that damages it.
class RepairTest : public testing::Test {
 protected:
  RepairTest() { open(); }

  void open() {
    ranges_.reset();
    accounting_ = std::make_unique<RangeAccounting>(16);
    auto opened = EmbeddedRanges::open(engine_, clock_, *accounting_, {});
    ASSERT_OK(opened);
    ranges_ = std::move(*opened);
  }
  void split_at(ByteView at) {
    const auto range = ranges_->home().find(at);
    ASSERT_OK(range);
    if (range->start == at) return;
    const auto parts = ranges_->keeper().split(at, 0, "a test");
    ASSERT_TRUE(parts.has_value() || parts.error().code == Code::invalid);
  }
  void put(ByteView key, ByteView value) {
    Commit change;
    change.writes.put(key, value);
    EXPECT_OK(commit(engine_, change));
  }
  void remove(ByteView key) {
    Commit change;
    change.writes.remove(key);
    EXPECT_OK(commit(engine_, change));
  }
  RangeDescriptor range_at(ByteView address) {
    const auto range = ranges_->home().find(address);
    EXPECT_OK(range);
    return range ? *range : RangeDescriptor{};
  }
  std::vector<RangeDescriptor> all_ranges() {
    std::vector<RangeDescriptor> all;
    EXPECT_OK(ranges_->home().for_each([&](const RangeDescriptor& range) {
      all.push_back(range);
      return Visit::go_on;
    }));
    return all;
  }
  static Bytes own_key(const RangeDescriptor& range) {
    return encode(RangeDescriptorKey{range.start});
  }
  static Bytes directory_key(const RangeDescriptor& range) { return directory_keys(range)->at(0); }
  bool is_clean() {
    const auto report = ranges_->verify();
    EXPECT_OK(report);
    return report && report->clean();
  }
  EmbeddedRanges::Rebuilt rebuild() {
    const auto rebuilt = ranges_->rebuild();
    EXPECT_OK(rebuilt);
    return rebuilt ? *rebuilt : EmbeddedRanges::Rebuilt{};
  }
  // Ranges tile the map, everybody agrees on them, each has an id of its own, and they live on.
  void expect_sound() {
    EXPECT_TRUE(is_clean());
    const std::vector<RangeDescriptor> all = all_ranges();
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.front().start, "");
    EXPECT_EQ(all.back().end, map_key_max);
    std::map<uint64_t, int> ids;
    for (size_t i = 0; i < all.size(); i++) {
      EXPECT_EQ(i == 0 ? Bytes() : all[i - 1].end, all[i].start);
      EXPECT_EQ(++ids[all[i].id.value], 1) << to_string(all[i]);
      const auto steps = ranges_->lookup(all[i].start);
      ASSERT_OK(steps);
      EXPECT_EQ(steps->back().range, all[i]);
    }
    EXPECT_EQ(accounting_->ranges(), all.size());
  }

  MemoryEngine engine_;
  FakeClock clock_{1'700'000'000'000};
  std::unique_ptr<RangeAccounting> accounting_;
  std::unique_ptr<EmbeddedRanges> ranges_;
};

TEST_F(RepairTest, EachKindOfDamage) {
  for (const ByteView at : {"\x03m", "r", "s", "t", "x"}) split_at(at);
  struct Case {
    const char* name;
    std::function<void(const RangeDescriptor&)> damage;
    bool is_restored;  // as it was before
  };
  const auto with = [](RangeDescriptor range, const std::function<void(RangeDescriptor&)>& change) {
    change(range);
    return encode_descriptor(range);
  };
  const Case cases[] = {
      {"flipped bytes", [&](const auto& r) { put(own_key(r), "\x01\xff\xff\xff"); }, true},
      {"truncated", [&](const auto& r) { put(own_key(r), encode_descriptor(r).substr(0, 5)); },
       true},
      {"empty", [&](const auto& r) { put(own_key(r), ""); }, true},
      {"lost", [&](const auto& r) { remove(own_key(r)); }, true},
      {"another's record",
       [&](const auto& r) { put(own_key(r), encode_descriptor(range_at("x"))); }, true},
      {"ends too early",
       [&](const auto& r) { put(own_key(r), with(r, [](auto& d) { d.end = "ss"; })); }, true},
      {"ends too late: an overlap",
       [&](const auto& r) { put(own_key(r), with(r, [](auto& d) { d.end = "tt"; })); }, true},
      {"another's id",
       [&](const auto& r) { put(own_key(r), with(r, [](auto& d) { d.id = RangeId{1}; })); }, true},
      {"a generation that none reaches",
       [&](const auto& r) { put(own_key(r), with(r, [](auto& d) { d.generation = ~0ull; })); },
       true},
      {"a range inside of it",
       [&](const auto& r) {
         put(encode(RangeDescriptorKey{"sq"}), with(r, [](auto& d) { d.start = "sq"; }));
       },
       true},
      {"an older generation, there and in the directory",
       [&](const auto& r) {
         put(own_key(r), with(r, [](auto& d) { d.generation--; }));
         put(directory_key(r), with(r, [](auto& d) { d.generation--; }));
       },
       false},
      {"both copies lost",
       [&](const auto& r) {
         remove(own_key(r));
         remove(directory_key(r));
       },
       false},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const RangeDescriptor before = range_at("s");
    const std::vector<RangeDescriptor> all = all_ranges();
    each.damage(before);
    EXPECT_TRUE(!each.is_restored || !is_clean());
    rebuild();
    expect_sound();
    EXPECT_TRUE(!each.is_restored || all_ranges() == all);
    EXPECT_EQ(all_ranges().size(), all.size());
    EXPECT_EQ(rebuild().directory.written, 0u);
  }
}

TEST_F(RepairTest, AHoleBecomesOneNewRangeOfAHigherGeneration) {
  for (const ByteView at : {"r", "s", "t", "u"}) split_at(at);
  uint64_t generation = 0;
  uint64_t id = 0;
  for (const RangeDescriptor& range : all_ranges()) {
    generation = std::max(generation, range.generation);
    id = std::max(id, range.id.value);
  }
  for (const ByteView at : {"s", "t"}) {
    const RangeDescriptor range = range_at(at);
    remove(own_key(range));
    remove(directory_key(range));
  }
  EXPECT_CODE(ranges_->lookup("sx"), Code::corrupt);
  const EmbeddedRanges::Rebuilt rebuilt = rebuild();
  EXPECT_EQ(rebuilt.ranges.made, 1u);
  EXPECT_EQ(rebuilt.ranges.restored, 0u);
  const RangeDescriptor made = range_at("sx");
  EXPECT_EQ(made.start, "s");
  EXPECT_EQ(made.end, "u");
  EXPECT_GT(made.generation, generation);
  EXPECT_GT(made.id.value, id);
  expect_sound();
  EXPECT_EQ(ranges_->home().log().read(0, 1)->at(0).action, "repair");
}

TEST_F(RepairTest, TheFirstRangeKeepsItsId) {
  split_at("r");
  const RangeDescriptor first = range_at("");
  remove(own_key(first));
  const auto keys = directory_keys(first);
  ASSERT_OK(keys);
  for (const Bytes& key : *keys) remove(key);
  rebuild();
  EXPECT_EQ(range_at("").id, first_range_id);
  expect_sound();
}

TEST_F(RepairTest, ADirectoryWithoutRangesIsNotPutOver) {
  for (const ByteView at : {"r", "s"}) split_at(at);
  const std::vector<RangeDescriptor> before = all_ranges();
  Commit loss;
  loss.writes.remove_range("\x01k", "\x01l");
  ASSERT_OK(commit(engine_, loss));
  open();
  EXPECT_CODE(ranges_->lookup("r"), Code::corrupt);
  EXPECT_FALSE(is_clean());
  EXPECT_EQ(rebuild().ranges.restored, before.size());
  EXPECT_EQ(all_ranges(), before);
  expect_sound();
}

TEST_F(RepairTest, WithoutADirectoryWhatIsReadIsKept) {
  for (const ByteView at : {"r", "s", "t"}) split_at(at);
  const RangeDescriptor lost = range_at("s");
  const RangeDescriptor kept = range_at("t");
  Commit loss;
  loss.writes.remove_range("\x02", "\x04");
  loss.writes.remove(own_key(lost));
  ASSERT_OK(commit(engine_, loss));
  EXPECT_EQ(rebuild().ranges.made, 1u);
  EXPECT_EQ(range_at("t"), kept);
  EXPECT_EQ(range_at("s").end, lost.end);
  expect_sound();
}

// What a disk or a mistake may do to one record.
Bytes damaged(Random& random, Bytes value, const RangeDescriptor& another) {
  switch (random.below(6)) {
    case 0:
      for (uint64_t n = 1 + random.below(3); n > 0 && !value.empty(); n--)
        value[random.below(value.size())] ^= static_cast<char>(1 + random.below(255));
      return value;
    case 1: return value.substr(0, random.below(value.size() + 1));
    case 2: return encode_descriptor(another);
    default: break;
  }
  auto range = decode_descriptor(value);
  if (!range) return value;
  switch (random.below(4)) {
    case 0: range->generation += random.below(5); break;
    case 1: range->generation = 1; break;
    case 2: range->end = random_border(random); break;
    default: range->start = random_border(random);
  }
  return encode_descriptor(*range);
}

TEST_F(RepairTest, AnyDamageIsRepairedAndNoDataIsTouched) {
  Random random(test_seed(11));
  for (int i = 0; i < 200; i++) put("x" + random_border(random), random_border(random));
  const Entries data = entries_of(engine_, "x", "\xff");
  for (uint64_t round = 0; round < test_rounds(100); round++) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    for (uint64_t n = random.below(12); n > 0; n--) split_at(random_border(random));
    const std::vector<RangeDescriptor> all = all_ranges();
    for (uint64_t n = 1 + random.below(6); n > 0; n--) {
      const RangeDescriptor& range = all[random.below(all.size())];
      const RangeDescriptor& another = all[random.below(all.size())];
      const bool both = random.one_in(4);
      for (const Bytes& key : {own_key(range), directory_key(range)}) {
        if (!both && random.one_in(2)) continue;
        if (random.one_in(3))
          remove(key);
        else
          put(key, damaged(random, encode_descriptor(range), another));
      }
      if (random.one_in(8))  // a range that nobody asked for
        put(encode(RangeDescriptorKey{random_border(random)}),
            damaged(random, encode_descriptor(range), another));
    }
    if (random.one_in(4)) open();
    rebuild();
    ASSERT_NO_FATAL_FAILURE(expect_sound());
    ASSERT_FALSE(HasFailure());
    const auto again = rebuild();
    EXPECT_EQ(again.ranges.made + again.ranges.restored + again.ranges.removed, 0u);
  }
  EXPECT_EQ(entries_of(engine_, "x", "\xff"), data);
}

}  // namespace
}  // namespace trellis
