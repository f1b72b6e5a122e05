#include <utility>

#include "fs/names.h"
#include "fs/sessions.h"

namespace trellis {
namespace {

struct Spot {
  InodeId directory;
  ByteView name;
};

FsFigures of_entry(const FsEntry& entry, int64_t times, int64_t now_ns) {
  return {.entries = times,
          .directories = entry.type == FileType::directory ? times : 0,
          .changed_ns = now_ns};
}

// What moving an entry to another place needs, the entries aside.
Status plan_move(FsPlan& plan, const FsEntry& entry, const Spot& from, const Spot& to) {
  plan.hold(entry.inode);
  if (entry.type == FileType::directory && from.directory != to.directory) {
    plan.tree_alone();
    plan.all_figures(entry.inode);
  }
  return {};
}

// The inode is named by `to` instead of `from`; entries and their counts are the caller's.
Status move_inode(FsChange& change, const FsEntry& entry, const Spot& from, const Spot& to) {
  TRY_ASSIGN(FsInode* const moved, change.inode(entry.inode));
  moved->changed_ns = change.now_ns();
  moved->version++;
  if (entry.type == FileType::directory) {
    if (from.directory == to.directory) return {};
    if (change.is_below(to.directory, entry.inode)) return fs_error::into_itself();
    TRY_ASSIGN(FsFigures below, change.figures(entry.inode));
    below.entries = below.directories = below.changed_ns = 0;
    below.inodes++;
    TRY(change.count(from.directory, negative(below)));
    TRY(change.count(to.directory, below));
    moved->home = to.directory;
    change.tree_changed();
    return {};
  }
  if (moved->links > 1) {
    TRY_ASSIGN(const auto further, change.record(encode(FsLinkKey{change.keyspace(), entry.inode,
                                                                  from.directory, from.name})));
    if (further.old.found()) {
      TRY_ASSIGN(
          const auto link,
          change.record(encode(FsLinkKey{change.keyspace(), entry.inode, to.directory, to.name})));
      change.remove(further);
      change.put(link, fs_link_value);
      return {};
    }
  }
  if (from.directory == to.directory) return {};
  TRY(change.count(from.directory, negative(figures_of(*moved))));
  TRY(change.count(to.directory, figures_of(*moved)));
  moved->home = to.directory;
  return {};
}

}  // namespace

Status FileSystem::replace_entry(FsChange& change, InodeId directory, ByteView name,
                                 const FsEntry& old, FileType by) {
  if (old.type != FileType::directory) {
    if (by == FileType::directory) return fs_error::not_a_directory(quote(name));
    return remove_name(change, open_files_, directory, name, old.inode);
  }
  if (by != FileType::directory) return fs_error::is_a_directory(quote(name));
  TRY_ASSIGN(FsInode* const removed, change.inode(old.inode));
  TRY_ASSIGN(const FsFigures figures, change.figures(old.inode));
  if (figures.entries != 0) return fs_error::not_empty(name);
  TRY(change.set_figures(old.inode, {}));
  TRY(change.count(directory, {.inodes = -1}));
  return drop_directory(change, old.inode, *removed);
}

Status FileSystem::plan_replacing(FsPlan& plan, InodeId directory, ByteView name,
                                  const FsEntry& old) {
  if (old.type != FileType::directory)
    return plan_name_removal(plan, open_files_, directory, name, old.inode);
  plan.hold(old.inode);
  plan.all_figures(old.inode);
  plan_holders(plan, open_files_, old.inode);
  return {};
}

Status FileSystem::rename(const Caller& caller, InodeId from, ByteView from_name, InodeId to,
                          ByteView to_name, RenameMode mode, const ExpectedFile& expected) {
  TRY(check_file_name(from_name));
  TRY(check_file_name(to_name));
  const Spot source{from, from_name};
  const Spot target{to, to_name};
  std::optional<FsEntry> planned_source;
  std::optional<FsEntry> planned_target;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.entry(from, from_name);
    plan.entry(to, to_name);
    TRY(plan.charge(from));
    TRY(plan.charge(to));
    TRY_ASSIGN(planned_source, plan.see(from, from_name));
    TRY_ASSIGN(planned_target, plan.see(to, to_name));
    if (!planned_source) return {};
    TRY(plan_move(plan, *planned_source, source, target));
    if (!planned_target) return {};
    if (mode == RenameMode::exchange) return plan_move(plan, *planned_target, target, source);
    return plan_replacing(plan, to, to_name, *planned_target);
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY(change.directory(from));
    TRY(change.directory(to));
    if (!change.attached(to)) return fs_error::stale(to);
    TRY_ASSIGN(const auto moved, change.entry(from, from_name));
    TRY_ASSIGN(const auto there, change.entry(to, to_name));
    if (moved != planned_source || there != planned_target) return plan_outdated();
    if (!moved) return fs_error::no_entry(from_name);
    TRY(check_expected(change, moved, expected));
    if (there && mode == RenameMode::no_replace) return fs_error::exists(to_name);
    if (!there && mode == RenameMode::exchange) return fs_error::no_entry(to_name);
    if (there && there->inode == moved->inode) return {};  // two names of one file stay
    if (mode == RenameMode::exchange) {
      TRY(move_inode(change, *there, target, source));
      TRY(change.put_entry(from, from_name, *there));
      TRY(change.count(from, of_entry(*there, 1, change.now_ns())));
      TRY(change.count(to, of_entry(*there, -1, change.now_ns())));
    } else {
      if (there) {
        TRY(replace_entry(change, to, to_name, *there, moved->type));
        TRY(change.count(to, of_entry(*there, -1, change.now_ns())));
      }
      TRY(change.remove_entry(from, from_name));
    }
    TRY(move_inode(change, *moved, source, target));
    TRY(change.put_entry(to, to_name, *moved));
    TRY(change.count(from, of_entry(*moved, -1, change.now_ns())));
    return change.count(to, of_entry(*moved, 1, change.now_ns()));
  };
  return change(&caller, plan, run);
}

}  // namespace trellis
