#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>
#include <thread>

#include "base/bytes.h"
#include "base/random.h"

namespace trellis {
namespace {

constexpr uint64_t time_ms = 1794715200123;  // 2026-11-15T04:00:00.123Z

std::string text_line(std::string_view message, LogFields fields) {
  return format_log_line(LogFormat::text, LogLevel::info, time_ms, message, fields);
}
std::string json_line(std::string_view message, LogFields fields) {
  return format_log_line(LogFormat::json, LogLevel::info, time_ms, message, fields);
}

TEST(Log, TextLine) {
  const std::string path = "/x";
  EXPECT_EQ(text_line("store opened", {{"path", path}, {"ms", 12}}),
            "2026-11-15T04:00:00.123Z info  store opened path=/x ms=12");
  EXPECT_EQ(format_log_line(LogFormat::text, LogLevel::error, 0, "m", {}),
            "1970-01-01T00:00:00.000Z error m");
  EXPECT_EQ(format_log_line(LogFormat::text, LogLevel::debug, 951'868'799'999, "leap", {}),
            "2000-02-29T23:59:59.999Z debug leap");
  EXPECT_EQ(format_log_line(LogFormat::text, LogLevel::warn, 951'868'800'000, "leap", {}),
            "2000-03-01T00:00:00.000Z warn  leap");
}

TEST(Log, TextValues) {
  EXPECT_EQ(text_line("m", {{"a", -1},
                            {"b", std::numeric_limits<uint64_t>::max()},
                            {"c", true},
                            {"d", 0.5},
                            {"e", uint8_t{65}},
                            {"f", std::nan("")}}),
            "2026-11-15T04:00:00.123Z info  m a=-1 b=18446744073709551615 c=true d=0.5 e=65 f=nan");
  EXPECT_EQ(text_line("m", {{"a", ""}, {"b", "x y"}, {"c", "k=v"}, {"d", "\"\\"}, {"e", "\n\x1b"}}),
            R"(2026-11-15T04:00:00.123Z info  m a="" b="x y" c="k=v" d="\"\\" e="\x0a\x1b")");
  EXPECT_EQ(text_line("two\nlines", {{"na me", 1}}),
            R"(2026-11-15T04:00:00.123Z info  "two\x0alines" "na me"=1)");
}

TEST(Log, JsonLine) {
  EXPECT_EQ(json_line("store opened", {{"path", "/x"}, {"ms", 12}, {"ok", false}, {"d", 1e300}}),
            R"({"time":"2026-11-15T04:00:00.123Z","level":"info","message":"store opened",)"
            R"("path":"/x","ms":12,"ok":false,"d":1e+300})");
  EXPECT_EQ(json_line("q\"\\\n", {{"level", "\t"}, {"f", std::nan("")}}),
            R"({"time":"2026-11-15T04:00:00.123Z","level":"info","message":"q\"\\\u000a",)"
            R"("level_":"\u0009","f":"nan"})");
}

TEST(Log, JsonKeepsUtf8AndReplacesTheRest) {
  const std::string r = "\ufffd";
  const std::pair<std::string, std::string> cases[] = {
      {"ä€😀", "ä€😀"},
      {"\x7f", "\x7f"},
      {"\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff",
       "\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"},
      {"\x80", r},          // a tail alone
      {"\xc0\xaf", r + r},  // overlong
      {"\xc1\xbf", r + r},
      {"\xe0\x9f\xbf", r + r + r},
      {"\xf0\x8f\xbf\xbf", r + r + r + r},
      {"\xed\xa0\x80", r + r + r},          // a surrogate
      {"\xf4\x90\x80\x80", r + r + r + r},  // past the end
      {"\xf5\x80\x80\x80", r + r + r + r},
      {"\xe2\x82", r + r},  // cut short
      {"\xe2\x82x", r + r + "x"},
      {"a\xff\xfez", "a" + r + r + "z"},
  };
  for (const auto& [in, out] : cases) {
    EXPECT_EQ(
        json_line("m", {{"v", in}}),
        R"({"time":"2026-11-15T04:00:00.123Z","level":"info","message":"m","v":")" + out + "\"}")
        << to_hex(in);
  }
}

// Any bytes: one line of printable ASCII, from which the value can be had back.
TEST(Log, AnyBytesStayOnOneLine) {
  const uint64_t seed = 20261115;
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 2000; round++) {
    Bytes value = random.bytes(random.below(20));
    if (random.one_in(2))  // mostly what is special
      for (char& c : value) c = " =\"\\\n\r\x1bxn0"[random.below(10)];
    SCOPED_TRACE(to_hex(value));
    const std::string line = text_line("m", {{"v", value}});
    for (const char c : line) ASSERT_TRUE(c >= 0x20 && c <= 0x7e) << line;
    const std::string start = "2026-11-15T04:00:00.123Z info  m v=";
    ASSERT_TRUE(line.starts_with(start));
    ASSERT_EQ(unquote(line.substr(start.size())).value(), value);

    for (const char c : json_line("m", {{"v", value}}))
      ASSERT_GE(static_cast<unsigned char>(c), 0x20);
  }
}

TEST(Log, LevelAndFormatAreRespected) {
  LogCapture log(LogLevel::warn);
  EXPECT_FALSE(log_enabled(LogLevel::info));
  EXPECT_TRUE(log_enabled(LogLevel::warn));
  log_debug("d");
  log_info("i");
  log_warn("w", {{"n", 1}});
  setup_log(LogLevel::error, LogFormat::json);
  log_warn("w2");
  log_error("e");
  const auto lines = log.lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].ends_with("Z warn  w n=1")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with(R"(,"level":"error","message":"e"})")) << lines[1];
  EXPECT_TRUE(log.contains("w n=1"));
  EXPECT_FALSE(log.contains("w2"));
}

TEST(Log, CapturesNestAndRestore) {
  LogCapture outer(LogLevel::error, LogFormat::json);
  {
    LogCapture inner;
    log_debug("inside");
    EXPECT_EQ(inner.lines().size(), 1u);
  }
  log_warn("below the level again");
  log_error("outside");
  ASSERT_EQ(outer.lines().size(), 1u);
  EXPECT_TRUE(outer.contains(R"("message":"outside")"));
}

TEST(Log, OutlivesItsOutputAndKeepsErrno) {
  const int saved = ::dup(STDERR_FILENO);
  ASSERT_GE(saved, 0);
  ::close(STDERR_FILENO);
  errno = ENOSPC;
  log_error("nobody reads this");
  const int errno_after = errno;
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  EXPECT_EQ(errno_after, ENOSPC);
}

// Many threads on the real standard error: every line whole, none lost, each thread's in order.
TEST(Log, LinesOfThreadsDoNotMix) {
  constexpr int threads_count = 8;
  constexpr int lines_count = 200;
  const std::string filler(300, 'x');
  testing::internal::CaptureStderr();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < threads_count; t++) {
      threads.emplace_back([&, t] {
        for (int n = 0; n < lines_count; n++)
          log_info("line", {{"thread", t}, {"n", n}, {"filler", filler}});
      });
    }
  }
  std::istringstream output(testing::internal::GetCapturedStderr());
  std::map<std::string, int> next;
  int total = 0;
  for (std::string line; std::getline(output, line); total++) {
    const size_t at = line.find(" line thread=");
    ASSERT_NE(at, std::string::npos) << line;
    const std::string thread = line.substr(at, line.find(" n=") - at);
    ASSERT_EQ(line.substr(at),
              thread + " n=" + std::to_string(next[thread]++) + " filler=" + filler);
  }
  EXPECT_EQ(total, threads_count * lines_count);
}

// setup_log beside writers; for the thread sanitizer.
TEST(Log, SetupBesideWriters) {
  LogCapture log;
  std::jthread writer([] {
    for (int n = 0; n < 500; n++) log_info("n", {{"n", n}});
  });
  for (int n = 0; n < 500; n++)
    setup_log(LogLevel::info, n % 2 == 0 ? LogFormat::text : LogFormat::json);
  writer.join();
  EXPECT_EQ(log.lines().size(), 500u);
}

}  // namespace
}  // namespace trellis
