// What removed trees and files without names leave behind, taken away a little at a time.
#include <algorithm>
#include <utility>

#include "fs/names.h"

namespace trellis {
namespace {

// Entries of a removed directory that one transaction takes: each may hold three more locks.
constexpr size_t entries_at_once = 256;

struct NamedEntry {
  Bytes name;
  FsEntry entry;
};

}  // namespace

// A page of entries of a directory that was removed: files lose this name, directories become
// removed ones. Whether it was the last.
Result<bool> FileSystem::collect_entries(InodeId tree) {
  std::vector<NamedEntry> page;
  const Bytes prefix = encode(FsEntryKey{keyspace(), tree, {}});
  Status decoded;
  TRY(tenant_->map().engine.scan(
      {.begin = prefix, .end = prefix_end(prefix), .entries_max = entries_at_once},
      [&](ByteView key, ByteView value) {
        const ByteView name = key.substr(prefix.size());
        if (const auto entry = decode<FsEntry>(value)) {
          page.push_back({Bytes(name), *entry});
          return Visit::go_on;
        }
        decoded = fs_error::corrupt("entry " + quote(name));
        return Visit::stop;
      }));
  TRY(decoded);
  if (page.empty()) return true;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.everything();  // so many entries: naming each lock would be more than that
    TRY(plan.charge(tree));
    for (const auto& [name, entry] : page) {
      if (entry.type == FileType::directory) continue;
      TRY_ASSIGN(const auto file, plan.inode(entry.inode));
      if (file) TRY(plan_name_removal(plan, open_files_, tree, name, entry.inode));
    }
    return {};
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY_ASSIGN(FsInode* const removed, change.find_inode(tree));
    if (removed == nullptr || (removed->flags & fs_removed) == 0)
      return fs_error::corrupt(fmt::format("directory {} is to be collected", tree.value));
    for (const auto& [name, entry] : page) {
      TRY_ASSIGN(const auto stored, change.entry(tree, name));
      if (stored != entry) return plan_outdated();
      TRY(change.remove_entry(tree, name));
      TRY_ASSIGN(FsInode* const file, change.find_inode(entry.inode));
      if (file == nullptr) continue;
      if (entry.type == FileType::directory)
        orphan_tree(change, entry.inode, *file);
      else
        TRY(remove_name(change, open_files_, tree, name, entry.inode));
    }
    return {};
  };
  TRY(change(nullptr, plan, run));
  return page.size() < entries_at_once;
}

void FileSystem::orphan_tree(FsChange& change, InodeId inode, FsInode& directory) {
  directory.links = 0;
  directory.home = InodeId{0};
  directory.flags |= fs_removed;
  change.tree_changed();
  change.view().leave_garbage(change.now_ms(), fs_note(FsNote::tree, inode.value), 0);
}

// The directory's entries, then its own records. Whether all is gone.
Result<bool> FileSystem::collect_tree(const Garbage& note, InodeId tree) {
  TRY_ASSIGN(const bool empty, collect_entries(tree));
  if (!empty) return false;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.everything();
    return {};
  };
  const auto run = [&](FsChange& change) -> Status {
    change.view().forget_garbage(note.due_ms, note.target);
    TRY_ASSIGN(FsInode* const removed, change.find_inode(tree));
    if (removed == nullptr) return {};
    TRY(change.set_figures(tree, {}));
    removed->flags &= ~uint32_t{fs_quota};
    removed->rest = {};
    return drop_directory(change, tree, *removed);
  };
  TRY(change(nullptr, plan, run));
  return true;
}

Result<bool> FileSystem::collect_note(const Garbage& note) {
  if (note.target.size() < 9)
    return Error{Code::corrupt, "a note of files that is too short", "fs_corrupt"};
  const uint64_t id = load_be(note.target.data() + 1, 8);
  switch (static_cast<FsNote>(note.target[0])) {
    case FsNote::blocks: return collect_blocks(note);
    case FsNote::tree: return collect_tree(note, InodeId{id});
    case FsNote::inode: return collect_inode(note, InodeId{id});
    case FsNote::session: return collect_session(note, SessionId{id});
    case FsNote::trash_hour: return collect_trash_hour(note, InodeId{id});
  }
  return Error{Code::corrupt, "a note of files of no known kind", "fs_corrupt"};
}

Result<size_t> FileSystem::collect(std::span<const Garbage> notes) {
  size_t gone = 0;
  for (const Garbage& note : notes) {
    const auto is_gone = collect_note(note);
    if (!is_gone && gone > 0) break;  // whoever asks for the rest again must not ask for those
    TRY(is_gone);
    gone += *is_gone ? 1 : 0;
  }
  return gone;
}

}  // namespace trellis
