#include "cli/bytes_json.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace trellis {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(ByteView bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; j++)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; j++)
      out += i + j <= bytes.size() ? alphabet[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

Result<Bytes> from_base64(std::string_view text) {
  const Error error{Code::invalid, "this is not base64"};
  if (text.size() % 4 != 0) return error;
  Bytes out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool is_last = i + 4 == text.size();
    size_t digits = 4;
    if (is_last && text[i + 3] == '=') digits = text[i + 2] == '=' ? 2 : 3;
    uint32_t group = 0;
    for (size_t j = 0; j < 4; j++) {
      const size_t digit = j < digits ? alphabet.find(text[i + j]) : 0;
      if (digit == std::string_view::npos) return error;
      group = group << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t j = 0; j + 1 < digits; j++) out.push_back(static_cast<char>(group >> (16 - 8 * j)));
    // Bits that stand for nothing are zero: there is one text for each value.
    if (digits < 4 && (group & (digits == 3 ? 0xffu : 0xffffu)) != 0) return error;
  }
  return out;
}

void add_bytes(boost::json::object& object, std::string_view name, ByteView bytes) {
  if (is_utf8(bytes))
    object[name] = bytes;
  else
    object[fmt::format("{}_base64", name)] = to_base64(bytes);
}

Result<Bytes> bytes_of(const boost::json::object& object, std::string_view name) {
  if (const auto* text = object.if_contains(name); text != nullptr && text->is_string())
    return Bytes(text->get_string());
  const auto* encoded = object.if_contains(fmt::format("{}_base64", name));
  if (encoded != nullptr && encoded->is_string()) return from_base64(encoded->get_string());
  return Error{Code::invalid, fmt::format("there is neither {0} nor {0}_base64", name)};
}

}  // namespace trellis
