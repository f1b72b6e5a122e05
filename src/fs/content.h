// Content of files within a change. Where it is stored is told in docs/decisions/0008-files.md.
//
// Bytes behind the end of a file are undefined in its last block and in blocks that are mapped
// behind it: a write that was never committed, or a longer file of before, may have left some
// there. Who makes the file longer makes them zeros.
#pragma once

#include <list>
#include <map>
#include <vector>

#include "fs/block_map.h"
#include "fs/change.h"

namespace trellis {

// A change takes no more of them: what has more is changed in several.
constexpr size_t change_extents_max = 8'192;
// Nor allocates or clears more of these.
constexpr uint64_t change_blocks_max = 4'096;

// No file has a byte there.
constexpr uint64_t file_end_max = file_blocks_max * block_bytes_max;

constexpr uint64_t block_of(uint64_t offset) { return offset / block_bytes_max; }
constexpr uint64_t blocks_up_to(uint64_t offset) {  // that [0, offset) has a part in
  return block_of(offset) + (offset % block_bytes_max == 0 ? 0 : 1);
}

// The blocks that a change writes anew. Where no latches order changes several may do so with one
// file at the same time: each has numbers of its own, and again the same when it runs again.
struct FreshBlocks {
  DataId data;
  uint64_t first = 0;
  uint64_t used = 0;
};

Error missing_block(InodeId inode, uint64_t block);

// From that one on.
Result<bool> has_blocks(BlockStore& blocks, KeyspaceId keyspace, DataId data, uint64_t first);

// Reasons: is_a_directory, not_a_file.
Status check_has_content(InodeId inode, const FsInode& file);

class Content {
 public:
  // REQUIRES: check_has_content. All of it outlives the content.
  Content(FsChange& change, InodeId inode, FsInode& file, FreshBlocks& fresh)
      : change_(change),
        inode_(inode),
        file_(file),
        fresh_(fresh),
        map_(change.view(), change.keyspace(), inode),
        size_before_(file.size),
        blocks_before_(file.blocks) {}

  uint64_t size() const { return file_.size; }
  uint64_t version() const { return file_.version; }

  // One of these, once; then finish. If it is not done then, the file is longer, not yet so long,
  // and another change goes on with the same.
  bool is_done() const { return is_done_; }

  // The bytes are needed until then. REQUIRES: not empty, and the end is at most file_size_max.
  Status write(uint64_t offset, ByteView bytes);
  // Whether that is the size now; else it is nearer to it, and may be made so by another change.
  Result<bool> set_size(uint64_t size);
  // Of a file without names, which nobody has open. Whether nothing is left.
  Result<bool> drop();

  // fallocate.cc. REQUIRES: offset < end, which is at most file_size_max.
  Status allocate(uint64_t offset, uint64_t end, bool keep_size);
  Status zero(uint64_t offset, uint64_t end, bool keep_size);
  // From the end on: up to where it is done.
  Result<uint64_t> punch(uint64_t offset, uint64_t end);
  // REQUIRES: whole blocks.
  Status collapse(uint64_t offset, uint64_t end);
  Status insert(uint64_t offset, uint64_t end);

  // clone.cc. [offset, offset + size) gets what `source` has from source_offset on, by sharing its
  // blocks, which `given` is the new data id of the source for. How much it was: 0 if it is not
  // possible. `source` may be the same file. REQUIRES: both begin with whole blocks.
  Result<uint64_t> share(uint64_t offset, Content& source, uint64_t source_offset, uint64_t size,
                         DataId given);

  // Writes blocks, extents and what follows from them.
  Status finish();
  // Of one that was only shared from.
  Status finish_unchanged();

 private:
  uint64_t defined_in(uint64_t block) const;  // bytes
  bool is_in_place(const FileExtent& where) const;
  bool is_inline() const { return (file_.flags & fs_inline) != 0; }
  Status leave_inline();
  void write_inline(uint64_t offset, ByteView bytes);
  void resize_inline(uint64_t size);
  Status zero_part(uint64_t block, uint64_t from, uint64_t to);
  Status give_data_away(DataId given);
  // [from, from + bytes) of the block, and zeros up to there where nothing was defined.
  Status put_part(uint64_t block, uint64_t from, ByteView bytes);
  // REQUIRES: what is defined in it is replaced.
  Status put_whole(uint64_t block, ByteView bytes);
  // What is undefined up to `end` becomes zeros. False: the file is as long as what was cleared,
  // because there is more.
  Result<bool> clear_up_to(uint64_t end);
  void release(uint64_t begin, uint64_t end);
  Result<uint64_t> fresh_block();
  Result<Bytes> read_block(const FileExtent& where);
  ByteView keep(Bytes bytes) { return kept_.emplace_back(std::move(bytes)); }
  Status remove_own_blocks();
  Status store();
  Status store_use(DataId data, int64_t difference);
  Status count_user(DataId data, int difference);
  void leave_blocks();
  void leave_blocks_note(DataId data, uint64_t first, uint64_t end, uint64_t bytes);

  FsChange& change_;
  const InodeId inode_;
  FsInode& file_;
  FreshBlocks& fresh_;
  BlockMap map_;
  const uint64_t size_before_;
  const uint64_t blocks_before_;
  bool is_done_ = true;
  std::vector<BlockWrite> writes_;
  std::list<Bytes> kept_;           // what writes_ refers to
  std::vector<FileExtent> freed_;   // of its own data
  std::map<DataId, int64_t> uses_;  // of shared data: blocks more or fewer
};

// What changing the content of [offset, end) needs, the inode and figures aside: data that it
// shares there, and, if blocks are to be shared, its own. `seen` may be outdated.
enum class PlannedData : uint8_t { shared, all };
Status plan_content(FsPlan& plan, InodeId inode, const FsInode& seen, uint64_t offset, uint64_t end,
                    PlannedData data = PlannedData::shared);

// --- for attributes.cc ---
Status plan_set_size(FsPlan& plan, InodeId inode, const FsInode& seen, uint64_t size);
// As Content::set_size.
Result<bool> set_size(FsChange& change, InodeId inode, FsInode& file, uint64_t size);

// A note for the collector: | 'b' | data u64 | first u64 | end u64 |. Blocks that no file maps, nor
// ever will.
Bytes blocks_note(DataId data, uint64_t first, uint64_t end);

}  // namespace trellis
