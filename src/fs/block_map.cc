#include "fs/block_map.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "fs/fs_error.h"

namespace trellis {
namespace {

constexpr uint64_t page_extents_max = 4'096;

bool continues(const FileExtent& left, const FileExtent& right) {
  return left.end() == right.block && left.data == right.data &&
         left.first + left.blocks == right.first;
}

FsExtent value_of(const FileExtent& extent) {
  return {.data = extent.data, .first = extent.first, .blocks = extent.blocks};
}

}  // namespace

FileExtent FileExtent::clipped(uint64_t begin, uint64_t end) const {
  const uint64_t from = std::max(begin, block);
  const uint64_t to = std::min(end, this->end());
  ASSERT(from < to);
  return {.block = from, .data = data, .first = first + (from - block), .blocks = to - from};
}

Result<FileExtent> decode_extent(InodeId inode, ByteView key, ByteView value) {
  const auto place = decode<FsExtentKey>(key);
  const auto extent = decode<FsExtent>(value);
  if (!place || !extent || extent->blocks == 0 || place->block >= file_blocks_max ||
      extent->blocks > file_blocks_max - place->block ||
      extent->first > UINT64_MAX - extent->blocks)
    return fs_error::corrupt(
        fmt::format("extent {} of inode {} does not make sense", to_hex(key), inode.value));
  return FileExtent{.block = place->block,
                    .data = extent->data,
                    .first = extent->first,
                    .blocks = extent->blocks};
}

// Backwards, so that one scan finds the extent that begins before the interval, too.
Result<uint64_t> BlockMap::load(uint64_t begin, uint64_t end, size_t extents_max) {
  ASSERT(!changed_);
  if (begin >= end) return begin;
  uint64_t covered = begin;
  size_t extents = 0;
  bool found_begin = false;
  Status bad;
  const auto visit = [&](ByteView key, ByteView value) {
    const auto extent = decode_extent(inode_, key, value);
    if (!extent) {
      bad = extent.error();
      return Visit::stop;
    }
    stored_.emplace(extent->block, *extent);
    found_begin = extent->block < begin;
    if (found_begin) return Visit::stop;
    if (++extents < extents_max || extent->block == begin) return Visit::go_on;
    covered = extent->block;
    found_begin = true;
    return Visit::stop;
  };
  const Bytes lowest = key(0);
  Bytes behind = successor(key(end));
  // One that begins before, one in each block, one right behind.
  const uint64_t entries_max = std::min<uint64_t>({end - begin + 2, extents_max, page_extents_max});
  for (;;) {
    TRY_ASSIGN(
        ScanPage page,
        view_.scan({.begin = lowest, .end = behind, .reverse = true, .entries_max = entries_max},
                   visit));
    TRY(bad);
    if (found_begin || !page.resume) break;
    behind = std::move(*page.resume);
  }
  now_ = stored_;
  return covered;
}

BlockMap::Extents::const_iterator BlockMap::first_at(uint64_t block) const {
  const auto behind = now_.upper_bound(block);
  if (behind == now_.begin()) return behind;
  const auto before = std::prev(behind);
  return before->second.end() > block ? before : behind;
}

std::optional<FileExtent> BlockMap::at(uint64_t block) const {
  const auto found = first_at(block);
  if (found == now_.end() || found->first > block) return std::nullopt;
  return found->second.clipped(block, block + 1);
}

std::vector<FileExtent> BlockMap::mapped(uint64_t begin, uint64_t end) const {
  std::vector<FileExtent> found;
  if (begin >= end) return found;
  for (auto extent = first_at(begin); extent != now_.end() && extent->first < end; ++extent)
    found.push_back(extent->second.clipped(begin, end));
  return found;
}

void BlockMap::unmap(uint64_t begin, uint64_t end, ExtentVisitor was) {
  if (begin >= end) return;
  changed_ = true;
  auto at = now_.find(first_at(begin) == now_.end() ? UINT64_MAX : first_at(begin)->first);
  while (at != now_.end() && at->first < end) {
    const FileExtent extent = at->second;
    at = now_.erase(at);
    was(extent.clipped(begin, end));
    if (extent.block < begin) now_.emplace(extent.block, extent.clipped(extent.block, begin));
    if (extent.end() > end) at = now_.emplace(end, extent.clipped(end, extent.end())).first;
  }
}

void BlockMap::map(const FileExtent& extent) {
  changed_ = true;
  FileExtent joined = extent;
  auto behind = now_.lower_bound(extent.block);
  ASSERT(behind == now_.end() || behind->first >= extent.end());
  if (behind != now_.end() && continues(joined, behind->second)) {
    joined.blocks += behind->second.blocks;
    behind = now_.erase(behind);
  }
  if (behind != now_.begin()) {
    const auto before = std::prev(behind);
    ASSERT(before->second.end() <= extent.block);
    if (continues(before->second, joined)) {
      before->second.blocks += joined.blocks;
      return;
    }
  }
  now_.emplace(joined.block, joined);
}

void BlockMap::shift(uint64_t begin, uint64_t to) {
  std::vector<FileExtent> moved;
  unmap(begin, file_blocks_max, [&](const FileExtent& extent) { moved.push_back(extent); });
  for (FileExtent extent : moved) {
    extent.block = to + (extent.block - begin);
    map(extent);
  }
}

void BlockMap::store() {
  if (!changed_) return;
  for (const auto& [block, extent] : stored_)
    if (!now_.contains(block)) view_.remove_found(key(block), encode(value_of(extent)).size());
  for (const auto& [block, extent] : now_) {
    const auto before = stored_.find(block);
    if (before != stored_.end() && before->second == extent) continue;
    Value old;
    Bytes was;
    if (before != stored_.end()) old.set_borrowed(was = encode(value_of(before->second)));
    view_.put(key(block), encode(value_of(extent)), old);
  }
}

}  // namespace trellis
