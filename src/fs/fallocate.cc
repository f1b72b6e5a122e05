// Space and holes of files: what fallocate and lseek ask for.
#include <algorithm>
#include <utility>

#include "fs/content.h"

namespace trellis {
namespace {

// Extents that may move at once, which they must: what is moved half is another file.
constexpr size_t moved_extents_max = 100'000;

}  // namespace

Status Content::zero_part(uint64_t block, uint64_t from, uint64_t to) {
  if (!map_.at(block)) return {};
  const uint64_t defined = defined_in(block);
  to = std::min(to, defined);
  if (from == 0 && to == defined) return put_whole(block, {});
  return from < to ? put_part(block, from, keep(Bytes(to - from, '\0'))) : Status();
}

// An empty block is one of zeros.
Status Content::allocate(uint64_t offset, uint64_t end, bool keep_size) {
  const uint64_t size = keep_size ? file_.size : std::max(file_.size, end);
  if (is_inline()) {
    if (end <= inline_bytes_max) {
      resize_inline(size);
      return {};
    }
    TRY(leave_inline());
  } else {
    TRY(map_.load(block_of(std::min(offset, file_.size)), blocks_up_to(end)));
    TRY_ASSIGN(const bool is_clear, clear_up_to(size));
    if (!is_clear) return {};
  }
  for (uint64_t block = block_of(offset); block < blocks_up_to(end); block++)
    if (!map_.at(block)) TRY(put_whole(block, {}));
  file_.size = size;
  return {};
}

Status Content::zero(uint64_t offset, uint64_t end, bool keep_size) {
  if (is_inline()) {
    const uint64_t to = std::min(end, file_.size);
    if (offset < to) write_inline(offset, Bytes(to - offset, '\0'));
    return allocate(offset, end, keep_size);
  }
  TRY(map_.load(block_of(std::min(offset, file_.size)), blocks_up_to(end)));
  if (!keep_size) {
    TRY_ASSIGN(const bool is_clear, clear_up_to(offset - offset % block_bytes_max));
    if (!is_clear) return {};
  }
  for (uint64_t block = block_of(offset); block < blocks_up_to(end); block++) {
    const uint64_t begin = block * block_bytes_max;
    const uint64_t from = std::max(offset, begin) - begin;
    const uint64_t to = std::min<uint64_t>(end - begin, block_bytes_max);
    if (!map_.at(block) || (from == 0 && to >= defined_in(block)))
      TRY(put_whole(block, {}));
    else
      TRY(put_part(block, from, keep(Bytes(to - from, '\0'))));
  }
  if (!keep_size) file_.size = std::max(file_.size, end);
  return {};
}

Result<uint64_t> Content::punch(uint64_t offset, uint64_t end) {
  if (is_inline()) {
    const uint64_t to = std::min(end, file_.size);
    if (offset < to) write_inline(offset, Bytes(to - offset, '\0'));
    return offset;
  }
  TRY_ASSIGN(const uint64_t loaded,
             map_.load(block_of(offset), blocks_up_to(end), change_extents_max));
  const uint64_t begin = std::max(offset, loaded * block_bytes_max);
  const uint64_t whole_begin = blocks_up_to(begin);
  const uint64_t whole_end = end >= file_.size ? blocks_up_to(end) : block_of(end);
  if (whole_begin > whole_end) {  // inside of one block
    TRY(zero_part(whole_end, begin % block_bytes_max, end % block_bytes_max));
    return begin;
  }
  if (begin % block_bytes_max != 0)
    TRY(zero_part(block_of(begin), begin % block_bytes_max, block_bytes_max));
  if (whole_end < blocks_up_to(end)) TRY(zero_part(whole_end, 0, end % block_bytes_max));
  release(whole_begin, whole_end);
  return begin;
}

Status Content::collapse(uint64_t offset, uint64_t end) {
  if (end >= file_.size)
    return fs_error::invalid("what is to be cut out must end before the end of the file");
  TRY_ASSIGN(const uint64_t loaded,
             map_.load(block_of(offset), file_blocks_max, moved_extents_max));
  if (loaded != block_of(offset)) return fs_error::too_fragmented();
  release(block_of(offset), block_of(end));
  map_.shift(block_of(end), block_of(offset));
  file_.size -= end - offset;
  return {};
}

Status Content::insert(uint64_t offset, uint64_t end) {
  if (offset >= file_.size)
    return fs_error::invalid("what is to be put in must begin before the end of the file");
  const uint64_t added = end - offset;
  if (added > file_size_max - file_.size) return fs_error::file_too_large();
  if (is_inline()) {
    TRY(leave_inline());
  } else {
    TRY_ASSIGN(const uint64_t loaded,
               map_.load(block_of(offset), file_blocks_max, moved_extents_max));
    if (loaded != block_of(offset)) return fs_error::too_fragmented();
  }
  // Space behind the end moves, too, and may not have where to go.
  const auto moved = map_.mapped(block_of(offset), file_blocks_max);
  if (!moved.empty() && moved.back().end() > file_blocks_max - block_of(added))
    return fs_error::file_too_large();
  map_.shift(block_of(offset), block_of(end));
  file_.size += added;
  return {};
}

Status FileSystem::fallocate(const Caller& caller, InodeId inode, FallocateMode mode,
                             uint64_t offset, uint64_t size) {
  using Kind = FallocateMode::Kind;
  if (size == 0) return fs_error::invalid("no bytes are named");
  if (offset > file_size_max || size > file_size_max - offset) return fs_error::file_too_large();
  if (mode.kind == Kind::punch_hole && !mode.keep_size)
    return fs_error::not_supported("a hole is made only with the size kept");
  const bool moves = mode.kind == Kind::collapse || mode.kind == Kind::insert;
  if (moves && mode.keep_size) return fs_error::invalid("the size cannot be kept");
  if (moves && (offset % block_bytes_max != 0 || size % block_bytes_max != 0))
    return fs_error::invalid("only whole blocks of 64 KiB are put in or cut out");
  const uint64_t end = offset + size;
  if (moves) {
    return change_content(caller, inode, offset, file_end_max, true, [&](Content& content) {
      return mode.kind == Kind::collapse ? content.collapse(offset, end)
                                         : content.insert(offset, end);
    });
  }
  if (mode.kind == Kind::punch_hole) {
    for (uint64_t left = end; left > offset;) {
      uint64_t done_from = left;
      TRY(change_content(caller, inode, offset, left, true, [&](Content& content) -> Status {
        TRY_ASSIGN(done_from, content.punch(offset, left));
        return {};
      }));
      left = done_from;
    }
    return {};
  }
  for (uint64_t at = offset; at < end;) {
    const uint64_t to = std::min(end, (block_of(at) + change_blocks_max) * block_bytes_max);
    TRY(change_content(caller, inode, at, to, true, [&](Content& content) {
      return mode.kind == Kind::zero ? content.zero(at, to, mode.keep_size)
                                     : content.allocate(at, to, mode.keep_size);
    }));
    at = to;
  }
  return {};
}

// --- lseek ---

namespace {

// Where data, or a hole, is from a block on.
class Seeker {
 public:
  Seeker(CountedView& view, KeyspaceId keyspace, InodeId inode)
      : view_(view), keyspace_(keyspace), inode_(inode) {}

  // The first block that is mapped, or is not; absent: none is.
  Result<std::optional<uint64_t>> find(uint64_t from, bool for_data) {
    uint64_t at = from;
    bool found = false;
    const auto look = [&](const FileExtent& extent) {
      if (extent.end() <= at) return Visit::go_on;
      if (for_data)
        at = std::max(at, extent.block);
      else if (extent.block <= at)
        at = extent.end();
      found = for_data || extent.block > at;
      return found ? Visit::stop : Visit::go_on;
    };
    TRY(scan(from, true, look));
    if (!found) TRY(scan(from + 1, false, look));
    if (for_data && !found) return std::optional<uint64_t>();
    return std::optional<uint64_t>(at);
  }

 private:
  // Extents that begin at or behind `from`; reverse: the last one that does not.
  Status scan(uint64_t from, bool reverse, FunctionRef<Visit(const FileExtent&)> look) {
    Bytes begin = encode(FsExtentKey{keyspace_, inode_, reverse ? 0 : from});
    const Bytes end = encode(FsExtentKey{keyspace_, inode_, reverse ? from + 1 : UINT64_MAX});
    Status bad;
    bool stopped = reverse;
    const auto visit = [&](ByteView key, ByteView value) {
      const auto extent = decode_extent(inode_, key, value);
      if (!extent) bad = extent.error();
      stopped = !extent || look(*extent) == Visit::stop || reverse;
      return stopped ? Visit::stop : Visit::go_on;
    };
    for (;;) {
      TRY_ASSIGN(ScanPage page, view_.scan({.begin = begin,
                                            .end = end,
                                            .reverse = reverse,
                                            .entries_max = reverse ? 1 : change_extents_max},
                                           visit));
      TRY(bad);
      if (stopped || !page.resume) return {};
      begin = std::move(*page.resume);
    }
  }

  CountedView& view_;
  const KeyspaceId keyspace_;
  const InodeId inode_;
};

}  // namespace

Result<uint64_t> FileSystem::seek(const Caller& caller, InodeId inode, uint64_t offset,
                                  bool for_data) {
  const Bytes key = encode(FsInodeKey{keyspace(), inode});
  uint64_t result = 0;
  const auto look = [&](CountedView& view) -> Status {
    Value stored;
    TRY(view.get(key, stored));
    if (!stored.found()) return fs_error::stale(inode);
    TRY_ASSIGN(const FsInode file, decode_inode(inode, stored.bytes()));
    TRY(check_has_content(inode, file));
    if (offset >= file.size) return fs_error::no_such_offset();
    result = for_data ? offset : file.size;
    if ((file.flags & fs_inline) != 0) return {};
    TRY_ASSIGN(const auto found, Seeker(view, keyspace(), inode).find(block_of(offset), for_data));
    if (found && *found < blocks_up_to(file.size))
      result = std::max(offset, *found * block_bytes_max);
    else if (for_data)
      return fs_error::no_such_offset();
    return {};
  };
  TRY(tenant_->read(caller, Model::fs, Scope::in(keyspace()).shared(key), look));
  return result;
}

Result<uint64_t> FileSystem::seek_data(const Caller& caller, InodeId inode, uint64_t offset) {
  return seek(caller, inode, offset, true);
}

Result<uint64_t> FileSystem::seek_hole(const Caller& caller, InodeId inode, uint64_t offset) {
  return seek(caller, inode, offset, false);
}

}  // namespace trellis
