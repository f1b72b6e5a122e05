#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/assert.h"

namespace trellis {
namespace {

static_assert(std::endian::native == std::endian::little);  // the loads of 8 bytes below

constexpr uint32_t polynomial = 0x82f63b78;  // bits reversed, as the checksum is

// tables[0][b] is the step for one byte; tables[k][b] the same followed by k zero bytes, so that
// eight bytes are eight lookups that do not wait for each other.
constexpr auto tables = [] {
  std::array<std::array<uint32_t, 256>, 8> out{};
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? polynomial : 0);
    out[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; k++)
    for (size_t byte = 0; byte < 256; byte++)
      out[k][byte] = (out[k - 1][byte] >> 8) ^ out[0][out[k - 1][byte] & 0xff];
  return out;
}();

// The instruction takes three cycles but starts one in each: so three stripes are summed up side by
// side, and joined.
constexpr size_t stripe_bytes = 1024;  // a power of two
constexpr size_t line_bytes = 64;

using Matrix = std::array<uint32_t, 32>;  // what becomes of each bit

constexpr uint32_t times(const Matrix& matrix, uint32_t crc) {
  uint32_t out = 0;
  for (size_t bit = 0; bit < 32; bit++) out ^= (crc >> bit) & 1 ? matrix[bit] : 0;
  return out;
}

// What a stripe of zeros makes of a checksum, by its four bytes.
constexpr auto stripe_tables = [] {
  Matrix zeros{};
  for (uint32_t bit = 0; bit < 32; bit++)
    zeros[bit] = ((1u << bit) >> 8) ^ tables[0][(1u << bit) & 0xff];
  for (size_t bytes = 1; bytes < stripe_bytes; bytes *= 2) {
    Matrix twice{};
    for (size_t bit = 0; bit < 32; bit++) twice[bit] = times(zeros, zeros[bit]);
    zeros = twice;
  }
  std::array<std::array<uint32_t, 256>, 4> out{};
  for (uint32_t k = 0; k < 4; k++)
    for (uint32_t byte = 0; byte < 256; byte++) out[k][byte] = times(zeros, byte << (8 * k));
  return out;
}();

uint32_t behind_stripe(uint64_t crc) {
  uint32_t out = 0;
  for (size_t k = 0; k < 4; k++) out ^= stripe_tables[k][(crc >> (8 * k)) & 0xff];
  return out;
}

uint64_t load_8(const char* in) {
  uint64_t word;
  std::memcpy(&word, in, sizeof word);
  return word;
}

}  // namespace

uint32_t crc32c_by_table(ByteView bytes, uint32_t seed) {
  uint32_t crc = ~seed;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    const uint64_t word = load_8(bytes.data()) ^ crc;
    crc = 0;
    for (size_t i = 0; i < 8; i++) crc ^= tables[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (const unsigned char byte : bytes) crc = (crc >> 8) ^ tables[0][(crc ^ byte) & 0xff];
  return ~crc;
}

#if defined(__x86_64__)

bool has_crc32c_instruction() { return __builtin_cpu_supports("sse4.2"); }

__attribute__((target("sse4.2"))) uint32_t crc32c_by_instruction(ByteView bytes, uint32_t seed) {
  uint64_t crc = ~seed;
  for (; bytes.size() >= 3 * stripe_bytes; bytes.remove_prefix(3 * stripe_bytes)) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (const char* line = bytes.data(); line < bytes.data() + stripe_bytes; line += line_bytes) {
      // The processor foresees one stream, and not these.
      for (size_t ahead = 3; ahead < 6; ahead++) __builtin_prefetch(line + ahead * stripe_bytes);
      for (const char* at = line; at < line + line_bytes; at += 8) {
        crc = __builtin_ia32_crc32di(crc, load_8(at));
        second = __builtin_ia32_crc32di(second, load_8(at + stripe_bytes));
        third = __builtin_ia32_crc32di(third, load_8(at + 2 * stripe_bytes));
      }
    }
    crc = behind_stripe(behind_stripe(crc) ^ second) ^ third;
  }
  for (; bytes.size() >= 8; bytes.remove_prefix(8))
    crc = __builtin_ia32_crc32di(crc, load_8(bytes.data()));
  uint32_t tail = static_cast<uint32_t>(crc);
  for (const unsigned char byte : bytes) tail = __builtin_ia32_crc32qi(tail, byte);
  return ~tail;
}

#else

bool has_crc32c_instruction() { return false; }

uint32_t crc32c_by_instruction(ByteView bytes, uint32_t seed) {
  ASSERT(has_crc32c_instruction());
  return crc32c_by_table(bytes, seed);
}

#endif

uint32_t crc32c(ByteView bytes, uint32_t seed) {
  static const bool use_instruction = has_crc32c_instruction();
  return use_instruction ? crc32c_by_instruction(bytes, seed) : crc32c_by_table(bytes, seed);
}

}  // namespace trellis
