#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace trellis {
namespace {

struct Vector {
  Bytes bytes;
  uint32_t crc;
};

// The check value of the CRC catalogue, then the examples of RFC 3720, appendix B.4.
std::vector<Vector> vectors() {
  Bytes up(32, '\0'), down(32, '\0');
  for (int i = 0; i < 32; i++) up[i] = static_cast<char>(i), down[i] = static_cast<char>(31 - i);
  const Bytes iscsi_read =
      from_hex(
          "01c00000000000000000000000000000140000000000040000000014000000182800000000000000"
          "0200000000000000")
          .value();
  return {{"", 0},
          {"123456789", 0xe3069283},
          {Bytes(32, '\0'), 0x8a9136aa},
          {Bytes(32, '\xff'), 0x62a8ab43},
          {up, 0x46dd794e},
          {down, 0x113fdb5c},
          {iscsi_read, 0xd9963a56}};
}

TEST(Crc32c, KnownVectors) {
  for (const auto& [bytes, crc] : vectors()) {
    SCOPED_TRACE(to_hex(bytes));
    EXPECT_EQ(crc32c(bytes), crc);
    EXPECT_EQ(crc32c_by_table(bytes, 0), crc);
    if (has_crc32c_instruction()) {
      EXPECT_EQ(crc32c_by_instruction(bytes, 0), crc);
    }
  }
}

TEST(Crc32c, BothWaysAgreeAndPiecesAddUp) {
  const uint64_t seed = 20261115;
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 2000; round++) {
    const Bytes buffer = random.bytes(random.below(random.one_in(4) ? 10'000 : 300));
    // Any start address, so that unaligned loads are covered.
    const ByteView bytes = ByteView(buffer).substr(random.below(buffer.size() + 1));
    const uint32_t start = random.one_in(2) ? 0 : static_cast<uint32_t>(random.next());
    const uint32_t expected = crc32c_by_table(bytes, start);
    if (has_crc32c_instruction()) {
      ASSERT_EQ(crc32c_by_instruction(bytes, start), expected) << to_hex(bytes);
    }
    const size_t cut = random.below(bytes.size() + 1);
    ASSERT_EQ(crc32c(bytes.substr(cut), crc32c(bytes.substr(0, cut), start)), expected)
        << to_hex(bytes) << " cut at " << cut;
  }
}

TEST(Crc32c, EveryFlippedBitShows) {
  const Bytes original = Random(7).bytes(64);
  const uint32_t crc = crc32c(original);
  for (size_t bit = 0; bit < original.size() * 8; bit++) {
    Bytes flipped = original;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(crc32c(flipped), crc) << "bit " << bit;
  }
}

}  // namespace
}  // namespace trellis
