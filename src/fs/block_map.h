// The extents of one inode in a transaction: which blocks of the file are where.
//
//   BlockMap map(view, keyspace, inode);
//   TRY_ASSIGN(uint64_t from, map.load(first, end));     // one scan
//   map.unmap(first, end, [&](const FileExtent& was) { ... });
//   map.map({.block = first, .data = data, .first = 7, .blocks = end - first});
//   map.store();                                         // what has changed, and no more
//
// Extents do not overlap, and neighbours that could be one are one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/function_ref.h"
#include "codec/fs_keys.h"
#include "codec/fs_values.h"
#include "tenant/tenant.h"

namespace trellis {

// Blocks of a file, side by side there and in the data that they are in.
struct FileExtent {
  uint64_t block;  // of the file: the first
  DataId data;
  uint64_t first;  // where it is in the data
  uint64_t blocks;

  uint64_t end() const { return block + blocks; }
  // What of it is in [begin, end). REQUIRES: something is.
  FileExtent clipped(uint64_t begin, uint64_t end) const;
  bool operator==(const FileExtent&) const = default;
};

// No file has a block of that number.
constexpr uint64_t file_blocks_max = uint64_t{1} << 47;

// Of a stored record; `key` begins with the inode's prefix.
Result<FileExtent> decode_extent(InodeId inode, ByteView key, ByteView value);

using ExtentVisitor = FunctionRef<void(const FileExtent&)>;

class BlockMap {
 public:
  BlockMap(CountedView& view, KeyspaceId keyspace, InodeId inode)
      : view_(view), keyspace_(keyspace), inode_(inode) {}

  // Reads the extents with blocks of [begin, end), and those right beside it; of more than
  // extents_max the last ones. Where what was read begins: from there to the end all is known.
  // REQUIRES: nothing was changed yet.
  Result<uint64_t> load(uint64_t begin, uint64_t end, size_t extents_max = SIZE_MAX);

  // All below REQUIRE that what they name was loaded.
  std::optional<FileExtent> at(uint64_t block) const;  // the block alone
  // In order, each cut to [begin, end).
  std::vector<FileExtent> mapped(uint64_t begin, uint64_t end) const;
  // What was mapped of [begin, end) is told.
  void unmap(uint64_t begin, uint64_t end, ExtentVisitor was);
  // REQUIRES: nothing of it is mapped.
  void map(const FileExtent& extent);
  // Everything from `begin` on moves to `to`. REQUIRES: nothing is mapped there that does not move,
  // and all from the lower one on is loaded.
  void shift(uint64_t begin, uint64_t to);

  void store();

 private:
  using Extents = std::map<uint64_t, FileExtent>;
  Extents::const_iterator first_at(uint64_t block) const;
  Bytes key(uint64_t block) const { return encode(FsExtentKey{keyspace_, inode_, block}); }

  CountedView& view_;
  const KeyspaceId keyspace_;
  const InodeId inode_;
  bool changed_ = false;
  Extents stored_;  // as they were loaded
  Extents now_;
};

}  // namespace trellis
