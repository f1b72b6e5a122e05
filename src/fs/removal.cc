// Unlinking, and removing whole trees.
#include <utility>

#include "fs/content.h"
#include "fs/names.h"
#include "fs/sessions.h"

namespace trellis {
namespace {

// The first further name of an inode, in that directory or one behind it; absent: there is none.
template <class Map>
Result<std::optional<std::pair<InodeId, Bytes>>> first_link(Map& map, KeyspaceId keyspace,
                                                            InodeId inode,
                                                            InodeId from = InodeId{0}) {
  const Bytes begin = encode(FsLinkKey{keyspace, inode, from, {}});
  const Bytes end = prefix_end(ByteView(begin).substr(0, begin.size() - 8));
  std::optional<std::pair<InodeId, Bytes>> first;
  Status decoded;
  TRY(map.scan({.begin = begin, .end = end, .entries_max = 1}, [&](ByteView key, ByteView) {
    if (const auto link = decode<FsLinkKey>(key))
      first.emplace(link->parent, Bytes(link->name));
    else
      decoded = fs_error::corrupt("a link of inode " + std::to_string(inode.value));
    return Visit::stop;
  }));
  TRY(decoded);
  return first;
}

// Whether nothing but its record is stored of it.
Result<bool> is_one_record(FsChange& change, InodeId inode, const FsInode& file) {
  if ((file.flags & (fs_attributes | fs_shares)) != 0 || file.blocks != 0 || file.next != 0)
    return false;
  if (file.type != FileType::regular || !change.may_have_leftovers(inode)) return true;
  TRY_ASSIGN(const bool has_leftovers,
             has_blocks(change.engine().blocks(), change.keyspace(), file.data, 0));
  return !has_leftovers;
}

}  // namespace

Bytes fs_note(FsNote kind, uint64_t id) {
  Bytes note(1, static_cast<char>(kind));
  append_be64(note, id);
  return note;
}

Status plan_name_removal(FsPlan& plan, const OpenFiles& open_files, InodeId directory,
                         ByteView name, InodeId inode) {
  plan.hold(inode);
  TRY_ASSIGN(const auto seen, plan.inode(inode));
  if (!seen) return plan_outdated();
  plan_holders(plan, open_files, inode);
  TRY(plan.charge(seen->inode.home));
  if (seen->inode.links <= 1 || seen->inode.home != directory) return {};
  // Another name may become its home.
  Value further;
  TRY(plan.engine().get(encode(FsLinkKey{plan.keyspace(), inode, directory, name}), further));
  if (further.found()) return {};
  TRY_ASSIGN(const auto next, first_link(plan.engine(), plan.keyspace(), inode));
  if (!next) return plan_outdated();
  TRY(plan.charge(next->first));
  if (next->first != directory) return {};
  // All names in the directory may go at once.
  TRY_ASSIGN(const auto elsewhere,
             first_link(plan.engine(), plan.keyspace(), inode, InodeId{directory.value + 1}));
  return elsewhere ? plan.charge(elsewhere->first) : Status();
}

namespace {

// The name at home is about to go: another one is home from now on. No quota keeps a name, or a
// removed tree, from going: the file counts where it is, though that may be full.
Status move_home(FsChange& change, InodeId inode, FsInode& file) {
  TRY_ASSIGN(const auto next, first_link(change.view(), change.keyspace(), inode));
  if (!next) return fs_error::corrupt(fmt::format("inode {} has lost a name", inode.value));
  TRY_ASSIGN(const auto record,
             change.record(encode(FsLinkKey{change.keyspace(), inode, next->first, next->second})));
  change.remove(record);
  if (next->first != file.home) {
    TRY(change.count(file.home, negative(figures_of(file)), FsChange::Limit::none));
    TRY(change.count(next->first, figures_of(file), FsChange::Limit::none));
    file.home = next->first;
  }
  return {};
}

}  // namespace

Status remove_name(FsChange& change, const OpenFiles& open_files, InodeId directory, ByteView name,
                   InodeId inode) {
  TRY_ASSIGN(FsInode* const file, change.inode(inode));
  file->version++;
  file->changed_ns = change.now_ns();
  if (file->links > 1) {
    file->links--;
    TRY_ASSIGN(const auto further,
               change.record(encode(FsLinkKey{change.keyspace(), inode, directory, name})));
    if (!further.old.found()) return move_home(change, inode, *file);
    change.remove(further);
    return {};
  }
  TRY(change.count(file->home, negative(figures_of(*file))));
  file->links = 0;
  file->home = InodeId{0};  // what is written to it from now on is counted nowhere
  TRY_ASSIGN(const bool is_held, keep_for_holders(change, open_files, inode));
  return is_held ? Status() : leave_inode(change, inode, *file);
}

Status leave_inode(FsChange& change, InodeId inode, const FsInode& stored) {
  // Where others may hold it (a shared engine, sessions from before a crash), the collector looks
  // for that.
  if (change.knows_holders()) {
    TRY_ASSIGN(const bool is_one, is_one_record(change, inode, stored));
    if (is_one) {
      change.remove_inode(inode);
      return {};
    }
  }
  change.view().leave_garbage(change.now_ms(), fs_note(FsNote::inode, inode.value),
                              stored.blocks * block_bytes_max);
  return {};
}

Status FileSystem::unlink(const Caller& caller, InodeId directory, ByteView name,
                          const ExpectedFile& expected) {
  TRY(check_file_name(name));
  std::optional<FsEntry> planned;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.entry(directory, name);
    TRY_ASSIGN(planned, plan.see(directory, name));
    TRY(plan.charge(directory));
    if (!planned || planned->type == FileType::directory) return {};
    return plan_name_removal(plan, open_files_, directory, name, planned->inode);
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY(change.directory(directory));
    TRY_ASSIGN(const auto entry, change.entry(directory, name));
    if (!entry) return fs_error::no_entry(name);
    if (entry->type == FileType::directory) return fs_error::is_a_directory(quote(name));
    if (!planned || planned->inode != entry->inode) return plan_outdated();
    TRY(check_expected(change, entry, expected));
    TRY(change.remove_entry(directory, name));
    TRY(remove_name(change, open_files_, directory, name, entry->inode));
    return change.count(directory, {.entries = -1, .changed_ns = change.now_ns()});
  };
  return change(&caller, plan, run);
}

Status FileSystem::remove_directory(const Caller& caller, InodeId directory, ByteView name) {
  TRY(check_file_name(name));
  std::optional<FsEntry> planned;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.entry(directory, name);
    TRY_ASSIGN(planned, plan.see(directory, name));
    if (planned && planned->type == FileType::directory) {
      plan.hold(planned->inode);
      plan.all_figures(planned->inode);
      plan_holders(plan, open_files_, planned->inode);
    }
    return plan.charge(directory);
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY(change.directory(directory));
    TRY_ASSIGN(const auto entry, change.entry(directory, name));
    if (!entry) return fs_error::no_entry(name);
    if (entry->type != FileType::directory) return fs_error::not_a_directory(quote(name));
    if (!planned || planned->inode != entry->inode) return plan_outdated();
    TRY_ASSIGN(FsInode* const removed, change.inode(entry->inode));
    TRY_ASSIGN(const FsFigures figures, change.figures(entry->inode));
    if (figures.entries != 0) return fs_error::not_empty(name);
    TRY(change.remove_entry(directory, name));
    TRY(change.set_figures(entry->inode, {}));
    TRY(drop_directory(change, entry->inode, *removed));
    return change.count(
        directory, {.inodes = -1, .entries = -1, .directories = -1, .changed_ns = change.now_ns()});
  };
  return change(&caller, plan, run);
}

Status FileSystem::drop_directory(FsChange& change, InodeId inode, FsInode& directory) {
  directory.links = 0;
  directory.home = InodeId{0};
  directory.flags |= fs_removed;
  directory.changed_ns = change.now_ns();
  TRY_ASSIGN(const bool is_held, keep_for_holders(change, open_files_, inode));
  return is_held ? Status() : leave_inode(change, inode, directory);
}

Status plan_tree_removal(FsPlan& plan, InodeId tree) {
  plan.tree_alone();
  plan.hold(tree);
  plan.all_figures(tree);
  return {};
}

Status cut_tree_off(FsChange& change, InodeId parent, InodeId tree) {
  TRY_ASSIGN(FsInode* const directory, change.inode(tree));
  TRY_ASSIGN(FsFigures below, change.figures(tree));
  below.entries = below.directories = below.changed_ns = 0;
  below.inodes++;  // the directory itself
  TRY(change.count(parent, negative(below)));
  directory->links = 0;
  directory->home = InodeId{0};
  directory->flags |= fs_removed;
  directory->changed_ns = change.now_ns();
  change.tree_changed();
  change.view().leave_garbage(change.now_ms(), fs_note(FsNote::tree, tree.value),
                              static_cast<uint64_t>(std::max<int64_t>(below.space, 0)));
  return {};
}

Status FileSystem::remove_tree(const Caller& caller, InodeId directory, ByteView name,
                               const ExpectedFile& expected) {
  TRY(check_file_name(name));
  TRY_ASSIGN(const auto seen, see_entry(tenant_->map().engine, keyspace(), directory, name));
  if (seen && seen->type != FileType::directory) return unlink(caller, directory, name, expected);
  std::optional<FsEntry> planned;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.entry(directory, name);
    TRY_ASSIGN(planned, plan.see(directory, name));
    if (planned) TRY(plan_tree_removal(plan, planned->inode));
    return plan.charge(directory);
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY(change.directory(directory));
    TRY_ASSIGN(const auto entry, change.entry(directory, name));
    if (!entry) return fs_error::no_entry(name);
    if (entry->type != FileType::directory) return fs_error::not_a_directory(quote(name));
    if (!planned || planned->inode != entry->inode) return plan_outdated();
    TRY(check_expected(change, entry, expected));
    TRY(change.remove_entry(directory, name));
    TRY(cut_tree_off(change, directory, entry->inode));
    return change.count(directory,
                        {.entries = -1, .directories = -1, .changed_ns = change.now_ns()});
  };
  return change(&caller, plan, run);
}

}  // namespace trellis
