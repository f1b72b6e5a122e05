#include "json/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/utf8.h"

namespace trellis {
namespace {

constexpr std::string_view base64_alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int16_t, 256> make_base64_digits() {
  std::array<int16_t, 256> digits{};
  digits.fill(-1);
  for (size_t i = 0; i < base64_alphabet.size(); ++i) {
    digits[static_cast<unsigned char>(base64_alphabet[i])] = static_cast<int16_t>(i);
  }
  return digits;
}
constexpr std::array<int16_t, 256> base64_digits = make_base64_digits();

void append_escaped(Bytes& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
  }
}

// Double.toString(): plain from 0.001 to below ten millions, always with a digit behind the point.
void append_java_real(Bytes& out, double real) {
  const double size = std::abs(real);
  const bool is_plain = size == 0 || (size >= 1e-3 && size < 1e7);
  std::array<char, 40> buffer{};
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), real,
                    is_plain ? std::chars_format::fixed : std::chars_format::scientific);
  const std::string_view text(buffer.data(), written.ptr);
  const size_t e = std::min(text.find('e'), text.size());
  out += text.substr(0, e);
  if (text.substr(0, e).find('.') == std::string_view::npos) out += ".0";
  if (is_plain) return;
  std::string_view exponent = text.substr(e + 1);  // "+07", "-300"
  out += exponent.starts_with('-') ? "E-" : "E";
  exponent.remove_prefix(1);
  out += exponent.substr(exponent.starts_with('0') ? 1 : 0);
}

bool is_plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x80 &&
         c != '"' && c != '\\';
}

}  // namespace

void append_json_string(Bytes& out, ByteView text) {
  out += '"';
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t length = utf8_length(text);
    if (length == 1) {
      append_escaped(out, text[0]);
    } else if (length == 0) {
      out += "\xef\xbf\xbd";
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

void append_json(Bytes& out, const boost::json::value& value, JsonReals reals) {
  if (const auto* object = value.if_object()) {
    out += '{';
    bool is_first = true;
    for (const auto& member : *object) {
      if (!std::exchange(is_first, false)) out += ',';
      append_json_string(out, {member.key().data(), member.key().size()});
      out += ':';
      append_json(out, member.value(), reals);
    }
    out += '}';
  } else if (const auto* array = value.if_array()) {
    out += '[';
    bool is_first = true;
    for (const auto& element : *array) {
      if (!std::exchange(is_first, false)) out += ',';
      append_json(out, element, reals);
    }
    out += ']';
  } else if (const auto* text = value.if_string()) {
    append_json_string(out, {text->data(), text->size()});
  } else if (const auto* number = value.if_uint64()) {
    fmt::format_to(std::back_inserter(out), "{}", *number);
  } else if (const auto* whole = value.if_int64()) {
    fmt::format_to(std::back_inserter(out), "{}", *whole);
  } else if (const auto* real = value.if_double(); real != nullptr && std::isfinite(*real)) {
    if (reals == JsonReals::as_java)
      append_java_real(out, *real);
    else
      fmt::format_to(std::back_inserter(out), "{}", *real);
  } else if (const auto* flag = value.if_bool()) {
    out += *flag ? "true" : "false";
  } else {
    out += "null";
  }
}

void append_json_bytes(Bytes& out, std::string_view name, ByteView bytes) {
  const bool is_text = is_utf8(bytes);
  out += '"';
  out += name;
  out += is_text ? "\":" : "_base64\":";
  if (is_text) {
    append_json_string(out, bytes);
  } else {
    out += '"';
    out += base64_encode(bytes);
    out += '"';
  }
}

std::string base64_encode(ByteView bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      out += j <= count ? base64_alphabet[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return out;
}

Result<Bytes> base64_decode(std::string_view text) {
  const Error bad{Code::invalid, "it is no base64 with padding", "bad_base64"};
  if (text.size() % 4 != 0) return bad;
  size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  Bytes out;
  out.reserve(text.size() / 4 * 3 + 2);
  uint32_t group = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const int digit = base64_digits[static_cast<unsigned char>(c)];
    if (digit < 0) return bad;
    group = (group << 6 | static_cast<uint32_t>(digit)) & 0xffffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out += static_cast<char>(group >> bits & 0xff);
    }
  }
  if ((group & ((1U << bits) - 1)) != 0) return bad;  // bits that no byte has
  return out;
}

void append_json_entry(Bytes& out, const JsonEntry& entry) {
  out += '{';
  append_json_bytes(out, "key", entry.key);
  if (entry.has_value) {
    out += ',';
    append_json_bytes(out, "value", entry.value);
  }
  if (entry.expires_at_ms != 0) {
    fmt::format_to(std::back_inserter(out), ",\"expires_at_ms\":{}", entry.expires_at_ms);
  }
  out += '}';
}

}  // namespace trellis
