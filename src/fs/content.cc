#include "fs/content.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"
#include "fs/names.h"
#include "fs/sessions.h"

namespace trellis {
namespace {

// Numbers of blocks of those that have no latches: the upper half, by an id that is nobody else's.
constexpr uint64_t unlatched_blocks = uint64_t{1} << 63;
constexpr unsigned blocks_of_id_log2 = 20;

// A plan that needs more shared data holds the whole file system.
constexpr size_t planned_data_max = 32;

// Of content in one change. Blocks are written outside of it, but again whenever it runs again.
constexpr uint64_t write_bytes_max = uint64_t{4} << 20;

// The disk gets so many back at once; fewer when the engine comes to it.
constexpr uint64_t reclaimed_bytes_min = uint64_t{64} << 20;

std::string name_of(InodeId inode) { return fmt::format("inode {}", inode.value); }

int64_t difference_of(uint64_t now, uint64_t before) {
  return static_cast<int64_t>(now) - static_cast<int64_t>(before);
}

}  // namespace

Error missing_block(InodeId inode, uint64_t block) {
  return fs_error::corrupt(fmt::format("block {} of {} is lost", block, name_of(inode)));
}

Result<bool> has_blocks(BlockStore& blocks, KeyspaceId keyspace, DataId data, uint64_t first) {
  TRY_ASSIGN(const BlockPage page,
             blocks.list({keyspace, data, first}, {keyspace, data, UINT64_MAX}, 1));
  return !page.blocks.empty();
}

Status check_has_content(InodeId inode, const FsInode& file) {
  if (file.type == FileType::directory) return fs_error::is_a_directory(name_of(inode));
  if (file.type != FileType::regular) return fs_error::not_a_file(name_of(inode));
  return {};
}

// --- blocks ---

uint64_t Content::defined_in(uint64_t block) const {
  const uint64_t begin = block * block_bytes_max;
  return file_.size > begin ? std::min<uint64_t>(file_.size - begin, block_bytes_max) : 0;
}

bool Content::is_in_place(const FileExtent& where) const {
  return change_.latched() && where.data == file_.data;
}

Result<uint64_t> Content::fresh_block() {
  fresh_.data = file_.data;
  if (change_.latched()) {
    if (fresh_.used++ == 0) fresh_.first = file_.next;
    return file_.next++;
  }
  if (fresh_.first == 0) {
    TRY_ASSIGN(const uint64_t id, change_.take_id());
    fresh_.first = unlatched_blocks | (id << blocks_of_id_log2);
  }
  ASSERT(fresh_.used < uint64_t{1} << blocks_of_id_log2);
  return fresh_.first + fresh_.used++;
}

Result<Bytes> Content::read_block(const FileExtent& where) {
  const BlockId id{change_.keyspace(), where.data, where.first};
  Value found;
  TRY(change_.engine().blocks().read({&id, 1}, {&found, 1}));
  if (!found.found()) return missing_block(inode_, where.block);
  return Bytes(found.bytes());
}

void Content::release(uint64_t begin, uint64_t end) {
  const auto was = [&](const FileExtent& extent) {
    file_.blocks -= extent.blocks;
    if (extent.data == file_.data)
      freed_.push_back(extent);
    else
      uses_[extent.data] -= static_cast<int64_t>(extent.blocks);
  };
  map_.unmap(begin, end, was);
}

Status Content::put_whole(uint64_t block, ByteView bytes) {
  const auto where = map_.at(block);
  if (where && is_in_place(*where)) {
    writes_.push_back({{change_.keyspace(), where->data, where->first}, {}, bytes});
    return {};
  }
  if (where) release(block, block + 1);
  TRY_ASSIGN(const uint64_t fresh, fresh_block());
  map_.map({.block = block, .data = file_.data, .first = fresh, .blocks = 1});
  file_.blocks++;
  writes_.push_back({{change_.keyspace(), file_.data, fresh}, {}, bytes});
  return {};
}

Status Content::put_part(uint64_t block, uint64_t from, ByteView bytes) {
  const auto where = map_.at(block);
  const uint64_t defined = where ? defined_in(block) : 0;
  if (from > defined) {
    Bytes padded(from - defined, '\0');
    bytes = keep(padded.append(bytes));
    from = defined;
  }
  if (from == 0 && bytes.size() >= defined) return put_whole(block, bytes);
  if (is_in_place(*where)) {
    writes_.push_back(
        {{change_.keyspace(), where->data, where->first}, static_cast<uint32_t>(from), bytes});
    return {};
  }
  TRY_ASSIGN(Bytes whole, read_block(*where));
  whole.resize(defined);  // what is behind it is undefined, and what is missing zeros
  whole.resize(std::max<size_t>(whole.size(), from + bytes.size()));
  std::copy(bytes.begin(), bytes.end(), whole.begin() + static_cast<ptrdiff_t>(from));
  return put_whole(block, keep(std::move(whole)));
}

Result<bool> Content::clear_up_to(uint64_t end) {
  if (end <= file_.size) return true;
  uint64_t cleared = 0;
  for (const FileExtent& extent : map_.mapped(block_of(file_.size), blocks_up_to(end))) {
    for (uint64_t block = extent.block; block < extent.end(); block++) {
      if (cleared++ == change_blocks_max) {
        file_.size = block * block_bytes_max;
        is_done_ = false;
        return false;
      }
      const uint64_t from = defined_in(block);
      const uint64_t to = std::min<uint64_t>(end - block * block_bytes_max, block_bytes_max);
      if (from == 0)
        TRY(put_whole(block, {}));
      else if (from < to)
        TRY(put_part(block, from, keep(Bytes(to - from, '\0'))));
    }
  }
  return true;
}

// --- changes ---

void Content::write_inline(uint64_t offset, ByteView bytes) {
  Bytes content(file_.rest);
  content.resize(std::max<size_t>(content.size(), offset + bytes.size()));
  std::copy(bytes.begin(), bytes.end(), content.begin() + static_cast<ptrdiff_t>(offset));
  file_.size = content.size();
  file_.rest = change_.keep(std::move(content));
}

void Content::resize_inline(uint64_t size) {
  Bytes content(file_.rest);
  content.resize(size);
  file_.size = size;
  file_.rest = change_.keep(std::move(content));
}

// It has no extents, so that there is nothing to load.
Status Content::leave_inline() {
  const ByteView content = std::exchange(file_.rest, {});
  file_.flags &= ~uint32_t{fs_inline};
  return content.empty() ? Status() : put_whole(0, content);
}

Status Content::write(uint64_t offset, ByteView bytes) {
  const uint64_t end = offset + bytes.size();
  if (is_inline() && end <= inline_bytes_max) {
    write_inline(offset, bytes);
    return {};
  }
  if (!is_inline()) {
    TRY(map_.load(block_of(std::min(offset, file_.size)), blocks_up_to(end)));
    TRY_ASSIGN(const bool is_clear, clear_up_to(offset - offset % block_bytes_max));
    if (!is_clear) return {};
  } else if (offset >= block_bytes_max || file_.size == 0) {
    TRY(leave_inline());
  } else {  // what it has and what it gets are one block
    const uint64_t part = std::min<uint64_t>(bytes.size(), block_bytes_max - offset);
    Bytes first(file_.rest.substr(0, std::min(offset, file_.size)));
    first.resize(offset);
    first.append(bytes.substr(0, part));
    file_.rest = keep(std::move(first));
    TRY(leave_inline());
    offset += part;
    bytes.remove_prefix(part);
  }
  while (!bytes.empty()) {
    const uint64_t from = offset % block_bytes_max;
    const uint64_t part = std::min<uint64_t>(bytes.size(), block_bytes_max - from);
    TRY(put_part(block_of(offset), from, bytes.substr(0, part)));
    offset += part;
    bytes.remove_prefix(part);
  }
  file_.size = std::max(file_.size, end);
  return {};
}

Result<bool> Content::set_size(uint64_t size) {
  if (size > file_size_max) return fs_error::file_too_large();
  if (is_inline()) {
    if (size <= inline_bytes_max) {
      resize_inline(size);
      return true;
    }
    TRY(leave_inline());
    file_.size = size;
    return true;
  }
  if (size > file_.size) {
    TRY(map_.load(block_of(file_.size), blocks_up_to(size)));
    TRY_ASSIGN(const bool is_clear, clear_up_to(size));
    if (is_clear) file_.size = size;
    return is_clear;
  }
  const uint64_t first = blocks_up_to(size);
  TRY_ASSIGN(const uint64_t cut, map_.load(first, file_blocks_max, change_extents_max));
  release(cut, file_blocks_max);
  file_.size = std::max(size, std::min(file_.size, cut * block_bytes_max));
  if (cut == first) file_.size = size;
  return cut == first;
}

// There are few behind `next`: of a write that was cut off before its commit, or of a time without
// latches. Most files have none, and no interval is removed for nothing.
Status Content::remove_own_blocks() {
  BlockStore& blocks = change_.engine().blocks();
  TRY(blocks.remove(change_.keyspace(), file_.data, 0, file_.next));
  TRY_ASSIGN(const bool has_more, has_blocks(blocks, change_.keyspace(), file_.data, file_.next));
  return has_more ? blocks.remove(change_.keyspace(), file_.data, file_.next, UINT64_MAX)
                  : Status();
}

// Blocks go when no extent is stored any more that maps them. Without latches that is decided only
// by the commit, and left to a note.
Result<bool> Content::drop() {
  if (is_inline()) {
    if (!change_.may_have_leftovers(inode_)) return true;
    BlockStore& blocks = change_.engine().blocks();
    TRY_ASSIGN(const bool has_any, has_blocks(blocks, change_.keyspace(), file_.data, 0));
    if (has_any) leave_blocks_note(file_.data, 0, UINT64_MAX, 0);
    return true;
  }
  TRY_ASSIGN(const uint64_t cut, map_.load(0, file_blocks_max, change_extents_max));
  const bool was_empty = file_.blocks == 0;
  release(cut, file_blocks_max);
  freed_.clear();
  if (change_.latched()) {
    if (was_empty) TRY(remove_own_blocks());
    return was_empty;
  }
  if (cut == 0) leave_blocks_note(file_.data, 0, UINT64_MAX, 0);
  return cut == 0;
}

// --- the end of a change ---

Status Content::store_use(DataId data, int64_t difference) {
  const KeyspaceId keyspace = change_.keyspace();
  TRY_ASSIGN(const auto use, change_.record(encode(FsDataUseKey{keyspace, inode_, data})));
  FsDataUse blocks{0};
  if (use.old.found()) {
    TRY_ASSIGN(blocks, decode<FsDataUse>(use.old.bytes()));
  }
  const bool was_there = blocks.blocks != 0;
  if (difference < 0 && blocks.blocks < static_cast<uint64_t>(-difference))
    return fs_error::corrupt(
        fmt::format("{} maps more of data {} than it counts", name_of(inode_), data.value));
  blocks.blocks += static_cast<uint64_t>(difference);
  const bool is_there = blocks.blocks != 0;
  if (is_there)
    change_.put(use, encode(blocks));
  else
    change_.remove(use);
  if (was_there == is_there) return {};
  TRY(count_user(data, is_there ? 1 : -1));
  if (is_there) {
    file_.flags |= fs_shares;
    return {};
  }
  const Bytes begin = encode(FsDataUseKey{keyspace, inode_, DataId{0}});
  const Bytes end = encode(FsExtentKey{keyspace, inode_, 0});
  TRY_ASSIGN(const ScanPage others,
             change_.view().scan({.begin = begin, .end = end, .entries_max = 1},
                                 [](ByteView, ByteView) { return Visit::stop; }));
  if (others.entries == 0) file_.flags &= ~uint32_t{fs_shares};
  return {};
}

Status Content::count_user(DataId data, int difference) {
  Bytes key = encode(FsSharedDataKey{change_.keyspace(), data});
  if (!change_.has_planned(key)) return plan_outdated();
  TRY_ASSIGN(const auto shared, change_.record(std::move(key)));
  FsSharedData users{0};
  if (shared.old.found()) {
    TRY_ASSIGN(users, decode<FsSharedData>(shared.old.bytes()));
  }
  if (difference < 0 && users.inodes == 0)
    return fs_error::corrupt(fmt::format("data {} is used and not counted", data.value));
  users.inodes += static_cast<uint64_t>(static_cast<int64_t>(difference));
  if (users.inodes != 0) {
    change_.put(shared, encode(users));
    return {};
  }
  change_.remove(shared);
  leave_blocks_note(data, 0, UINT64_MAX, 0);
  return {};
}

void Content::leave_blocks_note(DataId data, uint64_t first, uint64_t end, uint64_t bytes) {
  change_.view().leave_garbage(change_.now_ms(), blocks_note(data, first, end), bytes);
}

void Content::leave_blocks() {
  std::sort(freed_.begin(), freed_.end(), [](const FileExtent& a, const FileExtent& b) {
    return std::pair(a.data, a.first) < std::pair(b.data, b.first);
  });
  for (size_t i = 0; i < freed_.size();) {
    const DataId data = freed_[i].data;
    const uint64_t first = freed_[i].first;
    uint64_t end = first;
    for (; i < freed_.size() && freed_[i].data == data && freed_[i].first == end; i++)
      end += freed_[i].blocks;
    leave_blocks_note(data, first, end, (end - first) * block_bytes_max);
  }
}

Status Content::finish() {
  TRY(store());
  file_.version++;
  file_.modified_ns = file_.changed_ns = change_.now_ns();
  return {};
}

Status Content::finish_unchanged() { return store(); }

Status Content::store() {
  const FsFigures difference{
      .space = difference_of(file_.blocks, blocks_before_) * int64_t{block_bytes_max},
      .length = difference_of(file_.size, size_before_)};
  if (file_.links != 0 && difference != FsFigures()) TRY(change_.count(file_.home, difference));
  for (const auto& [data, blocks] : uses_)
    if (blocks != 0) TRY(store_use(data, blocks));
  if (!writes_.empty()) TRY(change_.engine().blocks().write(writes_));
  map_.store();
  leave_blocks();
  return {};
}

// --- plans ---

namespace {

// The data that it maps in these blocks, whose users are counted.
Status plan_shared_data(FsPlan& plan, InodeId inode, std::optional<DataId> except, uint64_t begin,
                        uint64_t end) {
  std::set<DataId> shared;
  Status bad;
  const auto visit = [&](ByteView key, ByteView value) {
    const auto extent = decode_extent(inode, key, value);
    if (!extent) {
      bad = extent.error();
      return Visit::stop;
    }
    if (extent->data != except && extent->end() > begin) shared.insert(extent->data);
    return extent->block <= begin || shared.size() > planned_data_max ? Visit::stop : Visit::go_on;
  };
  const Bytes lowest = encode(FsExtentKey{plan.keyspace(), inode, 0});
  const Bytes behind = encode(FsExtentKey{plan.keyspace(), inode, end});
  TRY(plan.engine().scan({.begin = lowest,
                          .end = behind,
                          .reverse = true,
                          .entries_max = std::min<uint64_t>(end - begin + 1, change_extents_max)},
                         visit));
  TRY(bad);
  if (shared.size() > planned_data_max) plan.everything();
  for (const DataId data : shared) plan.exclusive(encode(FsSharedDataKey{plan.keyspace(), data}));
  return {};
}

}  // namespace

Status plan_content(FsPlan& plan, InodeId inode, const FsInode& seen, uint64_t offset, uint64_t end,
                    PlannedData data) {
  const uint64_t first = block_of(std::min(offset, seen.size));
  if (offset >= end || seen.blocks == 0) return {};
  if (data == PlannedData::all)
    return plan_shared_data(plan, inode, std::nullopt, first, blocks_up_to(end));
  if ((seen.flags & fs_shares) == 0) return {};
  return plan_shared_data(plan, inode, seen.data, first, blocks_up_to(end));
}

Status plan_set_size(FsPlan& plan, InodeId inode, const FsInode& seen, uint64_t size) {
  TRY(check_has_content(inode, seen));
  if (seen.links != 0) TRY(plan.charge(seen.home));
  // A longer file changes its last block.
  return plan_content(plan, inode, seen, std::min(size, seen.size), file_end_max);
}

Result<bool> set_size(FsChange& change, InodeId inode, FsInode& file, uint64_t size) {
  TRY(check_has_content(inode, file));
  FreshBlocks fresh;
  Content content(change, inode, file, fresh);
  TRY_ASSIGN(const bool done, content.set_size(size));
  TRY(content.finish());
  return done;
}

// --- for the collector ---

Bytes blocks_note(DataId data, uint64_t first, uint64_t end) {
  Bytes note = fs_note(FsNote::blocks, data.value);
  append_be64(note, first);
  append_be64(note, end);
  return note;
}

namespace {

Status reclaim_blocks(Engine& engine, const BlockId& first, uint64_t end, uint64_t bytes) {
  if (bytes < reclaimed_bytes_min) return {};
  return engine.reclaim({{encode(FsBlockKey{first.keyspace, first.data, first.index}),
                          encode(FsBlockKey{first.keyspace, first.data, end})}},
                        nullptr);
}

}  // namespace

Result<bool> FileSystem::collect_blocks(const Garbage& note) {
  const ByteView target = note.target;
  if (target.size() != blocks_note({}, 0, 0).size())
    return fs_error::corrupt("a note of blocks does not make sense: " + to_hex(target));
  const DataId data{load_be(target.data() + 1, 8)};
  const uint64_t first = load_be(target.data() + 9, 8);
  const uint64_t end = load_be(target.data() + 17, 8);
  TRY(tenant_->map().engine.blocks().remove(keyspace(), data, first, end));
  const auto forget = [&](CountedView& view) -> Status {
    view.forget_garbage(note.due_ms, note.target);
    return {};
  };
  TRY(tenant_->collect(Model::fs, Scope::in(keyspace()), forget));
  TRY(reclaim_blocks(tenant_->map().engine, {keyspace(), data, first}, end, note.bytes));
  return true;
}

namespace {

// Extended attributes and locks. Whether none are left.
Result<bool> drop_records(FsChange& change, InodeId inode) {
  const KeyspaceId keyspace = change.keyspace();
  std::vector<std::pair<Bytes, size_t>> found;
  const auto visit = [&](ByteView key, ByteView value) {
    found.emplace_back(key, value.size());
    return Visit::go_on;
  };
  const Bytes xattrs = encode(FsXattrKey{keyspace, inode, {}});
  TRY_ASSIGN(
      const ScanPage page,
      change.view().scan(
          {.begin = xattrs, .end = prefix_end(xattrs), .entries_max = change_extents_max}, visit));
  for (const auto& [key, value_bytes] : found) change.view().remove_found(key, value_bytes);
  for (unsigned char kind = 0; kind < std::size(FsLockKey::locks); kind++) {
    TRY_ASSIGN(const auto lock, change.record(encode(FsLockKey{keyspace, inode, kind})));
    change.remove(lock);
  }
  return !page.resume;
}

}  // namespace

// A session that has it open keeps it, and leaves another note when it closes it.
Result<bool> FileSystem::leave_to_holder(const Garbage& note, InodeId inode, SessionId session) {
  const Bytes held = encode(FsOpenUnlinkedKey{keyspace(), session, inode});
  bool is_held = false;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.shared(held);
    return {};
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY_ASSIGN(const auto found, change.record(held));
    is_held = found.old.found();
    if (is_held) change.view().forget_garbage(note.due_ms, note.target);
    return {};
  };
  TRY(change(nullptr, plan, run));
  return is_held;
}

Result<bool> FileSystem::collect_inode(const Garbage& note, InodeId inode) {
  TRY_ASSIGN(const auto holder, holder_of(tenant_->map().engine, keyspace(), inode));
  if (holder) return leave_to_holder(note, inode, *holder);
  bool is_gone = false;
  DataId data;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.hold(inode);
    TRY_ASSIGN(const auto seen, plan.inode(inode));
    return seen ? plan_content(plan, inode, seen->inode, 0, file_end_max) : Status();
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY_ASSIGN(FsInode* const file, change.find_inode(inode));
    is_gone = true;
    if (file != nullptr && file->links == 0) {
      data = file->data;
      if (file->type == FileType::regular) {
        FreshBlocks fresh;
        Content content(change, inode, *file, fresh);
        TRY_ASSIGN(is_gone, content.drop());
        TRY(content.finish());
      }
      if (is_gone) {
        TRY_ASSIGN(is_gone, drop_records(change, inode));
      }
      if (is_gone) change.remove_inode(inode);
    }
    if (is_gone) change.view().forget_garbage(note.due_ms, note.target);
    return {};
  };
  TRY(change(nullptr, plan, run));
  if (!is_gone) TRY(change(nullptr, plan, run));  // most files go with the second
  if (is_gone && data.value != 0)
    TRY(reclaim_blocks(tenant_->map().engine, {keyspace(), data, 0}, UINT64_MAX, note.bytes));
  return is_gone;
}

// --- whole calls ---

Status FileSystem::change_content(const Caller& caller, InodeId inode, uint64_t offset,
                                  uint64_t end, bool charges, FunctionRef<Status(Content&)> edit) {
  FreshBlocks fresh;
  bool is_done = true;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.hold(inode);
    TRY_ASSIGN(const auto seen, plan.inode(inode));
    if (!seen) return fs_error::stale(inode);
    const FsInode& file = seen->inode;
    TRY(check_has_content(inode, file));
    // Most writes replace what is there, and count for nothing. One that does not is planned anew.
    charges |= end > file.size || file.blocks < blocks_up_to(file.size);
    if (charges && file.links != 0) TRY(plan.charge(file.home));
    charges = true;
    return plan_content(plan, inode, file, std::min(offset, file.size), end);
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY_ASSIGN(FsInode* const file, change.inode(inode));
    TRY(check_has_content(inode, *file));
    fresh.used = 0;
    Content content(change, inode, *file, fresh);
    TRY(edit(content));
    is_done = content.is_done();
    return content.finish();
  };
  Status done;
  do {
    fresh = {};
    done = change(&caller, plan, run);
  } while (done && !is_done);
  if (!done && fresh.used != 0 && !remove_unmapped(inode, fresh, done.error()))
    leftovers_below_ = UINT64_MAX;
  return done;
}

// What a change that failed wrote. It would stay for as long as the file does.
Status FileSystem::remove_unmapped(InodeId inode, const FreshBlocks& fresh, const Error& error) {
  BlockStore& blocks = tenant_->map().engine.blocks();
  const uint64_t end = fresh.first + fresh.used;
  if (!tenant_->map().latched()) {
    if (error.code == Code::maybe) return {};
    return blocks.remove(keyspace(), fresh.data, fresh.first, end);
  }
  const Bytes key = encode(FsInodeKey{keyspace(), inode});
  const auto remove = [&](CountedView& view) -> Status {
    Value stored;
    TRY(view.get(key, stored));
    uint64_t next = 0;
    if (stored.found()) {
      TRY_ASSIGN(const FsInode file, decode_inode(inode, stored.bytes()));
      if (file.data != fresh.data) return {};
      next = file.next;
    }
    return blocks.remove(keyspace(), fresh.data, std::max(next, fresh.first), end);
  };
  return tenant_->collect(Model::fs, Scope::in(keyspace()).exclusive(key), remove);
}

Status FileSystem::write(const Caller& caller, InodeId inode, uint64_t offset, ByteView bytes) {
  if (offset > file_size_max || bytes.size() > file_size_max - offset)
    return fs_error::file_too_large();
  while (!bytes.empty()) {
    // Whole blocks, but for the ends.
    const uint64_t part =
        std::min<uint64_t>(bytes.size(), write_bytes_max - offset % block_bytes_max);
    const ByteView piece = bytes.substr(0, part);
    TRY(change_content(caller, inode, offset, offset + part, false,
                       [&](Content& content) { return content.write(offset, piece); }));
    offset += part;
    bytes.remove_prefix(part);
  }
  return {};
}

// In one change whatever its size, so that no other append is in the middle of it: what is
// committed is an extent, and blocks are not.
Result<uint64_t> FileSystem::append(const Caller& caller, InodeId inode, ByteView bytes,
                                    std::optional<uint64_t> version_expected) {
  uint64_t offset = 0;
  const auto write = [&](Content& content) -> Status {
    if (content.version() != version_expected.value_or(content.version()))
      return fs_error::condition_failed("the file has changed");
    offset = content.size();
    if (bytes.size() > file_size_max - offset) return fs_error::file_too_large();
    return bytes.empty() ? Status() : content.write(offset, bytes);
  };
  TRY(change_content(caller, inode, file_size_max, file_end_max, true, write));
  return offset;
}

}  // namespace trellis
