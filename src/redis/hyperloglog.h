// A HyperLogLog: Redis's bytes, kept as a string, so that GET, DUMP and SETRANGE see what they do
// there.
//
//   | "HYLL" | encoding u8 | 00*3 | cardinality u64le | registers |
//
//   encoding 0, dense: 16,384 registers of 6 bits, the first in the lowest bits of the first byte
//   encoding 1, sparse: runs of equal registers, in order
//     | 00nnnnnn |           n + 1 that are 0
//     | 01nnnnnn nnnnnnnn |  the same with 14 bits, highest first
//     | 1vvvvvnn |           n + 1 that are v + 1
//
// The highest bit of the cardinality says that it is not known: registers changed since.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

constexpr size_t hll_registers = 16'384;
using HllRegisters = std::array<uint8_t, hll_registers>;

// What can be told from its length and header. All below REQUIRE it.
bool is_hyperloglog(ByteView text);

Bytes empty_hyperloglog();
bool hll_is_dense(ByteView hll);
// Its cardinality, as it was counted last; absent: not known.
std::optional<uint64_t> hll_counted(ByteView hll);
void hll_set_counted(Bytes& hll, uint64_t cardinality);
void hll_forget_counted(Bytes& hll);

// These answer INVALIDOBJ if runs are not those of all registers.
// Says whether a register changed. What would be sparse with more bytes than that becomes dense.
Result<bool> hll_add(Bytes& hll, ByteView element, size_t sparse_bytes_max);
// Raises one register to `value`. REQUIRES: index < hll_registers, 0 < value < 64.
Result<bool> hll_raise(Bytes& hll, size_t index, uint8_t value, size_t sparse_bytes_max);
Status hll_make_dense(Bytes& hll);
// Raises registers to those of `hll`.
Status hll_merge(ByteView hll, HllRegisters& registers);
// Runs as PFDEBUG shows them. REQUIRES: it is sparse.
std::string hll_runs_text(ByteView hll);

uint64_t hll_cardinality(const HllRegisters& registers);

}  // namespace trellis
