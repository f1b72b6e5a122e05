#include "range/directory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codec/meta_keys.h"
#include "support/range_map.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

RangeDescriptor range_of(ByteView start, ByteView end, uint64_t generation = 1) {
  return {RangeId{9}, Bytes(start), Bytes(end), generation, "", 0};
}

TEST(DirectoryKeys, OneOrTwoByWhereItEnds) {
  struct Case {
    ByteView start;
    ByteView end;
    std::vector<Bytes> keys;  // none: no range may be there
  };
  const Case cases[] = {
      {"", "\xff\xff", {"\x03\xff\xff", "\x02\xff\xff"}},
      {"", "\x03", {"\x02"}},
      {"", "\x03q", {"\x02q"}},
      {"", "\x04", {"\x03\x04", "\x02\xff\xff"}},
      {"\x03", "\x03q", {"\x02q"}},
      {"\x03q", "x", {"\x03x", "\x02\xff\xff"}},
      {"\x03q", "\x04", {"\x03\x04", "\x02\xff\xff"}},
      {"\x04", "x", {"\x03x"}},
      {"x", "y", {"\x03y"}},
      {"", "\x02q", {}},
      {"", "\x02", {}},
      {"\x01k", "x", {}},
      {"\x02q", "x", {}},
      {"\x03\xff\xff", "x", {}},
      {"x", "\xff\xff\x01", {}},
      {"", "\x03\xff\xff\x01", {}},
      {"y", "x", {}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(to_hex(each.start) + " " + to_hex(each.end));
    const Result<std::vector<Bytes>> keys = directory_keys(range_of(each.start, each.end));
    if (each.keys.empty()) {
      EXPECT_CODE(keys, Code::invalid);
    } else {
      ASSERT_OK(keys);
      EXPECT_EQ(*keys, each.keys);
    }
  }
}

class DirectoryTest : public testing::Test {
 protected:
  void put(ByteView key, ByteView value) {
    Commit change;
    change.writes.put(key, value);
    EXPECT_OK(commit(map_.engine(), change));
  }
  void put(ByteView key, const RangeDescriptor& range) { put(key, encode_descriptor(range)); }
  void remove(ByteView key) {
    Commit change;
    change.writes.remove(key);
    EXPECT_OK(commit(map_.engine(), change));
  }
  // Finds it, and says in how many reads.
  unsigned expect_found(ByteView address, Side side = Side::at,
                        const RangeDescriptor* hint = nullptr) {
    const Result<DirectoryAnswer> answer = directory_.find(address, side, hint);
    EXPECT_OK(answer);
    if (!answer.has_value()) return 0;
    EXPECT_EQ(answer->range, map_.at(address, side)) << to_hex(address);
    return answer->reads;
  }
  void expect_refused(ByteView address, std::string_view word) {
    const Result<DirectoryAnswer> answer = directory_.find(address, Side::at);
    ASSERT_FALSE(answer.has_value()) << to_string(answer->range);
    EXPECT_EQ(answer.error().code, Code::corrupt);
    EXPECT_NE(answer.error().message.find(word), std::string::npos) << answer.error().message;
    EXPECT_NE(answer.error().message.find("trellis range verify"), std::string::npos);
  }

  RangeMap map_;
  EngineMetaReader reader_{map_.engine()};
  Directory directory_{reader_};
};

TEST_F(DirectoryTest, OneRangeIsFoundInOneRead) {
  for (const ByteView address : {"", "\x01k", "\x02", "\x02q", "\x03", "\x03q", "\x03\xff\xff",
                                 "\x03\xff\xff\x05", "\x04", "x", "\xff", "\xff\xfe\xff"})
    EXPECT_EQ(expect_found(address), 1u);
  for (const ByteView address : {"\x01", "\x02q", "\x03", "\x03q", "\x04", "x", "\xff\xff"})
    EXPECT_EQ(expect_found(address, Side::before), 1u);
}

TEST_F(DirectoryTest, OutsideOfTheMapThereIsNothing) {
  EXPECT_CODE(directory_.find("\xff\xff", Side::at), Code::invalid);
  EXPECT_CODE(directory_.find("\xff\xff\x01", Side::before), Code::invalid);
  EXPECT_CODE(directory_.find("", Side::before), Code::invalid);
}

TEST_F(DirectoryTest, AMiddleMapNeedsOneReadAndBringsNeighbours) {
  map_.split("\x04");
  for (int i = 0; i < 100; i++) map_.split(fmt::format("x{:02}", i));
  const Result<DirectoryAnswer> answer = directory_.find("x50a", Side::at);
  ASSERT_OK(answer);
  EXPECT_EQ(answer->reads, 1u);
  EXPECT_EQ(answer->range, map_.at("x50a"));
  for (int i = 1; i <= 8; i++) {
    const RangeDescriptor neighbour = map_.at(fmt::format("x{}", 50 + i));
    EXPECT_NE(std::find(answer->others.begin(), answer->others.end(), neighbour),
              answer->others.end());
  }
}

TEST_F(DirectoryTest, ALargeMapNeedsTwoReadsOrOneWithAHint) {
  for (const ByteView border : {"\x03", "\x03xg", "\x03xm", "\x03xt", "\x04"}) map_.split(border);
  for (char letter = 'a'; letter <= 'z'; letter++) map_.split(Bytes("x") + letter);
  EXPECT_EQ(expect_found("xhb"), 2u);
  EXPECT_EQ(expect_found("xaa"), 2u);
  const RangeDescriptor hint = map_.at("\x03xhb");
  EXPECT_EQ(expect_found("xhb", Side::at, &hint), 1u);
  EXPECT_EQ(expect_found("\x03xhb"), 1u);
}

TEST_F(DirectoryTest, ARecordThatStraddlesIsFoundInTheNextMeta2Range) {
  for (const ByteView border : {"xa", "xz", "\x03xc", "\x03xg", "\x03xm", "\x04"})
    map_.split(border);
  // [xa, xz) is recorded at 03 xz, in the last range of meta2; all others end before it.
  EXPECT_EQ(expect_found("xb"), 4u);  // the first, [03, 03xc), two more on the way
  EXPECT_EQ(expect_found("xh"), 3u);
  EXPECT_EQ(expect_found("xz"), 2u);
  const RangeDescriptor hint = map_.at("\x03xh");
  EXPECT_EQ(expect_found("xh", Side::at, &hint), 3u);
  EXPECT_EQ(expect_found("xz", Side::before), 2u);
}

TEST_F(DirectoryTest, RightBehindARecordNothingStraddles) {
  for (const ByteView border : {"xa", "xb", "xc", "\x03"}) map_.split(border);
  map_.split(Bytes("\x03xb\0", 4));
  for (const ByteView address : {"xa", "xaa", "xb", "xba", "xc"}) {
    EXPECT_EQ(expect_found(address), 2u) << address;
    EXPECT_EQ(expect_found(address, Side::before), 2u) << address;
  }
}

TEST_F(DirectoryTest, AStaleHintDoesNoHarm) {
  map_.split("\x03xg");
  map_.split("\x03xm");
  map_.split("xh");
  const RangeDescriptor hint = map_.at("\x03xh");
  map_.merge("\x03xh");
  map_.split("\x03xi");
  map_.split("xk");
  expect_found("xj", Side::at, &hint);
  const RangeDescriptor elsewhere = range_of("\x03y", "\x03z", 7);
  expect_found("xj", Side::at, &elsewhere);
}

TEST_F(DirectoryTest, AnyMapIsFound) {
  Random random(test_seed(1));
  for (uint64_t round = test_rounds(60); round > 0; round--) {
    RangeMap map;
    EngineMetaReader reader(map.engine());
    Directory directory(reader);
    for (uint64_t n = random.below(80); n > 0; n--) {
      const Bytes border = random_border(random);
      if (random.one_in(5))
        map.merge(border);
      else
        map.split(border);
    }
    for (const RangeDescriptor& range : map.all()) {
      for (const Bytes& address : places_around(range)) {
        for (const Side side : {Side::at, Side::before}) {
          const bool inside =
              side == Side::at ? address < map_key_max : !address.empty() && address <= map_key_max;
          const Result<DirectoryAnswer> answer = directory.find(address, side);
          ASSERT_EQ(answer.has_value(), inside) << to_hex(address);
          if (!inside) continue;
          ASSERT_EQ(answer->range, map.at(address, side)) << to_hex(address);
        }
      }
    }
  }
}

TEST_F(DirectoryTest, OfTwoThatMatchTheHigherGenerationIsTaken) {
  for (const ByteView border : {"xa", "xm", "xz"}) map_.split(border);
  // What a merge leaves behind that has not removed the record in the middle yet.
  const RangeDescriptor merged = range_of("xa", "xz", 90);
  put("\x03xz", merged);
  const Result<DirectoryAnswer> answer = directory_.find("xb", Side::at);
  ASSERT_OK(answer);
  EXPECT_EQ(answer->range, merged);
  // And what is older than what it overlaps is not.
  put("\x03xz", range_of("xa", "xz", 1));
  EXPECT_EQ(expect_found("xb"), 1u);
}

TEST_F(DirectoryTest, AHoleIsAnErrorAndNotAGuess) {
  for (const ByteView border : {"xa", "xm", "xz"}) map_.split(border);
  remove("\x03xm");
  expect_refused("xb", "no record for address 7862");
  EXPECT_EQ(expect_found("xn"), 1u);  // the rest is served
  remove("\x03\xff\xff");
  expect_refused("xzz", "no record");
}

TEST_F(DirectoryTest, AHoleInMeta1) {
  map_.split("\x03xg");
  map_.split("\x03xm");
  remove("\x02xm");
  expect_refused("xh", "no record for address 037868");
  remove("\x02xg");
  expect_refused("a", "no record for address");
}

TEST_F(DirectoryTest, ABadRecordIsNotServed) {
  for (const ByteView border : {"xa", "xm", "xz"}) map_.split(border);
  put("\x03xm", "\x01garbage");
  expect_refused("xb", "the record 03786d");
  EXPECT_EQ(expect_found("x"), 1u);  // brings it along as a neighbour, and leaves it
  put("\x03xm", range_of("xa", "xn", 5));
  expect_refused("xb", "the record 03786d is of range 9");
}

TEST_F(DirectoryTest, AnEmptyDirectoryIsAnError) {
  remove("\x03\xff\xff");
  remove("\x02\xff\xff");
  expect_refused("x", "no record");
  expect_refused("", "no record");
}

// A reader whose range moved away once: the lookup starts over from the first range.
TEST_F(DirectoryTest, ARangeThatMovedIsLookedUpAgain) {
  struct Moved final : MetaReader {
    explicit Moved(MetaReader& inner) : inner(inner) {}
    Result<MetaRead> read(const RangeDescriptor& from, std::span<const MetaScan> scans) override {
      if (from.generation != 0 && moves > 0) {
        moves--;
        return Error{Code::conflict, "moved"};
      }
      return inner.read(from, scans);
    }
    MetaReader& inner;
    unsigned moves = 1;
  };
  map_.split("\x03xg");
  map_.split("xh");
  Moved moved(reader_);
  Directory directory(moved);
  const Result<DirectoryAnswer> answer = directory.find("xi", Side::at);
  ASSERT_OK(answer);
  EXPECT_EQ(answer->range, map_.at("xi"));
  EXPECT_EQ(answer->reads, 4u);
  moved.moves = 1000;
  EXPECT_CODE(directory.find("xi", Side::at), Code::conflict);
}

}  // namespace
}  // namespace trellis
