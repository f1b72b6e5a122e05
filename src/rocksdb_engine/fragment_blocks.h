// Where the blocks of tables end. Fragments of bitmaps (redis/bitmap.h) are read in order more than
// anything else, and a block of 4 KiB has four of them: theirs have fifteen, 16 KiB. All others end
// where RocksDB ends them.
#pragma once

#include <rocksdb/flush_block_policy.h>

#include <memory>

namespace trellis {

constexpr size_t fragments_in_block = 15;

std::shared_ptr<rocksdb::FlushBlockPolicyFactory> make_fragment_blocks();

}  // namespace trellis
