#include "cli/human.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace trellis {
namespace {

TEST(Human, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(1'258'291), "1.2 MiB");
  EXPECT_EQ(human_bytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(human_bytes(10ull << 30), "10.0 GiB");
  EXPECT_EQ(human_bytes(~0ull), "16.0 EiB");
}

TEST(Human, ProgressBar) {
  const auto bar = [](int full) {
    return "[" + std::string(full, '#') + std::string(30 - full, '.') + "] ";
  };
  EXPECT_EQ(progress_bar(0, 10), bar(0) + "0%");
  EXPECT_EQ(progress_bar(5, 10), bar(15) + "50%");
  EXPECT_EQ(progress_bar(11, 10), bar(30) + "100%");
  EXPECT_EQ(progress_bar(0, 0), bar(30) + "100%");
}

TEST(Human, Times) {
  EXPECT_EQ(iso_time(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(iso_time(1'700'000'000'999), "2023-11-14T22:13:20Z");
  EXPECT_EQ(iso_time(951'782'400'000), "2000-02-29T00:00:00Z");
  EXPECT_EQ(iso_time(253'402'300'799'999), "9999-12-31T23:59:59Z");
  EXPECT_EQ(iso_time(253'402'300'800'000), "never");
  EXPECT_EQ(iso_time(~0ull), "never");
  EXPECT_EQ(human_age(5'000, 5'000), "0 s ago");
  EXPECT_EQ(human_age(65'000, 5'000), "1 min ago");
  EXPECT_EQ(human_age(0, 6 * 86'400'000ull), "in 6 d");
  EXPECT_EQ(human_age(1, 30 * 86'400'000ull), "in 30 d");
  EXPECT_EQ(human_age(59'499, 0), "59 s ago");
  EXPECT_EQ(human_age(59'500, 0), "1 min ago");
  EXPECT_EQ(human_age(3'599'999, 0), "1 h ago");
  EXPECT_EQ(human_duration(~0ull), "213503982335 d");
  EXPECT_EQ(human_age(47 * 3'600'000ull, 0), "47 h ago");
  EXPECT_EQ(time_and_age(10'000, 4'000), "1970-01-01T00:00:04Z (6 s ago)");
  EXPECT_EQ(time_and_age(10'000, ~0ull), "never");
}

TEST(Human, TerminalTextIsShownAndNotObeyed) {
  EXPECT_EQ(terminal_text("stra\xc3\x9f"
                          "e"),
            "stra\xc3\x9f"
            "e");
  EXPECT_EQ(terminal_text("\x1b[31m\x7f\n\r\t"), "\\x1b[31m\\x7f\\n\\r\\t");
  EXPECT_EQ(terminal_text("\xc2\x9b"
                          "31m"),
            "\\xc2\\x9b31m");                                   // the one-character ESC [
  EXPECT_EQ(terminal_text("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right to left
  EXPECT_EQ(terminal_text("\xff\\"), "\\xff\\\\");
  EXPECT_EQ(terminal_text(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(terminal_text(" a b "), "\\x20a b\\x20");
  EXPECT_EQ(terminal_text(" "), "\\x20");
}

TEST(Human, TerminalTextIsTakenBack) {
  Bytes all;
  for (int i = 0; i < 256; i++) all.push_back(static_cast<char>(i));
  for (const Bytes& bytes :
       {all, Bytes("\xe2\x82\xac \\x41"), Bytes("a\"b"), Bytes("\"a\""), Bytes(" a  ")})
    EXPECT_EQ(unquote(terminal_text(bytes)).value(), bytes);
}

TEST(Human, SentencesKeepTheirBackslashes) {
  EXPECT_EQ(terminal_line("\"a\\x00\" is odd\n\x1b"), "\"a\\x00\" is odd\\n\\x1b");
}

TEST(Human, Shortened) {
  EXPECT_EQ(text_columns("stra\xc3\x9f"
                         "e"),
            6u);
  EXPECT_EQ(shortened_text("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened_text("abcdefg", 6), "abc...");
  EXPECT_EQ(shortened_text("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 4), "\xc3\xa4...");
}

}  // namespace
}  // namespace trellis
