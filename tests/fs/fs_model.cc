#include "fs/fs_model.h"

#include <algorithm>
#include <vector>

namespace trellis {
namespace {

constexpr uint64_t copied_at_once = 1 << 20;

uint64_t up_to(uint64_t offset) { return (offset + block - 1) / block; }

void map_blocks(ModelFile& file, uint64_t begin, uint64_t end) {
  for (uint64_t i = begin; i < end; i++) file.mapped.insert(i);
}

void unmap_blocks(ModelFile& file, uint64_t begin, uint64_t end) {
  file.mapped.erase(file.mapped.lower_bound(begin), file.mapped.lower_bound(end));
}

void leave_inline(ModelFile& file) {
  if (file.is_inline && !file.content.empty()) file.mapped.insert(0);
  file.is_inline = false;
}

void zero(ModelFile& file, uint64_t begin, uint64_t end) {
  end = std::min<uint64_t>(end, file.content.size());
  if (begin < end)
    std::fill(file.content.begin() + static_cast<ptrdiff_t>(begin),
              file.content.begin() + static_cast<ptrdiff_t>(end), '\0');
}

void move_blocks(ModelFile& file, uint64_t from, uint64_t to) {
  std::set<uint64_t> moved;
  for (const uint64_t i : file.mapped) moved.insert(i < from ? i : i - from + to);
  file.mapped = std::move(moved);
}

void allocate(ModelFile& file, uint64_t offset, uint64_t end, bool keep_size) {
  const uint64_t size =
      keep_size ? file.content.size() : std::max<uint64_t>(file.content.size(), end);
  if (!file.is_inline || end > inline_bytes_max) {
    leave_inline(file);
    map_blocks(file, offset / block, up_to(end));
  }
  file.content.resize(size);
}

}  // namespace

FsModel::FsModel(std::initializer_list<InodeId> roots) {
  for (const InodeId inode : roots) add(inode.value, {.type = FileType::directory, .mode = 0755});
}

const ModelFile* FsModel::find(uint64_t inode) const {
  const auto found = files_.find(inode);
  return found == files_.end() ? nullptr : found->second.get();
}

ModelFile& FsModel::edit(uint64_t inode) {
  auto copy = std::make_shared<ModelFile>(*files_.at(inode));
  ModelFile& edited = *copy;
  files_[inode] = std::move(copy);
  return edited;
}

ModelFile& FsModel::add(uint64_t inode, const NewFile& file) {
  auto made = std::make_shared<ModelFile>();
  made->type = file.type;
  made->mode = file.mode;
  made->uid = file.uid;
  made->gid = file.gid;
  made->content = std::string(file.type == FileType::symlink ? file.target : file.content);
  ModelFile& added = *made;
  files_[inode] = std::move(made);
  return added;
}

TreeFigures FsModel::figures(uint64_t directory) const {
  TreeFigures sum;
  for (const auto& [name, inode] : at(directory).entries) {
    const ModelFile& file = at(inode);
    if (file.is_directory()) {
      const TreeFigures below = figures(inode);
      sum.space += below.space;
      sum.length += below.length;
      sum.inodes += below.inodes + 1;
    } else if (file.home == std::pair(directory, name)) {
      sum.space += file.mapped.size() * block;
      if (file.type == FileType::regular) sum.length += file.content.size();
      sum.inodes++;
    }
  }
  return sum;
}

bool FsModel::is_over_quota(const FsModel& next) const {
  for (const auto& [inode, file] : files_) {
    if (file->quota.bytes_max == 0 && file->quota.inodes_max == 0) continue;
    if (next.find(inode) == nullptr) continue;
    const TreeFigures before = figures(inode);
    const TreeFigures after = next.figures(inode);
    const auto over = [](uint64_t was, uint64_t is, uint64_t max) {
      return max != 0 && is > was && is > max;
    };
    if (over(before.space, after.space, file->quota.bytes_max) ||
        over(before.inodes, after.inodes, file->quota.inodes_max))
      return true;
  }
  return false;
}

bool FsModel::is_below(uint64_t directory, uint64_t above) const {
  for (uint64_t i = directory; i != 0; i = at(i).parent)
    if (i == above) return true;
  return false;
}

// --- names ---

bool FsModel::put_directory(uint64_t directory) const {
  const ModelFile* const found = find(directory);
  return found != nullptr && found->is_directory();
}

void FsModel::add_name(uint64_t inode, uint64_t directory, const std::string& name) {
  edit(directory).entries[name] = inode;
  ModelFile& file = edit(inode);
  if (file.is_directory()) {
    file.parent = directory;
    return;
  }
  if (file.names.empty()) file.home = {directory, name};
  file.names.insert({directory, name});
}

void FsModel::drop_name(uint64_t inode, uint64_t directory, const std::string& name) {
  edit(directory).entries.erase(name);
  ModelFile& file = edit(inode);
  if (file.is_directory()) return;
  file.names.erase({directory, name});
  if (file.home == std::pair(directory, name) && !file.names.empty())
    file.home = *file.names.begin();
}

void FsModel::forget_closed() {
  for (auto i = files_.begin(); i != files_.end();) {
    const bool is_gone =
        !i->second->is_directory() && i->second->names.empty() && !opened.contains(i->first);
    i = is_gone ? files_.erase(i) : std::next(i);
  }
}

bool FsModel::make(uint64_t directory, const std::string& name, uint64_t inode,
                   const NewFile& file) {
  if (!put_directory(directory) || at(directory).entries.contains(name)) return false;
  add(inode, file);
  add_name(inode, directory, name);
  return true;
}

bool FsModel::link(uint64_t inode, uint64_t directory, const std::string& name) {
  const ModelFile* const file = find(inode);
  if (file == nullptr || file->is_directory() || file->names.empty()) return false;
  if (!put_directory(directory) || at(directory).entries.contains(name)) return false;
  add_name(inode, directory, name);
  return true;
}

bool FsModel::unlink(uint64_t directory, const std::string& name) {
  if (!put_directory(directory)) return false;
  const auto entry = at(directory).entries.find(name);
  if (entry == at(directory).entries.end() || at(entry->second).is_directory()) return false;
  drop_name(entry->second, directory, name);
  return true;
}

bool FsModel::remove_directory(uint64_t directory, const std::string& name) {
  if (!put_directory(directory)) return false;
  const auto entry = at(directory).entries.find(name);
  if (entry == at(directory).entries.end()) return false;
  const uint64_t inode = entry->second;
  if (!at(inode).is_directory() || !at(inode).entries.empty()) return false;
  drop_name(inode, directory, name);
  files_.erase(inode);
  return true;
}

void FsModel::drop_tree(uint64_t inode) {
  const auto entries = at(inode).entries;
  for (const auto& [name, child] : entries) {
    drop_name(child, inode, name);
    if (at(child).is_directory()) drop_tree(child);
  }
  files_.erase(inode);
}

bool FsModel::remove_tree(uint64_t directory, const std::string& name) {
  if (!put_directory(directory)) return false;
  const auto entry = at(directory).entries.find(name);
  if (entry == at(directory).entries.end()) return false;
  const uint64_t inode = entry->second;
  drop_name(inode, directory, name);
  if (at(inode).is_directory()) drop_tree(inode);
  return true;
}

// What the name stands for makes room for something of that type.
bool FsModel::replace(uint64_t directory, const std::string& name, FileType by) {
  const uint64_t inode = at(directory).entries.at(name);
  if (at(inode).is_directory())
    return by == FileType::directory && remove_directory(directory, name);
  return by != FileType::directory && unlink(directory, name);
}

bool FsModel::rename(uint64_t from, const std::string& from_name, uint64_t to,
                     const std::string& to_name, RenameMode mode) {
  if (!put_directory(from) || !put_directory(to)) return false;
  const auto source = at(from).entries.find(from_name);
  if (source == at(from).entries.end()) return false;
  const uint64_t moved = source->second;
  const auto target = at(to).entries.find(to_name);
  const bool is_there = target != at(to).entries.end();
  const uint64_t there = is_there ? target->second : 0;
  if (is_there && mode == RenameMode::no_replace) return false;
  if (!is_there && mode == RenameMode::exchange) return false;
  if (is_there && there == moved) return true;
  const auto into_itself = [&](uint64_t inode, uint64_t where) {
    return at(inode).is_directory() && is_below(where, inode);
  };
  if (from != to && into_itself(moved, to)) return false;
  if (mode == RenameMode::exchange) {
    if (from != to && into_itself(there, from)) return false;
    // Of a file with several names the one that it is counted by moves with it.
    const auto swap = [&](uint64_t inode, uint64_t old_directory, const std::string& old_name,
                          uint64_t new_directory, const std::string& new_name) {
      ModelFile& file = edit(inode);
      if (file.is_directory()) {
        file.parent = new_directory;
        return;
      }
      file.names.erase({old_directory, old_name});
      file.names.insert({new_directory, new_name});
      if (file.home == std::pair(old_directory, old_name)) file.home = {new_directory, new_name};
    };
    edit(from).entries[from_name] = there;
    edit(to).entries[to_name] = moved;
    swap(moved, from, from_name, to, to_name);
    swap(there, to, to_name, from, from_name);
    return true;
  }
  if (is_there && !replace(to, to_name, at(moved).type)) return false;
  edit(from).entries.erase(from_name);
  edit(to).entries[to_name] = moved;
  ModelFile& file = edit(moved);
  if (file.is_directory()) {
    file.parent = to;
    return true;
  }
  file.names.erase({from, from_name});
  file.names.insert({to, to_name});
  if (file.home == std::pair(from, from_name)) file.home = {to, to_name};
  return true;
}

bool FsModel::adopt(uint64_t inode, uint64_t directory, const std::string& name, bool may_replace) {
  if (!put_directory(directory) || find(inode) == nullptr || !at(inode).names.empty()) return false;
  if (at(directory).entries.contains(name) &&
      (!may_replace || !replace(directory, name, at(inode).type)))
    return false;
  add_name(inode, directory, name);
  return true;
}

// --- content ---

bool FsModel::write(uint64_t inode, uint64_t offset, ByteView bytes) {
  const ModelFile* const found = find(inode);
  if (found == nullptr || found->type != FileType::regular) return false;
  if (bytes.empty()) return true;
  ModelFile& file = edit(inode);
  const uint64_t end = offset + bytes.size();
  if (!file.is_inline || end > inline_bytes_max) {
    leave_inline(file);
    map_blocks(file, offset / block, up_to(end));
  }
  file.content.resize(std::max<uint64_t>(file.content.size(), end));
  std::copy(bytes.begin(), bytes.end(), file.content.begin() + static_cast<ptrdiff_t>(offset));
  return true;
}

bool FsModel::set_size(uint64_t inode, uint64_t size) {
  const ModelFile* const found = find(inode);
  if (found == nullptr || found->type != FileType::regular) return false;
  ModelFile& file = edit(inode);
  if (file.is_inline && size > inline_bytes_max) leave_inline(file);
  if (size < file.content.size() || file.content.size() == size)
    unmap_blocks(file, up_to(size), UINT64_MAX);
  file.content.resize(size);
  return true;
}

bool FsModel::fallocate(uint64_t inode, FallocateMode mode, uint64_t offset, uint64_t size) {
  using Kind = FallocateMode::Kind;
  const ModelFile* const found = find(inode);
  if (size == 0 || found == nullptr || found->type != FileType::regular) return false;
  const uint64_t end = offset + size;
  const bool moves = mode.kind == Kind::collapse || mode.kind == Kind::insert;
  if (mode.kind == Kind::punch_hole && !mode.keep_size) return false;
  if (moves && (mode.keep_size || offset % block != 0 || size % block != 0)) return false;
  ModelFile& file = edit(inode);
  switch (mode.kind) {
    case Kind::allocate: allocate(file, offset, end, mode.keep_size); return true;
    case Kind::zero:
      zero(file, offset, end);
      allocate(file, offset, end, mode.keep_size);
      return true;
    case Kind::punch_hole:
      zero(file, offset, end);
      if (!file.is_inline) {
        const uint64_t begin = up_to(offset);
        const uint64_t last = end >= file.content.size() ? up_to(end) : end / block;
        if (begin < last) unmap_blocks(file, begin, last);
      }
      return true;
    case Kind::collapse:
      if (end >= file.content.size()) return false;
      unmap_blocks(file, offset / block, end / block);
      move_blocks(file, end / block, offset / block);
      file.content.erase(offset, size);
      return true;
    case Kind::insert:
      if (offset >= file.content.size()) return false;
      leave_inline(file);
      move_blocks(file, offset / block, end / block);
      file.content.insert(offset, size, '\0');
      return true;
  }
  return false;
}

uint64_t FsModel::share(uint64_t from, uint64_t from_offset, uint64_t to, uint64_t to_offset,
                        uint64_t size) {
  const ModelFile source = at(from);
  if (source.is_inline || from_offset >= source.content.size()) return 0;
  size = std::min<uint64_t>(size, source.content.size() - from_offset);
  const bool with_tail =
      from_offset + size == source.content.size() && to_offset + size >= at(to).content.size();
  const uint64_t blocks = with_tail ? up_to(size) : size / block;
  if (blocks == 0) return 0;
  size = std::min(size, blocks * block);
  ModelFile& file = edit(to);
  leave_inline(file);
  unmap_blocks(file, to_offset / block, to_offset / block + blocks);
  for (const uint64_t i : source.mapped)
    if (i >= from_offset / block && i < from_offset / block + blocks)
      file.mapped.insert(i - from_offset / block + to_offset / block);
  file.content.resize(std::max<uint64_t>(file.content.size(), to_offset + size));
  file.content.replace(to_offset, size, source.content, from_offset, size);
  return size;
}

uint64_t FsModel::copy_piece(uint64_t from, uint64_t from_offset, uint64_t to, uint64_t to_offset,
                             uint64_t size) {
  const ModelFile source = at(from);
  uint64_t data = from_offset;
  if (!source.is_inline && !source.mapped.contains(data / block)) {
    const auto next = source.mapped.upper_bound(data / block);
    data = source.content.size();
    if (next != source.mapped.end()) data = std::min(data, *next * block);
  }
  const uint64_t hole = data - from_offset;
  if (hole < block) {
    const std::string bytes = source.content.substr(from_offset, std::min(size, copied_at_once));
    write(to, to_offset, bytes);
    return bytes.size();
  }
  size = std::min(size, hole);
  fallocate(to, {FallocateMode::Kind::punch_hole, true}, to_offset, size);
  if (at(to).content.size() < to_offset + size) set_size(to, to_offset + size);
  return size;
}

bool FsModel::copy_range(uint64_t from, uint64_t from_offset, uint64_t to, uint64_t to_offset,
                         uint64_t size) {
  const ModelFile* const source = find(from);
  const ModelFile* const target = find(to);
  for (const ModelFile* const file : {source, target})
    if (file == nullptr || file->type != FileType::regular) return false;
  if (from_offset >= source->content.size()) return true;
  const uint64_t all = source->content.size() - from_offset;
  size = size == 0 ? all : std::min(size, all);
  if (from == to && from_offset < to_offset + size && to_offset < from_offset + size) return false;
  const bool can_share = from_offset % block == to_offset % block;
  for (uint64_t done = 0; done < size;) {
    const uint64_t left = size - done;
    uint64_t copied = 0;
    if (can_share && (from_offset + done) % block == 0)
      copied = share(from, from_offset + done, to, to_offset + done, left);
    if (copied == 0) {
      const uint64_t to_next = block - (from_offset + done) % block;
      copied = copy_piece(from, from_offset + done, to, to_offset + done,
                          can_share ? std::min(left, to_next) : left);
    }
    if (copied == 0) return true;
    done += copied;
  }
  return true;
}

}  // namespace trellis
