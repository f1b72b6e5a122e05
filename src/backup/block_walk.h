// Blocks of file data in a backup: entries of chunks of their own, with the keys that FsBlockKey
// gives them, and the blocks themselves as values.
#pragma once

#include <optional>
#include <vector>

#include "backup/chunk.h"
#include "base/bytes.h"
#include "base/result.h"
#include "engine/engine.h"

namespace trellis {

struct BlockInterval {
  BlockId begin;
  BlockId end;
};

// What the walk of blocks is cut into, so that threads can share it.
struct BlockUnits {
  BlockInterval scope;
  std::vector<Bytes> bounds = {};  // keys, ascending: where each unit but the first begins

  size_t size() const { return bounds.size() + 1; }
  // REQUIRES: number < size().
  BlockInterval unit(size_t number) const;
};

// As the last backup had them, if they are not too few or too many by now; else half-way between
// the first block and the last, and so on. The same store gives the same units.
Result<BlockUnits> cut_block_units(BlockStore& blocks, const BlockInterval& scope, size_t wanted,
                                   std::vector<Bytes> bounds_before);

// One thread at a time.
class BlockWalk {
 public:
  BlockWalk(BlockStore& blocks, const BlockInterval& unit)
      : blocks_(blocks), from_(unit.begin), end_(unit.end) {}

  bool done() const { return !from_.has_value(); }
  // Reads about so many bytes more. Appends the chunks that ended. REQUIRES: not done.
  // How many bytes of keys and values that was.
  Result<uint64_t> next(size_t bytes_max, std::vector<EntryChunk>& out);

 private:
  void take(std::vector<EntryChunk>& out);

  BlockStore& blocks_;
  std::optional<BlockId> from_;
  BlockId end_;
  ChunkCutter cutter_;
};

// The block that an entry of such a chunk is. Code::corrupt: it is none.
Result<BlockId> block_of_entry(ByteView key, ByteView value);

}  // namespace trellis
