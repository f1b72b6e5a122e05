#include "fs/names.h"

#include <algorithm>
#include <utility>

#include "fs/xattrs.h"

namespace trellis {

Status check_new_file(const NewFile& file) {
  if (!is_file_type(file.type)) return fs_error::invalid("this is no type of file");
  if (file.type == FileType::symlink) {
    if (file.target.empty()) return fs_error::invalid("a symlink needs a target");
    if (file.target.size() > symlink_bytes_max) return fs_error::name_too_long(file.target.size());
  } else if (!file.target.empty()) {
    return fs_error::invalid("only a symlink has a target");
  }
  if (file.content.size() > inline_bytes_max ||
      (!file.content.empty() && file.type != FileType::regular))
    return fs_error::invalid("a new file has at most 4 KiB of content, and only a regular one");
  return {};
}

Status check_file_name(ByteView name) {
  if (name.size() > file_name_bytes_max) return fs_error::name_too_long(name.size());
  constexpr ByteView illegal("/\0", 2);
  if (name.empty() || name == "." || name == ".." || name.find_first_of(illegal) != ByteView::npos)
    return fs_error::illegal_name(name);
  return {};
}

FsInode new_inode(const NewFile& file, InodeId inode, uint32_t era, int64_t now_ns) {
  FsInode made{};
  made.type = file.type;
  made.mode = file.mode & 07777;
  made.uid = file.uid;
  made.gid = file.gid;
  made.links = 1;
  made.generation = era;
  made.device = file.device;
  made.version = 1;
  made.data = DataId{inode.value};
  made.accessed_ns = made.modified_ns = made.changed_ns = made.born_ns = now_ns;
  if (file.type == FileType::regular) {
    made.flags = fs_inline;
    made.rest = file.content;
  } else if (file.type == FileType::symlink) {
    made.rest = file.target;
  }
  made.size = made.rest.size();
  return made;
}

FileAttributes attributes_of(InodeId inode, const FsInode& stored) {
  return {.inode = inode,
          .type = stored.type,
          .mode = stored.mode,
          .uid = stored.uid,
          .gid = stored.gid,
          .links = stored.links,
          .generation = stored.generation,
          .size = stored.size,
          .space = stored.blocks * block_bytes_max,
          .device = stored.device,
          .version = stored.version,
          .accessed_ns = stored.accessed_ns,
          .modified_ns = stored.modified_ns,
          .changed_ns = stored.changed_ns,
          .born_ns = stored.born_ns,
          .parent = stored.home};
}

Result<FileAttributes> FileSystem::lookup(const Caller& caller, InodeId directory, ByteView name) {
  TRY(check_file_name(name));
  TRY(tenant_->admit(caller, Access::read));
  Engine& engine = tenant_->map().engine;
  TRY_ASSIGN(const auto entry, see_entry(engine, keyspace(), directory, name));
  if (!entry) {
    TRY_ASSIGN(const auto seen, see_inode(engine, keyspace(), directory));
    if (!seen) return fs_error::stale(directory);
    if (seen->inode.type != FileType::directory)
      return fs_error::not_a_directory(fmt::format("inode {}", directory.value));
    return fs_error::no_entry(name);
  }
  auto found = attributes(entry->inode);
  // Removed between the two reads: it is not there.
  if (!found && found.error().reason == "stale") return fs_error::no_entry(name);
  return found;
}

Result<FileAttributes> FileSystem::make(const Caller& caller, InodeId directory, ByteView name,
                                        const NewFile& file) {
  TRY(check_file_name(name));
  TRY(check_new_file(file));
  TRY_ASSIGN(const uint64_t id, take_id());
  const InodeId inode{id};
  FileAttributes made;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.entry(directory, name);
    plan.hold(inode);
    return plan.charge(directory);
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY_ASSIGN(const FsInode* const parent, change.directory(directory));
    if (!change.attached(directory)) return fs_error::stale(directory);
    TRY_ASSIGN(const auto there, change.entry(directory, name));
    if (there) return fs_error::exists(name);
    FsInode content = new_inode(file, inode, era_.load(), change.now_ns());
    content.home = directory;
    TRY(inherit(change, directory, *parent, file, inode, content));
    change.make_inode(inode, content);
    TRY(change.put_entry(directory, name, {inode, file.type, content.generation}));
    made = attributes_of(inode, content);
    const bool is_directory = file.type == FileType::directory;
    if (is_directory) made.links = 2;
    FsFigures counted = figures_of(content);
    counted.entries = 1;
    counted.directories = is_directory ? 1 : 0;
    counted.changed_ns = change.now_ns();
    return change.count(directory, counted);
  };
  TRY(change(&caller, plan, run));
  return made;
}

Result<FileAttributes> FileSystem::link(const Caller& caller, InodeId inode, InodeId directory,
                                        ByteView name) {
  TRY(check_file_name(name));
  FileAttributes linked;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.entry(directory, name);
    plan.hold(inode);
    return plan.charge(directory);
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY_ASSIGN(FsInode* const file, change.inode(inode));
    if (file->type == FileType::directory)
      return fs_error::not_permitted("a directory has one name only");
    if (file->links == 0) return fs_error::stale(inode);
    if (file->links >= file_links_max) return fs_error::too_many_links();
    TRY(change.directory(directory));
    if (!change.attached(directory)) return fs_error::stale(directory);
    TRY_ASSIGN(const auto there, change.entry(directory, name));
    if (there) return fs_error::exists(name);
    TRY_ASSIGN(const auto record,
               change.record(encode(FsLinkKey{keyspace(), inode, directory, name})));
    change.put(record, fs_link_value);
    TRY(change.put_entry(directory, name, {inode, file->type, file->generation}));
    file->links++;
    file->version++;
    file->changed_ns = change.now_ns();
    linked = attributes_of(inode, *file);
    return change.count(directory, {.entries = 1, .changed_ns = change.now_ns()});
  };
  TRY(change(&caller, plan, run));
  return linked;
}

Result<DirectoryPage> FileSystem::list(const Caller& caller, InodeId directory, ByteView after,
                                       size_t entries_max, EntryVisitor visit) {
  TRY(tenant_->admit(caller, Access::read));
  Engine& engine = tenant_->map().engine;
  TRY_ASSIGN(const auto seen, see_inode(engine, keyspace(), directory));
  if (!seen) return fs_error::stale(directory);
  if (seen->inode.type != FileType::directory)
    return fs_error::not_a_directory(fmt::format("inode {}", directory.value));
  const Bytes prefix = encode(FsEntryKey{keyspace(), directory, {}});
  const Bytes begin = after.empty() ? prefix : successor(prefix + Bytes(after));
  DirectoryPage page;
  Bytes last;
  bool stopped = false;
  Status decoded;
  const auto visit_entry = [&](ByteView key, ByteView value) {
    const ByteView name = key.substr(prefix.size());
    const auto entry = decode<FsEntry>(value);
    if (!entry) {
      decoded = fs_error::corrupt("entry " + quote(name));
      return Visit::stop;
    }
    last = Bytes(name);
    page.entries++;
    stopped = visit({name, *entry}) == Visit::stop;
    return stopped ? Visit::stop : Visit::go_on;
  };
  TRY_ASSIGN(const ScanPage scanned,
             engine.scan({.begin = begin,
                          .end = prefix_end(prefix),
                          .entries_max = std::clamp<size_t>(entries_max, 1, scan_page_entries_max),
                          .bytes_max = directory_page_bytes},
                         visit_entry));
  TRY(decoded);
  if (stopped || scanned.resume) page.resume = std::move(last);
  return page;
}

Result<Bytes> FileSystem::read_link(const Caller& caller, InodeId inode) {
  TRY(tenant_->admit(caller, Access::read));
  TRY_ASSIGN(const auto seen, see_inode(tenant_->map().engine, keyspace(), inode));
  if (!seen) return fs_error::stale(inode);
  if (seen->inode.type != FileType::symlink) return fs_error::invalid("this is no symlink");
  return Bytes(seen->inode.rest);
}

}  // namespace trellis
