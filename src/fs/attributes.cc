#include <algorithm>
#include <utility>

#include "base/human_bytes.h"
#include "fs/content.h"
#include "fs/names.h"
#include "fs/xattrs.h"

namespace trellis {
namespace {

uint64_t not_negative(int64_t figure) {
  return static_cast<uint64_t>(std::max<int64_t>(figure, 0));
}

}  // namespace

Result<FsFigures> FileSystem::see_figures(InodeId directory) {
  std::array<Bytes, figure_slots> keys;
  std::array<ByteView, figure_slots> views;
  for (uint8_t slot = 0; slot < figure_slots; slot++) {
    keys[slot] = encode(FsFiguresKey{keyspace(), directory, slot});
    views[slot] = keys[slot];
  }
  std::array<Value, figure_slots> values;
  TRY(tenant_->map().engine.multi_get(views, values));
  return sum_figures(directory, values);
}

Result<FileAttributes> FileSystem::attributes(InodeId inode) {
  TRY_ASSIGN(const auto seen, see_inode(tenant_->map().engine, keyspace(), inode));
  if (!seen) return fs_error::stale(inode);
  FileAttributes found = attributes_of(inode, seen->inode);
  if (found.type != FileType::directory) return found;
  TRY_ASSIGN(const FsFigures figures, see_figures(inode));
  add_figures(found, figures);
  return found;
}

void FileSystem::add_figures(FileAttributes& directory, const FsFigures& figures) {
  if (directory.links > 0) directory.links = 2 + static_cast<uint32_t>(figures.directories);
  directory.size = not_negative(figures.entries);
  directory.modified_ns = std::max(directory.modified_ns, figures.changed_ns);
  directory.changed_ns = std::max(directory.changed_ns, figures.changed_ns);
}

Result<FileAttributes> FileSystem::stat(const Caller& caller, InodeId inode) {
  TRY(tenant_->admit(caller, Access::read));
  return attributes(inode);
}

Result<std::vector<std::optional<FileAttributes>>> FileSystem::stat_many(
    const Caller& caller, std::span<const InodeId> inodes) {
  TRY(tenant_->admit(caller, Access::read));
  std::vector<Bytes> keys;
  keys.reserve(inodes.size());
  for (const InodeId inode : inodes) keys.push_back(encode(FsInodeKey{keyspace(), inode}));
  const std::vector<ByteView> views(keys.begin(), keys.end());
  std::vector<Value> values(keys.size());
  TRY(tenant_->map().engine.multi_get(views, values));
  std::vector<std::optional<FileAttributes>> found(inodes.size());
  for (size_t i = 0; i < inodes.size(); i++) {
    if (!values[i].found()) continue;
    TRY_ASSIGN(const FsInode stored, decode_inode(inodes[i], values[i].bytes()));
    found[i] = attributes_of(inodes[i], stored);
    if (stored.type != FileType::directory) continue;
    TRY_ASSIGN(const FsFigures figures, see_figures(inodes[i]));
    add_figures(*found[i], figures);
  }
  return found;
}

namespace {

void patch_inode(FsInode& inode, const AttributePatch& patch) {
  if (patch.mode) inode.mode = *patch.mode & 07777;
  if (patch.uid) inode.uid = *patch.uid;
  if (patch.gid) inode.gid = *patch.gid;
  if (patch.accessed_ns) inode.accessed_ns = *patch.accessed_ns;
  if (patch.modified_ns) inode.modified_ns = *patch.modified_ns;
}

}  // namespace

Result<FileAttributes> FileSystem::set_attributes(const Caller& caller, InodeId inode,
                                                  const AttributePatch& patch) {
  FileAttributes changed;
  // A directory's time is the latest of its own and of its figures': theirs go into it.
  bool folds = false;
  bool is_cut = true;  // to the size that is asked for
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.hold(inode);
    TRY_ASSIGN(const auto seen, plan.inode(inode));
    if (!seen) return fs_error::stale(inode);
    folds = seen->inode.type == FileType::directory;
    if (folds) plan.all_figures(inode);
    return patch.size ? plan_set_size(plan, inode, seen->inode, *patch.size) : Status();
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY_ASSIGN(FsInode* const file, change.inode(inode));
    if (folds != (file->type == FileType::directory)) return plan_outdated();
    if (patch.size) {
      TRY_ASSIGN(is_cut, set_size(change, inode, *file, *patch.size));
    }
    file->version++;
    file->changed_ns = change.now_ns();
    if (!folds) {
      patch_inode(*file, patch);
      if (patch.mode) TRY(follow_mode(change, inode, *file));
      changed = attributes_of(inode, *file);
      return {};
    }
    TRY_ASSIGN(FsFigures figures, change.figures(inode));
    if (patch.modified_ns) {
      figures.changed_ns = 0;
      TRY(change.set_figures(inode, figures));
    }
    patch_inode(*file, patch);
    if (patch.mode) TRY(follow_mode(change, inode, *file));
    changed = attributes_of(inode, *file);
    add_figures(changed, figures);
    return {};
  };
  do TRY(change(&caller, plan, run));
  while (!is_cut);
  return changed;
}

Result<TreeFigures> FileSystem::tree_figures(const Caller& caller, InodeId inode) {
  TRY(tenant_->admit(caller, Access::read));
  TRY_ASSIGN(const auto seen, see_inode(tenant_->map().engine, keyspace(), inode));
  if (!seen) return fs_error::stale(inode);
  FsFigures figures = figures_of(seen->inode);
  if (seen->inode.type == FileType::directory) {
    TRY_ASSIGN(figures, see_figures(inode));
  }
  return TreeFigures{not_negative(figures.space), static_cast<uint64_t>(figures.length),
                     not_negative(figures.inodes)};
}

Result<FileSystemFigures> FileSystem::figures(const Caller& caller) {
  TRY_ASSIGN(const TreeFigures named, tree_figures(caller, root_inode));
  TRY_ASSIGN(const TreeFigures trash, tree_figures(caller, trash_inode));
  return FileSystemFigures{
      .used = {named.space + trash.space, named.length + trash.length, named.inodes + trash.inodes},
      .trash = trash};
}

Result<std::optional<FsQuota>> FileSystem::quota(const Caller& caller, InodeId directory) {
  TRY(tenant_->admit(caller, Access::read));
  TRY_ASSIGN(const auto seen, see_inode(tenant_->map().engine, keyspace(), directory));
  if (!seen) return fs_error::stale(directory);
  if ((seen->inode.flags & fs_quota) == 0) return std::optional<FsQuota>();
  TRY_ASSIGN(const FsQuota quota, decode<FsQuota>(seen->inode.rest));
  return std::optional<FsQuota>(quota);
}

// A directory does not know its name: those of the one above are gone through, up to a number that
// is no burden for whoever meets this error again and again.
std::string FileSystem::describe_directory(InodeId directory) {
  constexpr size_t names_max = 1'000;
  Engine& engine = tenant_->map().engine;
  Bytes path;
  for (InodeId at = directory; at != root_inode;) {
    const auto seen = see_inode(engine, keyspace(), at);
    Bytes name;
    if (seen && *seen) {
      const Bytes prefix = encode(FsEntryKey{keyspace(), (*seen)->inode.home, {}});
      const auto visit = [&](ByteView key, ByteView value) {
        const auto entry = decode<FsEntry>(value);
        const auto named = decode<FsEntryKey>(key);
        if (!entry || !named || entry->inode != at) return Visit::go_on;
        name = Bytes(named->name);
        return Visit::stop;
      };
      discard(engine.scan({.begin = prefix, .end = prefix_end(prefix), .entries_max = names_max},
                          visit));  // then it has no name here
    }
    if (name.empty() || path.size() > file_path_bytes_max)
      return fmt::format("the directory with inode {}", directory.value);
    path = name + '/' + path;
    at = (*seen)->inode.home;
  }
  return fmt::format("the directory {}", quote(path.empty() ? Bytes("/") : path));
}

Status FileSystem::check_quotas(InodeId directory, uint64_t space) {
  const uint64_t tree_version = known_tree_version();
  for (size_t levels = 0; levels < file_path_bytes_max; levels++) {
    TRY_ASSIGN(const auto there, place(directory, tree_version));
    if (!there) return {};  // removed meanwhile, which whoever goes on finds out
    if (there->has_quota) {
      TRY_ASSIGN(const auto seen, see_inode(tenant_->map().engine, keyspace(), directory));
      if (!seen || (seen->inode.flags & fs_quota) == 0) return {};
      TRY_ASSIGN(const FsQuota quota, decode<FsQuota>(seen->inode.rest));
      TRY_ASSIGN(const FsFigures used, see_figures(directory));
      if (quota.bytes_max != 0 && not_negative(used.space) + space > quota.bytes_max)
        return fs_error::directory_quota(describe_directory(directory),
                                         human_bytes(quota.bytes_max));
    }
    if (directory == root_inode || there->parent.value == 0) return {};
    directory = there->parent;
  }
  return {};
}

// What is there already may be over it: then nothing more is let in.
Status FileSystem::set_quota(const Caller& caller, InodeId directory, FsQuota quota) {
  const bool is_set = quota.bytes_max != 0 || quota.inodes_max != 0;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.tree_alone();
    plan.hold(directory);
    plan.all_figures(directory);
    return {};
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY_ASSIGN(FsInode* const found, change.directory(directory));
    found->flags = is_set ? found->flags | fs_quota : found->flags & ~uint32_t{fs_quota};
    found->rest = is_set ? change.keep(encode(quota)) : ByteView();
    found->version++;
    found->changed_ns = change.now_ns();
    TRY_ASSIGN(const FsFigures figures, change.figures(directory));
    TRY(change.set_figures(directory, figures));
    change.tree_changed();
    return {};
  };
  return change(&caller, plan, run);
}

}  // namespace trellis
