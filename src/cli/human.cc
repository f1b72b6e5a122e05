#include "cli/human.h"

#include <fmt/format.h>

#include <chrono>

#include "base/utf8.h"

namespace trellis {
namespace {

constexpr uint64_t year_10000_ms = 253'402'300'800'000;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// REQUIRES: `sequence` is one well-formed character.
uint32_t code_point_of(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return lead;
  uint32_t code_point = lead & (0x7fu >> sequence.size());
  for (const char c : sequence.substr(1))
    code_point = code_point << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code_point;
}

// Of both control blocks, and what turns the direction of text around.
bool is_control(uint32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0) ||
         (code_point >= 0x202a && code_point <= 0x202e) ||
         (code_point >= 0x2066 && code_point <= 0x2069);
}

void append_escaped(std::string& out, char byte) {
  switch (byte) {
    case '\n': out += "\\n"; break;
    case '\r': out += "\\r"; break;
    case '\t': out += "\\t"; break;
    default: out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
}

std::string escaped(std::string_view bytes, bool reversibly) {
  std::string out;
  while (!bytes.empty()) {
    const size_t length = utf8_length(bytes);
    const std::string_view sequence = bytes.substr(0, length == 0 ? 1 : length);
    const uint32_t code_point = length == 0 ? 0 : code_point_of(sequence);
    if (length == 0 || is_control(code_point)) {
      for (const char byte : sequence) append_escaped(out, byte);
    } else {
      // unquote() takes quotes around a text off; a quote in front must not look like that.
      const bool is_special = code_point == '\\' || (code_point == '"' && out.empty());
      if (reversibly && is_special) out += '\\';
      out += sequence;
    }
    bytes.remove_prefix(sequence.size());
  }
  return out;
}

}  // namespace

std::string progress_bar(uint64_t done, uint64_t total) {
  return progress_bar(
      total == 0 ? 1 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total)));
}

std::string progress_bar(double part) {
  constexpr size_t columns = 30;
  const auto full = static_cast<size_t>(part * columns);
  return fmt::format("[{:#<{}}{:.<{}}] {}%", "", full, "", columns - full,
                     static_cast<unsigned>(part * 100));
}

std::string iso_time(uint64_t unix_ms) {
  using namespace std::chrono;
  if (unix_ms >= year_10000_ms) return "never";
  const sys_time<milliseconds> time{milliseconds(unix_ms)};
  const sys_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(floor<seconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::string human_duration(uint64_t ms) {
  // To the nearest: what was asked to last 30 d and has just begun still has 30 d.
  const auto count = [ms](uint64_t unit_ms) { return ms / unit_ms + (ms % unit_ms * 2 / unit_ms); };
  constexpr uint64_t second_ms = 1000, minute_ms = 60 * second_ms, hour_ms = 60 * minute_ms;
  if (count(second_ms) < 60) return fmt::format("{} s", count(second_ms));
  if (count(minute_ms) < 60) return fmt::format("{} min", count(minute_ms));
  if (count(hour_ms) < 48) return fmt::format("{} h", count(hour_ms));
  return fmt::format("{} d", count(24 * hour_ms));
}

std::string human_age(uint64_t now_ms, uint64_t then_ms) {
  if (then_ms > now_ms) return "in " + human_duration(then_ms - now_ms);
  return human_duration(now_ms - then_ms) + " ago";
}

std::string time_and_age(uint64_t now_ms, uint64_t then_ms) {
  if (then_ms >= year_10000_ms) return iso_time(then_ms);
  return fmt::format("{} ({})", iso_time(then_ms), human_age(now_ms, then_ms));
}

std::string terminal_text(std::string_view bytes) {
  std::string text = escaped(bytes, true);
  // Blanks around a text cannot be seen.
  constexpr std::string_view blank = "\\x20";
  if (text.ends_with(' ')) text.replace(text.size() - 1, 1, blank);
  if (text.starts_with(' ')) text.replace(0, 1, blank);
  return text;
}
std::string terminal_line(std::string_view sentence) { return escaped(sentence, false); }

size_t text_columns(std::string_view text) {
  size_t columns = 0;
  for (const char c : text)
    if (!is_continuation(c)) columns++;
  return columns;
}

std::string shortened_text(std::string text, size_t columns_max) {
  if (text_columns(text) <= columns_max) return text;
  size_t columns = 0;
  size_t at = 0;
  for (; at < text.size(); at++)
    if (!is_continuation(text[at]) && columns++ == columns_max - 3) break;
  return text.substr(0, at) + "...";
}

}  // namespace trellis
