// Structured log lines on standard error, for people (text) or machines (one JSON object a line).
//
//   setup_log(LogLevel::info, LogFormat::text);                   // once, in main
//   log_info("store opened", {{"path", path}, {"ms", 12}});
//   2026-11-15T04:00:00.123Z info  store opened path=/x ms=12
//
// The message is a fixed text; what varies goes into fields. Whatever bytes a field holds, one call
// is one line: text quotes them as quote() does, JSON replaces what is not UTF-8. Log a key as
// quote(key) or to_hex(key) to keep it whole in both.
//
// Any thread, at any time. For events, not for each command: a line takes a lock and a system call.
// A line that cannot be written is lost, because a server must not stop for its log. (A pipe whose
// reader is gone kills a process that does not ignore SIGPIPE; a server does.)
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trellis {

enum class LogLevel : uint8_t { debug, info, warn, error };
enum class LogFormat : uint8_t { text, json };

// Text is referred to, not copied: it need only live until the call returns.
class LogValue {
 public:
  LogValue(std::string_view text) : value_(text) {}
  LogValue(const std::string& text) : value_(std::string_view(text)) {}
  LogValue(const char* text) : value_(std::string_view(text)) {}
  LogValue(std::same_as<bool> auto truth) : value_(truth) {}
  LogValue(std::floating_point auto number) : value_(static_cast<double>(number)) {}
  template <std::signed_integral T>
  requires(!std::same_as<T, char>) LogValue(T number) : value_(static_cast<int64_t>(number)) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) LogValue(T number) : value_(static_cast<uint64_t>(number)) {}

  using Variant = std::variant<std::string_view, bool, int64_t, uint64_t, double>;
  const Variant& variant() const { return value_; }

 private:
  Variant value_;
};

struct LogField {
  std::string_view name;
  LogValue value;
};
using LogFields = std::initializer_list<LogField>;

// Until it is called: info and text.
void setup_log(LogLevel level, LogFormat format);

namespace log_detail {
extern constinit std::atomic<LogLevel> level_min;
void write(LogLevel level, std::string_view message, LogFields fields);
}  // namespace log_detail

// A relaxed load, for callers whose fields are costly to make.
inline bool log_enabled(LogLevel level) {
  return level >= log_detail::level_min.load(std::memory_order_relaxed);
}

inline void log_line(LogLevel level, std::string_view message, LogFields fields = {}) {
  if (log_enabled(level)) log_detail::write(level, message, fields);
}
inline void log_debug(std::string_view message, LogFields fields = {}) {
  log_line(LogLevel::debug, message, fields);
}
inline void log_info(std::string_view message, LogFields fields = {}) {
  log_line(LogLevel::info, message, fields);
}
inline void log_warn(std::string_view message, LogFields fields = {}) {
  log_line(LogLevel::warn, message, fields);
}
inline void log_error(std::string_view message, LogFields fields = {}) {
  log_line(LogLevel::error, message, fields);
}

// What is written, without the newline at its end.
std::string format_log_line(LogFormat format, LogLevel level, uint64_t unix_ms,
                            std::string_view message, LogFields fields);

// For tests: while it lives, lines are kept here instead of written, with a level and format of its
// own. Captures may nest; the innermost gets the lines.
//
//   LogCapture log;
//   run();
//   EXPECT_TRUE(log.contains("store opened path=/x"));
class LogCapture {
 public:
  explicit LogCapture(LogLevel level = LogLevel::debug, LogFormat format = LogFormat::text);
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  std::vector<std::string> lines() const;
  bool contains(std::string_view part) const;  // any line does

 private:
  friend void log_detail::write(LogLevel, std::string_view, LogFields);
  std::vector<std::string> lines_;
  LogCapture* outer_;
  LogLevel outer_level_;
  LogFormat outer_format_;
};

}  // namespace trellis
