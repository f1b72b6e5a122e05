#include "cli/arguments.h"

#include <gtest/gtest.h>

#include "cli/human.h"

namespace trellis {
namespace {

TEST(Arguments, Assignment) {
  EXPECT_EQ(parse_assignment("k=v").value(), std::pair(std::string("k"), std::string("v")));
  EXPECT_EQ(parse_assignment("k=a=b").value().second, "a=b");
  EXPECT_EQ(parse_assignment("k=").value().second, "");
  for (const std::string_view bad : {"", "k", "=v", "="})
    EXPECT_EQ(parse_assignment(bad).error().message, quote(bad) + " is not key=value");
}

TEST(Arguments, Limits) {
  EXPECT_EQ(parse_limit_of_bytes("10GiB").value(), 10ull << 30);
  EXPECT_EQ(parse_limit_of_bytes("none").value(), 0u);
  EXPECT_EQ(parse_limit("500").value(), 500u);
  EXPECT_EQ(parse_limit("none").value(), 0u);
  for (const std::string_view bad : {"0", "", "-1", "None", "1.5", "ten"}) {
    EXPECT_FALSE(parse_limit(bad).has_value()) << bad;
    EXPECT_FALSE(parse_limit_of_bytes(bad).has_value()) << bad;
  }
  EXPECT_EQ(parse_limit("0").error().message, "0 is not a limit; use none for no limit");
  EXPECT_FALSE(parse_limit("10K").has_value());
}

TEST(Arguments, Times) {
  EXPECT_EQ(parse_time_ms("now", 77).value(), 77u);
  EXPECT_EQ(parse_time_ms("1970-01-01T00:00:00Z", 0).value(), 0u);
  EXPECT_EQ(parse_time_ms("2023-11-14T22:13:20Z", 0).value(), 1'700'000'000'000u);
  EXPECT_EQ(parse_time_ms("2023-11-14T22:13:20.5Z", 0).value(), 1'700'000'000'500u);
  EXPECT_EQ(parse_time_ms("2023-11-14T22:13:20.037Z", 0).value(), 1'700'000'000'037u);
  for (const uint64_t ms : {951'782'400'000ull, 4'102'444'799'000ull, 1ull << 40})
    EXPECT_EQ(parse_time_ms(iso_time(ms), 0).value(), ms / 1000 * 1000);
  for (const std::string_view bad :
       {"", "Now", "2023-11-14", "2023-11-14T22:13:20", "2023-11-14 22:13:20Z",
        "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20.1234Z", "2023-02-29T00:00:00Z",
        "2023-13-01T00:00:00Z", "2023-01-01T24:00:00Z", "2023-01-01T00:60:00Z",
        "2023-01-01T00:00:60Z", "1969-12-31T23:59:59Z", "+023-01-01T00:00:00Z",
        "2023-11-14T22:13:20Z ", "2023-11-14T22:13:20+01:00", "yesterday"})
    EXPECT_EQ(parse_time_ms(bad, 0).error().message,
              quote(bad) + " is not a time; use now or for example 2026-11-15T04:00:00Z");
}

TEST(Arguments, Points) {
  EXPECT_EQ(parse_point("now", 5).value(), 5u << 18);
  EXPECT_EQ(parse_point("1970-01-01T00:00:01Z", 5).value(), 1000u << 18);
  EXPECT_EQ(parse_point("443852055297916932", 5).value(), 443852055297916932u);
  EXPECT_FALSE(parse_point("18446744073709551616", 5).has_value());
  EXPECT_FALSE(parse_point("", 5).has_value());
  EXPECT_FALSE(parse_point("12x", 5).has_value());
}

TEST(Arguments, BytesAreTextUnlessEscaped) {
  EXPECT_EQ(parse_bytes("a\\x00", false).value(), "a\\x00");
  EXPECT_EQ(parse_bytes("a\\x00", true).value(), Bytes("a\0", 2));
  EXPECT_EQ(parse_bytes("a\\", true).error().message, "\"a\\\\\": text ends in a lone backslash");
}

TEST(Arguments, KeyspacesById) {
  EXPECT_TRUE(names_an_id("id:7"));
  for (const std::string_view name : {"id", "id:", "id:x", "7", "ID:7", "shop"})
    EXPECT_FALSE(names_an_id(name)) << name;
}

}  // namespace
}  // namespace trellis
