#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

#include "base/settings.h"

namespace trellis {
namespace {

// The last millisecond whose timestamp fits.
constexpr uint64_t point_ms_max = std::numeric_limits<uint64_t>::max() >> 18;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

Result<uint64_t> parse_by_setting(const SettingSpec& spec, std::string_view text) {
  TRY_ASSIGN(const SettingValue value, parse_setting(spec, text));
  return std::get<uint64_t>(value);
}

// 0 in a request means no limit, which is not what somebody who writes 0 expects.
Result<uint64_t> refuse_zero(Result<uint64_t> limit) {
  if (limit.has_value() && *limit == 0)
    return Error{Code::invalid, "0 is not a limit; use none for no limit"};
  return limit;
}

// Digits at `at`, exactly so many.
std::optional<int> digits(std::string_view text, size_t at, size_t count) {
  int value = 0;
  if (at + count > text.size()) return std::nullopt;
  for (const char c : text.substr(at, count)) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

// ".5", ".123"; nothing is 0.
std::optional<int> fraction_ms(std::string_view text) {
  if (text.empty()) return 0;
  if (text[0] != '.' || text.size() < 2 || text.size() > 4) return std::nullopt;
  auto value = digits(text, 1, text.size() - 1);
  for (size_t i = text.size(); value && i < 4; i++) *value *= 10;
  return value;
}

std::optional<uint64_t> iso_ms(std::string_view text) {
  using namespace std::chrono;
  constexpr std::string_view form = "0000-00-00T00:00:00";
  if (text.size() <= form.size() || text.back() != 'Z') return std::nullopt;
  for (size_t i = 0; i < form.size(); i++)
    if (form[i] != '0' && text[i] != form[i]) return std::nullopt;
  const auto y = digits(text, 0, 4), mo = digits(text, 5, 2), d = digits(text, 8, 2);
  const auto h = digits(text, 11, 2), mi = digits(text, 14, 2), s = digits(text, 17, 2);
  const auto ms = fraction_ms(text.substr(form.size(), text.size() - form.size() - 1));
  if (!y || !mo || !d || !h || !mi || !s || !ms) return std::nullopt;
  const year_month_day date(year(*y), month(static_cast<unsigned>(*mo)),
                            day(static_cast<unsigned>(*d)));
  if (!date.ok() || *h > 23 || *mi > 59 || *s > 59 || *y < 1970) return std::nullopt;
  const auto time = sys_days(date) + hours(*h) + minutes(*mi) + seconds(*s) + milliseconds(*ms);
  return static_cast<uint64_t>(duration_cast<milliseconds>(time.time_since_epoch()).count());
}

}  // namespace

Error wrong_use(std::string message) {
  return Error{Code::invalid, std::move(message), reason_wrong_use};
}

Result<std::pair<std::string, std::string>> parse_assignment(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return Error{Code::invalid, fmt::format("{} is not key=value", quote(text))};
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

Result<uint64_t> parse_whole_number(std::string_view text, uint64_t min) {
  return parse_by_setting(
      {.name = "", .kind = SettingKind::number, .default_text = "", .help = "", .min = min}, text);
}

Result<uint64_t> parse_size_bytes(std::string_view text) {
  return parse_by_setting({.name = "", .kind = SettingKind::size, .default_text = "", .help = ""},
                          text);
}

Result<uint64_t> parse_limit_of_bytes(std::string_view text) {
  return text == "none" ? Result<uint64_t>(0) : refuse_zero(parse_size_bytes(text));
}

Result<uint64_t> parse_limit(std::string_view text) {
  return text == "none" ? Result<uint64_t>(0) : refuse_zero(parse_whole_number(text));
}

Result<uint64_t> parse_time_ms(std::string_view text, uint64_t now_ms) {
  if (text == "now") return now_ms;
  if (const auto ms = iso_ms(text)) return *ms;
  return Error{
      Code::invalid,
      fmt::format("{} is not a time; use now or for example 2026-11-15T04:00:00Z", quote(text))};
}

Result<uint64_t> parse_point(std::string_view text, uint64_t now_ms) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_digit))
    return parse_whole_number(text);
  TRY_ASSIGN(const uint64_t ms, parse_time_ms(text, now_ms));
  return point_of_ms(std::min(ms, point_ms_max));
}

Result<Bytes> parse_bytes(std::string_view text, bool escaped) {
  if (!escaped) return Bytes(text);
  auto bytes = unquote(text);
  if (!bytes) return wrong_use(fmt::format("{}: {}", quote(text), bytes.error().message));
  return bytes;
}

std::string quoted_tag(std::string_view tag) {
  const bool is_quoted = tag.size() >= 2 && tag.starts_with('"') && tag.ends_with('"');
  return is_quoted ? std::string(tag) : fmt::format("\"{}\"", tag);
}

std::string check_tag(const std::string& tag) {
  if (tag.empty()) return "it must not be empty";
  for (const char c : tag)
    if (c <= ' ' || c >= 0x7f) return "a tag has no spaces; --json prints it as etag";
  return {};
}

bool names_an_id(std::string_view keyspace) {
  return keyspace.starts_with("id:") && keyspace.size() > 3 &&
         std::all_of(keyspace.begin() + 3, keyspace.end(), is_digit);
}

}  // namespace trellis
