#include "redis/number_text.h"

#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace trellis {
namespace {

// strtod and its kin want a zero behind the text and say how far they read.
template <class Number, class Convert>
std::optional<Number> parse_floating(ByteView text, Convert convert) {
  std::array<char, 5 * 1024> copy;
  if (text.empty() || text.size() >= copy.size()) return std::nullopt;
  std::memcpy(copy.data(), text.data(), text.size());
  copy[text.size()] = '\0';
  if (std::isspace(static_cast<unsigned char>(copy[0]))) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const Number number = convert(copy.data(), &end);
  if (end != copy.data() + text.size() || std::isnan(number)) return std::nullopt;
  const bool overflow =
      errno == ERANGE && (std::isinf(number) || std::fpclassify(number) == FP_ZERO);
  if (overflow) return std::nullopt;
  return number;
}

}  // namespace

std::optional<int64_t> parse_integer(ByteView text) {
  int64_t number = 0;
  if (text.empty() || text.size() > 20) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const ByteView digits = text[0] == '-' ? text.substr(1) : text;
  if (digits[0] == '0' && text.size() > 1) return std::nullopt;  // 007 and -0
  return number;
}

std::optional<double> parse_double(ByteView text) {
  return parse_floating<double>(text, [](const char* in, char** end) { return strtod(in, end); });
}

std::optional<long double> parse_long_double(ByteView text) {
  return parse_floating<long double>(text,
                                     [](const char* in, char** end) { return strtold(in, end); });
}

std::string double_text(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> text;
  const int size = std::snprintf(text.data(), text.size(), "%.17g", value);
  return {text.data(), static_cast<size_t>(size)};
}

std::string long_double_text(long double value) {
  std::array<char, 5 * 1024> text;
  const int written = std::snprintf(text.data(), text.size(), "%.17Lf", value);
  std::string_view shown(text.data(), static_cast<size_t>(written));
  if (shown.find('.') != std::string_view::npos) {
    while (shown.ends_with('0')) shown.remove_suffix(1);
    if (shown.ends_with('.')) shown.remove_suffix(1);
  }
  return shown == "-0" ? "0" : std::string(shown);
}

}  // namespace trellis
