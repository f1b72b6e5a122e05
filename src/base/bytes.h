// Byte strings. Bytes owns, ByteView refers; both are the standard types, so that every library
// takes them. char_traits<char> compares as unsigned bytes, which is the order of the map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trellis {

using Bytes = std::string;
using ByteView = std::string_view;

// "6b01" for { 'k', 0x01 }.
std::string to_hex(ByteView bytes);

// Accepts upper and lower case and nothing else; says at which character it fails.
Result<Bytes> from_hex(std::string_view text);

// Text for people: printable ASCII as it is, the rest as \xNN, with \" and \\ escaped; in quotes.
std::string quote(ByteView bytes);

// The inverse of quote, also taking \n \r \t \0 and text without quotes.
Result<Bytes> unquote(std::string_view text);

// Order-preserving integers: most significant byte first.
void append_be16(Bytes& out, uint16_t value);
void append_be24(Bytes& out, uint32_t value);  // REQUIRES: value < 2^24
void append_be32(Bytes& out, uint32_t value);
void append_be64(Bytes& out, uint64_t value);

// REQUIRES: `in` has at least `width` (1 to 8) bytes.
inline uint64_t load_be(const char* in, size_t width) {
  uint64_t value = 0;
  if (width == sizeof value) {
    std::memcpy(&value, in, sizeof value);
    return __builtin_bswap64(value);  // the machine is little-endian (bytes.cc)
  }
  for (size_t i = 0; i < width; i++) value = value << 8 | static_cast<unsigned char>(in[i]);
  return value;
}

// The least key greater than every key that starts with `prefix`; empty if there is none (all ff),
// which as the end of an interval means "to the end of the map".
Bytes prefix_end(ByteView prefix);

// The least key greater than `key`: key + 00.
Bytes successor(ByteView key);

}  // namespace trellis
