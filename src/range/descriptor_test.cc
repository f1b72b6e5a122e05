#include "range/descriptor.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "codec/meta_keys.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

Bytes unhex(std::string_view text) { return from_hex(text).value(); }

struct Golden {
  RangeDescriptor range;
  std::string_view hex;
};

const Golden goldens[] = {
    {{RangeId{1}, "", Bytes(map_key_max), 1, "", 0}, "0108011a02ffff2001"},
    {{RangeId{7}, "a", "b", 3, "", 0},
     "010807120161"
     "1a0162"
     "2003"},
    {{RangeId{300}, Bytes("\0", 1), Bytes("\0\xff", 2), 1ull << 40, "r.300", 1'700'000'000'000},
     "0108ac02"
     "120100"
     "1a0200ff"
     "20808080808020"
     "2a05722e333030"
     "3080d095ffbc31"},
};

TEST(Descriptor, StoredBytesNeverChange) {
  for (const Golden& golden : goldens) {
    SCOPED_TRACE(to_string(golden.range));
    EXPECT_EQ(to_hex(encode_descriptor(golden.range)), golden.hex);
    const Result<RangeDescriptor> back = decode_descriptor(unhex(golden.hex));
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(*back, golden.range);
  }
}

TEST(Descriptor, WhatDoesNotMakeSenseIsCorrupt) {
  constexpr std::string_view hostile[] = {
      "",                    // nothing
      "01",                  // no id, no generation, no interval
      "0208011a02ffff2001",  // a format from the future
      "0108011a02ffff20",    // cut
      "011a02ffff2001",      // id 0
      "0108011a02ffff",      // generation 0
      "0108011a00"
      "2001",  // ends where it starts
      "010801"
      "120162"
      "1a0161"
      "2001",  // ends before it starts
      "0108011a03ffff00"
      "2001",                    // ends beyond the map
      "0108011affffffff7f2001",  // a length beyond the bytes
  };
  for (const std::string_view hex : hostile) {
    const Result<RangeDescriptor> range = decode_descriptor(unhex(hex));
    ASSERT_FALSE(range.has_value()) << hex;
    EXPECT_EQ(range.error().code, Code::corrupt) << hex;
  }
}

TEST(Descriptor, AnyBytesAreDecodedOrRefused) {
  Random random(test_seed(1));
  const Bytes good = encode_descriptor(goldens[2].range);
  for (int i = 0; i < 100'000; i++) {
    Bytes bytes = good;
    for (uint64_t n = 1 + random.below(3); n > 0; n--)
      bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    if (random.one_in(4)) bytes.resize(random.below(bytes.size()));
    const Result<RangeDescriptor> range = decode_descriptor(bytes);
    if (!range.has_value()) continue;
    ASSERT_LT(range->start, range->end);
    ASSERT_LE(range->end, map_key_max);
    ASSERT_EQ(decode_descriptor(encode_descriptor(*range)).value(), *range);
  }
}

TEST(Descriptor, HoldsAtAndBefore) {
  const RangeDescriptor range{RangeId{2}, "b", "d", 1, "", 0};
  struct Case {
    ByteView address;
    bool at;
    bool before;
  };
  constexpr Case cases[] = {{"a", false, false},
                            {"b", true, false},
                            {"c", true, true},
                            {"d", false, true},
                            {"e", false, false}};
  for (const Case& each : cases) {
    EXPECT_EQ(range.holds(each.address), each.at) << each.address;
    EXPECT_EQ(range.holds_before(each.address), each.before) << each.address;
  }
  EXPECT_EQ(to_string(range), "range 2 [62, 64) generation 1");
}

}  // namespace
}  // namespace trellis
