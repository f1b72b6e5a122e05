#include "base/duration.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace trellis {
namespace {

TEST(Duration, EveryUnit) {
  const std::pair<std::string_view, uint64_t> good[] = {
      {"0s", 0},
      {"0ms", 0},
      {"100ms", 100},
      {"5s", 5'000},
      {"007s", 7'000},
      {"10m", 600'000},
      {"12h", 43'200'000},
      {"30d", 2'592'000'000},
      {"213503982334d", 213503982334ull * 86'400'000},
      {"18446744073709551615ms", 18446744073709551615ull}};
  for (const auto& [text, ms] : good) {
    const auto parsed = parse_duration_ms(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(*parsed, ms) << text;
  }
}

TEST(Duration, NothingIsGuessed) {
  for (const std::string_view text :
       {"", "5", "s", "ms", " 5s", "5s ", "5 s", "-5s", "+5s", "1.5h", "1e3s", "5S", "5M", "5w",
        "5min", "1h30m", "5sec", "0x5s", "never"}) {
    const auto parsed = parse_duration_ms(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().message,
              quote(text) + " is not a length of time; use for example 30d, 12h, 10m, 5s or 100ms");
  }
  EXPECT_FALSE(parse_duration_ms(std::string_view("5s\0", 3)).has_value());
}

TEST(Duration, TooLong) {
  for (const std::string_view text :
       {"18446744073709551616ms", "213503982335d", "99999999999999999999s"})
    EXPECT_EQ(parse_duration_ms(text).error().message, quote(text) + " is too long a time");
}

TEST(Duration, TextIsTakenBack) {
  EXPECT_EQ(duration_text(0), "0s");
  EXPECT_EQ(duration_text(1), "1ms");
  EXPECT_EQ(duration_text(1'500), "1500ms");
  EXPECT_EQ(duration_text(60'000), "1m");
  EXPECT_EQ(duration_text(5'400'000), "90m");
  EXPECT_EQ(duration_text(86'400'000), "1d");
  for (const uint64_t ms : {uint64_t{0}, uint64_t{999}, uint64_t{123'000}, uint64_t{3'600'000},
                            uint64_t{86'400'000} * 365, ~uint64_t{0}})
    EXPECT_EQ(parse_duration_ms(duration_text(ms)).value(), ms);
}

}  // namespace
}  // namespace trellis
