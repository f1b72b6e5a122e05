#include "base/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <iterator>
#include <mutex>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/utf8.h"

namespace trellis {

constinit std::atomic<LogLevel> log_detail::level_min{LogLevel::info};

namespace {

// None has a destructor, so that threads and destructors may log after main.
constinit std::atomic<LogFormat> format_now{LogFormat::text};
constinit std::mutex output_mutex;  // one line at a time; also guards the capture
constinit LogCapture* capture_now = nullptr;

constexpr std::string_view level_names[] = {"debug", "info", "warn", "error"};

std::string_view name_of(LogLevel level) { return level_names[static_cast<size_t>(level)]; }

std::string timestamp(uint64_t unix_ms) {
  using namespace std::chrono;
  const sys_time<milliseconds> now{milliseconds(unix_ms)};
  const sys_days today = floor<days>(now);
  const year_month_day date(today);
  const hh_mm_ss time(now - today);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     time.subseconds().count());
}

// Printable ASCII that no reader of name=value pairs can take for something else.
bool is_plain(std::string_view text, std::string_view except) {
  for (const char c : text)
    if (c < 0x20 || c > 0x7e || except.find(c) != std::string_view::npos) return false;
  return !text.empty();
}

void append_word(std::string& out, std::string_view text) {
  if (is_plain(text, " =\"\\")) {
    out += text;
  } else {
    out += quote(text);
  }
}

void append_json(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const unsigned char first = static_cast<unsigned char>(text.front());
    if (length == 0) {
      out += "\ufffd";
    } else if (first == '"' || first == '\\') {
      out += '\\';
      out += text.front();
    } else if (first < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", first);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

void append_text_value(std::string& out, const LogValue& value) {
  if (const auto* text = std::get_if<std::string_view>(&value.variant()))
    return append_word(out, *text);
  std::visit([&](auto plain) { fmt::format_to(std::back_inserter(out), "{}", plain); },
             value.variant());
}

void append_json_value(std::string& out, const LogValue& value) {
  const auto* number = std::get_if<double>(&value.variant());
  if (const auto* text = std::get_if<std::string_view>(&value.variant())) {
    append_json(out, *text);
  } else if (number != nullptr && !std::isfinite(*number)) {
    append_json(out, fmt::format("{}", *number));  // JSON has no number for it
  } else {
    append_text_value(out, value);
  }
}

std::string format_text(LogLevel level, uint64_t unix_ms, std::string_view message,
                        LogFields fields) {
  std::string line = fmt::format("{} {:<5} ", timestamp(unix_ms), name_of(level));
  line += is_plain(message, "\"\\") ? std::string(message) : quote(message);
  for (const LogField& field : fields) {
    line += ' ';
    append_word(line, field.name);
    line += '=';
    append_text_value(line, field.value);
  }
  return line;
}

std::string format_json(LogLevel level, uint64_t unix_ms, std::string_view message,
                        LogFields fields) {
  std::string line =
      fmt::format(R"({{"time":"{}","level":"{}","message":)", timestamp(unix_ms), name_of(level));
  append_json(line, message);
  for (const LogField& field : fields) {
    const bool taken = field.name == "time" || field.name == "level" || field.name == "message";
    line += ',';
    append_json(line, taken ? std::string(field.name) + "_" : std::string(field.name));
    line += ':';
    append_json_value(line, field.value);
  }
  line += '}';
  return line;
}

void write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void setup_log(LogLevel level, LogFormat format) {
  format_now = format;
  log_detail::level_min = level;
}

std::string format_log_line(LogFormat format, LogLevel level, uint64_t unix_ms,
                            std::string_view message, LogFields fields) {
  return format == LogFormat::json ? format_json(level, unix_ms, message, fields)
                                   : format_text(level, unix_ms, message, fields);
}

void log_detail::write(LogLevel level, std::string_view message, LogFields fields) {
  const int errno_before = errno;  // callers log first and look at errno later
  std::string line = format_log_line(format_now, level, SystemClock().unix_ms(), message, fields);
  std::lock_guard lock(output_mutex);
  if (capture_now != nullptr) {
    capture_now->lines_.push_back(std::move(line));
  } else {
    line += '\n';
    write_all(line);
  }
  errno = errno_before;
}

LogCapture::LogCapture(LogLevel level, LogFormat format) {
  std::lock_guard lock(output_mutex);
  outer_ = capture_now;
  outer_level_ = log_detail::level_min;
  outer_format_ = format_now;
  capture_now = this;
  setup_log(level, format);
}

LogCapture::~LogCapture() {
  std::lock_guard lock(output_mutex);
  ASSERT(capture_now == this);
  capture_now = outer_;
  setup_log(outer_level_, outer_format_);
}

std::vector<std::string> LogCapture::lines() const {
  std::lock_guard lock(output_mutex);
  return lines_;
}

bool LogCapture::contains(std::string_view part) const {
  std::lock_guard lock(output_mutex);
  for (const std::string& line : lines_)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace trellis
