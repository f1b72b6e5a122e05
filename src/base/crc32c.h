// CRC-32C (Castagnoli), as in iSCSI and RocksDB: finds torn and flipped bytes, not forgers.
//
//   crc32c("123456789") == 0xe3069283
//   crc32c("6789", crc32c("12345")) == crc32c("123456789")    // in pieces
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace trellis {

// `seed` is the checksum of what came before, 0 at the start.
uint32_t crc32c(ByteView bytes, uint32_t seed = 0);

// The two ways to compute it, so that tests compare them. crc32c picks once per process.
uint32_t crc32c_by_table(ByteView bytes, uint32_t seed);
bool has_crc32c_instruction();
uint32_t crc32c_by_instruction(ByteView bytes, uint32_t seed);  // REQUIRES: the machine has it

}  // namespace trellis
