#include "base/bytes.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace trellis {
namespace {

constexpr char hex_digits[] = "0123456789abcdef";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void append_be(Bytes& out, uint64_t value, size_t width) {
  static_assert(std::endian::native == std::endian::little);
  const uint64_t swapped = __builtin_bswap64(value);
  char raw[sizeof swapped];
  std::memcpy(raw, &swapped, sizeof swapped);
  out.append(raw + sizeof raw - width, width);
}

}  // namespace

std::string to_hex(ByteView bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (unsigned char byte : bytes) {
    text.push_back(hex_digits[byte >> 4]);
    text.push_back(hex_digits[byte & 15]);
  }
  return text;
}

Result<Bytes> from_hex(std::string_view text) {
  Bytes bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_value(text[i]);
    if (high < 0)
      return Error{Code::invalid, fmt::format("character {} is not a hex digit: {}", i + 1,
                                              quote(text.substr(i, 1)))};
    if (i + 1 == text.size())
      return Error{Code::invalid, fmt::format("odd number of hex digits: {}", text.size())};
    const int low = hex_value(text[i + 1]);
    if (low < 0)
      return Error{Code::invalid, fmt::format("character {} is not a hex digit: {}", i + 2,
                                              quote(text.substr(i + 1, 1)))};
    bytes.push_back(static_cast<char>(high << 4 | low));
  }
  return bytes;
}

std::string quote(ByteView bytes) {
  std::string text = "\"";
  for (unsigned char byte : bytes) {
    if (byte == '"' || byte == '\\') {
      text.push_back('\\');
      text.push_back(static_cast<char>(byte));
    } else if (byte >= 0x20 && byte < 0x7f) {
      text.push_back(static_cast<char>(byte));
    } else {
      text += "\\x";
      text.push_back(hex_digits[byte >> 4]);
      text.push_back(hex_digits[byte & 15]);
    }
  }
  text.push_back('"');
  return text;
}

Result<Bytes> unquote(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = text.substr(1, text.size() - 2);
  Bytes bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '\\') {
      bytes.push_back(text[i]);
      continue;
    }
    if (++i == text.size()) return Error{Code::invalid, "text ends in a lone backslash"};
    switch (text[i]) {
      case 'n': bytes.push_back('\n'); break;
      case 'r': bytes.push_back('\r'); break;
      case 't': bytes.push_back('\t'); break;
      case '0': bytes.push_back('\0'); break;
      case '"':
      case '\\': bytes.push_back(text[i]); break;
      case 'x': {
        const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
        if (high < 0 || low < 0)
          return Error{Code::invalid, "\\x needs two hex digits, as in \\x1f"};
        bytes.push_back(static_cast<char>(high << 4 | low));
        i += 2;
        break;
      }
      default:
        return Error{Code::invalid,
                     fmt::format("backslash before {} means nothing; use \\xNN, \\n, "
                                 "\\r, \\t, \\0, \\\" or \\\\",
                                 quote(text.substr(i, 1)))};
    }
  }
  return bytes;
}

void append_be16(Bytes& out, uint16_t value) { append_be(out, value, 2); }
void append_be24(Bytes& out, uint32_t value) { append_be(out, value, 3); }
void append_be32(Bytes& out, uint32_t value) { append_be(out, value, 4); }
void append_be64(Bytes& out, uint64_t value) { append_be(out, value, 8); }

Bytes prefix_end(ByteView prefix) {
  Bytes end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

Bytes successor(ByteView key) {
  Bytes next;
  next.reserve(key.size() + 1);
  next.append(key);
  next.push_back('\0');
  return next;
}

}  // namespace trellis
