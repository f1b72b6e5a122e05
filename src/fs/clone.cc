// Copies of content that share its blocks.
#include <algorithm>
#include <utility>

#include "fs/content.h"

namespace trellis {
namespace {

constexpr uint64_t copied_bytes_max = uint64_t{1} << 20;

// That it maps of data that is not its own, as is stored.
Result<uint64_t> shared_blocks(FsChange& change, InodeId inode) {
  uint64_t blocks = 0;
  Status bad;
  const auto visit = [&](ByteView, ByteView value) {
    const auto use = decode<FsDataUse>(value);
    if (use)
      blocks += use->blocks;
    else
      bad = use.error();
    return use ? Visit::go_on : Visit::stop;
  };
  Bytes from = encode(FsDataUseKey{change.keyspace(), inode, DataId{0}});
  const Bytes end = encode(FsExtentKey{change.keyspace(), inode, 0});
  for (;;) {
    TRY_ASSIGN(ScanPage page, change.view().scan({.begin = from, .end = end}, visit));
    TRY(bad);
    if (!page.resume) return blocks;
    from = std::move(*page.resume);
  }
}

}  // namespace

// Its own blocks are nobody's own any more. Those that it is about to write have another data id.
Status Content::give_data_away(DataId given) {
  TRY_ASSIGN(uint64_t shared, shared_blocks(change_, inode_));
  for (const auto& [data, blocks] : uses_) shared += static_cast<uint64_t>(blocks);  // or fewer
  uses_[file_.data] += static_cast<int64_t>(file_.blocks - shared);
  file_.data = given;
  file_.next = 0;
  return {};
}

Result<uint64_t> Content::share(uint64_t offset, Content& source, uint64_t source_offset,
                                uint64_t size, DataId given) {
  if (source.is_inline() || source_offset >= source.file_.size) return uint64_t{0};
  size = std::min(size, source.file_.size - source_offset);
  // A last block that is not whole is shared if it is the last of both.
  const bool with_tail = source_offset + size == source.file_.size && offset + size >= file_.size;
  uint64_t blocks = with_tail ? blocks_up_to(size) : block_of(size);
  const uint64_t from = block_of(source_offset);
  const uint64_t to = block_of(offset);
  for (bool is_loaded = false; !is_loaded && blocks > 0;) {
    TRY_ASSIGN(const uint64_t source_loaded,
               source.map_.load(from, from + blocks, change_extents_max));
    is_loaded = source_loaded == from;
    if (is_loaded && !is_inline()) {
      TRY_ASSIGN(const uint64_t loaded, map_.load(to, to + blocks, change_extents_max));
      is_loaded = loaded == to;
    }
    if (!is_loaded) blocks /= 2;
  }
  if (blocks == 0) return uint64_t{0};
  size = std::min(size, blocks * block_bytes_max);
  if (is_inline()) {
    TRY(leave_inline());
  } else if (offset > file_.size) {
    TRY(map_.load(block_of(file_.size), to));
    TRY_ASSIGN(const bool is_clear, clear_up_to(offset));
    if (!is_clear) return uint64_t{0};
  }
  const auto extents = source.map_.mapped(from, from + blocks);
  const auto is_own = [&](const FileExtent& extent) { return extent.data == source.file_.data; };
  if (std::any_of(extents.begin(), extents.end(), is_own)) TRY(source.give_data_away(given));
  release(to, to + blocks);
  for (FileExtent extent : extents) {
    extent.block = extent.block - from + to;
    map_.map(extent);
    file_.blocks += extent.blocks;
    uses_[extent.data] += static_cast<int64_t>(extent.blocks);
  }
  file_.size = std::max(file_.size, offset + size);
  return size;
}

// Whole blocks from whole blocks.
Result<uint64_t> FileSystem::share_piece(const Caller& caller, InodeId from, uint64_t from_offset,
                                         InodeId to, uint64_t to_offset, uint64_t size) {
  TRY_ASSIGN(const uint64_t given, take_id());
  FreshBlocks fresh;
  FreshBlocks none;
  uint64_t shared = 0;
  bool is_done = true;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.hold(from);
    plan.hold(to);
    TRY_ASSIGN(const auto source, plan.inode(from));
    TRY_ASSIGN(const auto target, plan.inode(to));
    if (!source || !target) return fs_error::stale(source ? to : from);
    TRY(plan_content(plan, from, source->inode, from_offset, from_offset + size, PlannedData::all));
    TRY(plan_content(plan, to, target->inode, to_offset, to_offset + size));
    return target->inode.links != 0 ? plan.charge(target->inode.home) : Status();
  };
  const auto run = [&](FsChange& change) -> Status {
    fresh.used = 0;
    TRY_ASSIGN(FsInode* const source, change.inode(from));
    TRY_ASSIGN(FsInode* const target, change.inode(to));
    TRY(check_has_content(from, *source));
    TRY(check_has_content(to, *target));
    Content changed(change, to, *target, fresh);
    if (from == to) {
      TRY_ASSIGN(shared, changed.share(to_offset, changed, from_offset, size, DataId{given}));
    } else {
      Content kept(change, from, *source, none);
      TRY_ASSIGN(shared, changed.share(to_offset, kept, from_offset, size, DataId{given}));
      if (shared != 0) TRY(kept.finish_unchanged());
    }
    is_done = changed.is_done();
    return shared != 0 || !is_done ? changed.finish() : Status();
  };
  Status done;
  do {
    fresh = {};
    done = change(&caller, plan, run);
  } while (done && !is_done);
  if (!done && fresh.used != 0) discard(remove_unmapped(to, fresh, done.error()));
  TRY(done);
  return shared;
}

// As zeros that take no space, whatever its size.
Result<uint64_t> FileSystem::copy_hole(const Caller& caller, InodeId to, uint64_t offset,
                                       uint64_t size) {
  const uint64_t end = offset + size;
  TRY(fallocate(caller, to, {FallocateMode::Kind::punch_hole, true}, offset, size));
  const auto extend = [&](Content& content) -> Status {
    if (content.size() >= end) return {};
    TRY(content.set_size(end));
    return {};
  };
  TRY(change_content(caller, to, offset, end, true, extend));
  return size;
}

Result<uint64_t> FileSystem::copy_piece(const Caller& caller, InodeId from, uint64_t from_offset,
                                        InodeId to, uint64_t to_offset, uint64_t size) {
  const auto data = seek_data(caller, from, from_offset);
  if (!data && data.error().reason != fs_error::no_such_offset().reason) return data.error();
  uint64_t hole = data ? *data - from_offset : 0;
  if (!data) {  // up to the end, which may have moved
    TRY_ASSIGN(const auto seen, see_inode(tenant_->map().engine, keyspace(), from));
    if (!seen || seen->inode.size <= from_offset) return uint64_t{0};
    hole = seen->inode.size - from_offset;
  }
  if (hole >= block_bytes_max) return copy_hole(caller, to, to_offset, std::min(hole, size));
  Bytes bytes(std::min(size, copied_bytes_max), '\0');
  TRY_ASSIGN(const size_t found, read(caller, from, from_offset, bytes));
  TRY(write(caller, to, to_offset, ByteView(bytes).substr(0, found)));
  return found;
}

Result<uint64_t> FileSystem::copy_range(const Caller& caller, InodeId from, uint64_t from_offset,
                                        InodeId to, uint64_t to_offset, uint64_t size) {
  TRY(tenant_->admit(caller, Access::write, 0));
  Engine& engine = tenant_->map().engine;
  for (const InodeId inode : {from, to}) {
    TRY_ASSIGN(const auto seen, see_inode(engine, keyspace(), inode));
    if (!seen) return fs_error::stale(inode);
    TRY(check_has_content(inode, seen->inode));
    if (inode != from) break;
    if (from_offset >= seen->inode.size) return uint64_t{0};
    const uint64_t left = seen->inode.size - from_offset;
    size = size == 0 ? left : std::min(size, left);
  }
  if (to_offset >= file_size_max) return fs_error::file_too_large();
  size = std::min(size, file_size_max - to_offset);
  if (from == to && from_offset < to_offset + size && to_offset < from_offset + size)
    return fs_error::invalid("the two parts of the file overlap");
  const uint64_t into_block = from_offset % block_bytes_max;
  const bool can_share = into_block == to_offset % block_bytes_max;
  uint64_t done = 0;
  while (done < size) {
    const uint64_t left = size - done;
    uint64_t copied = 0;
    if (can_share && (from_offset + done) % block_bytes_max == 0) {
      TRY_ASSIGN(copied, share_piece(caller, from, from_offset + done, to, to_offset + done, left));
    }
    if (copied == 0) {
      const uint64_t to_next = block_bytes_max - (from_offset + done) % block_bytes_max;
      TRY_ASSIGN(copied, copy_piece(caller, from, from_offset + done, to, to_offset + done,
                                    can_share ? std::min(left, to_next) : left));
    }
    if (copied == 0) break;  // the source became shorter
    done += copied;
  }
  return done;
}

}  // namespace trellis
