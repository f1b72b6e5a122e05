#include "range/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "codec/meta_keys.h"
#include "support/range_map.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

// Ranges that are what the test says.
class ListedRanges final : public RangeHome {
 public:
  explicit ListedRanges(std::vector<RangeDescriptor> ranges) : ranges_(std::move(ranges)) {}
  explicit ListedRanges(const RangeMap& map) : map_(&map) {}
  Status for_each(FunctionRef<Visit(const RangeDescriptor&)> visit) override {
    for (const RangeDescriptor& range : map_ != nullptr ? map_->all() : ranges_)
      if (visit(range) == Visit::stop) break;
    calls_++;
    if (after) after(calls_);
    return {};
  }
  std::function<void(int calls)> after;  // each time that the ranges were read
  Result<RangeDescriptor> find(ByteView) override { return unsupported(); }
  Result<std::pair<RangeDescriptor, RangeDescriptor>> split(const SplitRequest&) override {
    return unsupported();
  }
  Result<RangeDescriptor> merge(const RangeDescriptor&, const RangeDescriptor&,
                                std::string_view) override {
    return unsupported();
  }
  Status walk(const RangeDescriptor&, ScanVisitor, FunctionRef<Visit()>) override {
    return unsupported();
  }

 private:
  static Error unsupported() { return {Code::unsupported, "not here"}; }
  const RangeMap* map_ = nullptr;
  std::vector<RangeDescriptor> ranges_;
  int calls_ = 0;
};

class VerifyTest : public testing::Test {
 protected:
  VerifyTest() {
    for (const ByteView border : {"\x03", "\x03xm", "\x04", "xa", "xm", "xz"}) map_.split(border);
  }
  void put(ByteView key, ByteView value) {
    Commit change;
    change.writes.put(key, value);
    EXPECT_OK(commit(map_.engine(), change));
  }
  void remove(ByteView key) {
    Commit change;
    change.writes.remove(key);
    EXPECT_OK(commit(map_.engine(), change));
  }
  VerifyReport verify() {
    const Result<VerifyReport> report = verify_directory(home_, map_.engine());
    EXPECT_OK(report);
    return report.has_value() ? *report : VerifyReport{};
  }
  // Exactly one thing is wrong, and gone after a rebuild.
  void expect_found_and_repaired(RangeFinding::Kind kind, std::string_view word) {
    const VerifyReport report = verify();
    EXPECT_TRUE(report.of_ranges.empty());
    ASSERT_EQ(report.of_directory.size(), 1u);
    EXPECT_EQ(to_string(report.of_directory[0].kind), to_string(kind));
    EXPECT_NE(report.of_directory[0].text.find(word), std::string::npos)
        << report.of_directory[0].text;
    const Result<RebuildReport> rebuilt = rebuild_directory(home_, map_.engine());
    ASSERT_OK(rebuilt);
    EXPECT_EQ(rebuilt->written + rebuilt->removed, 1u);
    EXPECT_TRUE(verify().clean());
  }

  RangeMap map_;
  ListedRanges home_{map_};
};

TEST_F(VerifyTest, ASoundDirectory) {
  const VerifyReport report = verify();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.ranges, 7u);
  EXPECT_EQ(report.records, 8u);
  const Result<RebuildReport> rebuilt = rebuild_directory(home_, map_.engine());
  ASSERT_OK(rebuilt);
  EXPECT_EQ(rebuilt->written + rebuilt->removed, 0u);
}

TEST_F(VerifyTest, EachKindOfDamage) {
  using Kind = RangeFinding::Kind;
  RangeDescriptor range = map_.at("xb");
  remove("\x03xm");
  expect_found_and_repaired(Kind::lost_record, "03786d");
  remove("\x02\xff\xff");
  expect_found_and_repaired(Kind::lost_record, "02ffff");
  put("\x03xq", encode_descriptor(range));
  expect_found_and_repaired(Kind::stray_record, "037871 is of no range");
  put("\x02q", "");
  expect_found_and_repaired(Kind::stray_record, "0271");
  put("\x03xm", "garbage");
  expect_found_and_repaired(Kind::bad_record, "03786d");
  range.generation--;
  put("\x03xm", encode_descriptor(range));
  expect_found_and_repaired(Kind::wrong_generation, "generation");
  range = map_.at("xb");
  range.start = "x";
  put("\x03xm", encode_descriptor(range));
  expect_found_and_repaired(Kind::wrong_bounds, "overlaps");
  range.start = "xb";
  put("\x03xm", encode_descriptor(range));
  expect_found_and_repaired(Kind::wrong_bounds, "hole");
  range = map_.at("xb");
  range.end = "xn";
  put("\x03xm", encode_descriptor(range));
  expect_found_and_repaired(Kind::wrong_bounds, "786e");
  range = map_.at("xb");
  range.id = RangeId{99};
  put("\x03xm", encode_descriptor(range));
  expect_found_and_repaired(Kind::wrong_range, "range 99");
}

TEST_F(VerifyTest, ALostDirectoryIsMadeAnew) {
  Random random(test_seed(5));
  for (int i = 0; i < 3000; i++) map_.split(random_border(random));
  Commit change;
  change.writes.remove_range("\x02", "\x04");
  EXPECT_OK(commit(map_.engine(), change));
  ASSERT_OK(rebuild_directory(home_, map_.engine()));
  EXPECT_TRUE(verify().clean());
  EngineMetaReader reader(map_.engine());
  Directory directory(reader);
  for (const RangeDescriptor& range : map_.all()) {
    const Result<DirectoryAnswer> answer = directory.find(range.start, Side::at);
    ASSERT_OK(answer);
    EXPECT_EQ(answer->range, range);
  }
}

TEST_F(VerifyTest, RangesThatDoNotTileAreToldAndNothingIsWritten) {
  struct Case {
    std::vector<RangeDescriptor> ranges;
    RangeFinding::Kind kind;
    std::string_view word;
  };
  const auto range = [](uint64_t id, ByteView start, ByteView end) {
    return RangeDescriptor{RangeId{id}, Bytes(start), Bytes(end), 1, "", 0};
  };
  using Kind = RangeFinding::Kind;
  const Case cases[] = {
      {{}, Kind::hole, "[, ffff)"},
      {{range(1, "", "x"), range(2, "y", map_key_max)}, Kind::hole, "[78, 79)"},
      {{range(1, "x", map_key_max)}, Kind::hole, "[, 78)"},
      {{range(1, "", "x")}, Kind::hole, "[78, ffff)"},
      {{range(1, "", "y"), range(2, "x", map_key_max)}, Kind::overlap, "before 79"},
      {{range(1, "", "\x02q"), range(2, "\x02q", map_key_max)}, Kind::bad_border, "meta1"},
  };
  for (const Case& each : cases) {
    ListedRanges home(each.ranges);
    const Result<VerifyReport> report = verify_directory(home, map_.engine());
    ASSERT_OK(report);
    ASSERT_FALSE(report->of_ranges.empty());
    EXPECT_EQ(to_string(report->of_ranges[0].kind), to_string(each.kind));
    EXPECT_NE(report->of_ranges[0].text.find(each.word), std::string::npos)
        << report->of_ranges[0].text;
    EXPECT_CODE(rebuild_directory(home, map_.engine()), Code::corrupt);
  }
  EXPECT_TRUE(verify().clean());
}

TEST_F(VerifyTest, ARangeThatChangesBeforeItsRecordIsWrittenIsLeftAlone) {
  remove("\x03xm");
  home_.after = [&](int calls) {
    if (calls == 2) map_.split("xc");  // writes 03 xm by itself
  };
  const Result<RebuildReport> rebuilt = rebuild_directory(home_, map_.engine());
  ASSERT_OK(rebuilt);
  EXPECT_EQ(rebuilt->written, 0u);
  EXPECT_TRUE(verify().clean());
}

TEST_F(VerifyTest, SplitsAndMergesMeanwhileDoNoHarm) {
  Random random(test_seed(9));
  std::atomic<bool> stop = false;
  std::thread splitter([&, seed = random.next()] {
    Random mine(seed);
    while (!stop) {
      const Bytes border = random_border(mine);
      if (mine.one_in(3))
        map_.merge(border);
      else
        map_.split(border);
    }
  });
  for (uint64_t n = test_rounds(20); n > 0; n--) {
    // Nobody writes below 78, so what is damaged there stays damaged.
    remove("\x03\x04");
    const Result<RebuildReport> rebuilt = rebuild_directory(home_, map_.engine());
    EXPECT_TRUE(rebuilt.has_value() || rebuilt.error().code == Code::conflict);
  }
  stop = true;
  splitter.join();
  EXPECT_OK(rebuild_directory(home_, map_.engine()));
  EXPECT_TRUE(verify().clean());
}

}  // namespace
}  // namespace trellis
