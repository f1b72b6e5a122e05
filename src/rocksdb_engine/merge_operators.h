// What RocksDB does with an add to a counter and with a patch of a block.
//
// counter and its operand:  | 01 | value i64be |      (codec/counter_value.h)
// block:                    | 01 | crc32c of data u32be | data |
// patch (an operand):       | 02 | crc32c of offset and data u32be | offset u32be | data |
// damaged block:            | 03 | why, in words |
//
// Neither operator ever fails: a failed merge would stop compactions for good. What is no counter
// counts as 0. A block or patch whose checksum is wrong turns the block into a damaged one, which
// every read refuses until the whole block is written again.
#pragma once

#include <rocksdb/merge_operator.h>
#include <rocksdb/slice.h>

#include <array>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

constexpr size_t block_header_bytes = 5;
constexpr size_t patch_header_bytes = 9;
std::array<char, block_header_bytes> block_header(ByteView data);
std::array<char, patch_header_bytes> patch_header(uint32_t offset, ByteView data);

// The data of a stored block, checked.
Result<ByteView> decode_block(ByteView stored);

std::shared_ptr<rocksdb::MergeOperator> make_counter_operator();
std::shared_ptr<rocksdb::MergeOperator> make_block_operator();

}  // namespace trellis
