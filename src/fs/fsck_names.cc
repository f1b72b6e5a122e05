// What fsck finds of directories: their entries, their figures, and whether everything has the
// names that it should.
#include <algorithm>
#include <array>
#include <utility>

#include "fs/fsck_look.h"

namespace trellis {
namespace {

// Names of one inode in one directory that are looked at.
constexpr size_t names_max = 1'000;
constexpr size_t children_at_once = 256;

bool is_root_directory(InodeId inode) { return inode == root_inode || inode == trash_inode; }

}  // namespace

struct FsckLook::Children {
  struct Child {
    Bytes name;
    std::optional<FsEntry> entry;  // absent: it does not decode
    Bytes raw;
  };
  InodeId directory;
  const FsInode& parent;
  std::vector<Child> page = {};
  std::vector<Value> inodes = {};  // of the page
  FsFigures sum = {};

  bool counts() const { return (parent.flags & fs_removed) == 0; }
};

Result<bool> FsckLook::has_entries(InodeId inode) {
  RecordCursor cursor = RecordCursor::of_prefix(source_, encode(FsEntryKey{keyspace_, inode, {}}));
  for (;;) {
    TRY_ASSIGN(const bool more, cursor.next());
    if (!more) return false;
    if (!is_removed(cursor.key())) return true;
  }
}

Result<bool> FsckLook::is_directory(InodeId inode) {
  TRY_ASSIGN(const Seen seen, see(inode));
  return seen && seen->inode.type == FileType::directory;
}

Result<std::vector<Bytes>> FsckLook::names_at(InodeId directory, InodeId inode) {
  std::vector<Bytes> found;
  const Bytes prefix = encode(FsEntryKey{keyspace_, directory, {}});
  RecordCursor cursor = RecordCursor::of_prefix(source_, prefix);
  for (;;) {
    TRY_ASSIGN(const bool more, cursor.next());
    if (!more || found.size() >= names_max) return found;
    const auto entry = decode<FsEntry>(cursor.value());
    if (!entry || entry->inode != inode || is_removed(cursor.key())) continue;
    const ByteView name = cursor.key().substr(prefix.size());
    TRY_ASSIGN(const auto link, read(encode(FsLinkKey{keyspace_, inode, directory, name})));
    if (!link) found.emplace_back(name);
  }
}

Result<bool> FsckLook::has_name_at(InodeId directory, InodeId inode) {
  TRY_ASSIGN(const bool is_there, is_directory(directory));
  if (!is_there) return false;
  TRY_ASSIGN(const auto names, names_at(directory, inode));
  return !names.empty();
}

// --- entries ---

Status FsckLook::directory(InodeId inode) {
  TRY_ASSIGN(const Seen seen, see(inode));
  if (!seen || seen->inode.type != FileType::directory) return {};
  Children children{.directory = inode, .parent = seen->inode};
  const Bytes prefix = encode(FsEntryKey{keyspace_, inode, {}});
  RecordCursor cursor = RecordCursor::of_prefix(source_, prefix);
  for (bool more = true; more;) {
    TRY_ASSIGN(more, cursor.next());
    if (more) {
      const auto entry = decode<FsEntry>(cursor.value());
      children.page.push_back({Bytes(cursor.key().substr(prefix.size())),
                               entry ? std::optional(*entry) : std::nullopt,
                               Bytes(cursor.value())});
    }
    if (children.page.size() < (more ? children_at_once : 1)) continue;
    TRY(take_children(children));
    children.page.clear();
  }
  if (children.counts()) TRY(check_figures(children));
  return check_chain(inode);
}

Status FsckLook::take_children(Children& children) {
  std::vector<Bytes> keys;
  for (const auto& child : children.page)
    keys.push_back(encode(FsInodeKey{keyspace_, child.entry ? child.entry->inode : InodeId{0}}));
  const std::vector<ByteView> views(keys.begin(), keys.end());
  children.inodes = std::vector<Value>(keys.size());
  TRY(source_.multi_get(views, children.inodes));
  for (size_t at = 0; at < children.page.size(); at++) TRY(check_child(children, at));
  children.inodes.clear();
  return {};
}

Status FsckLook::check_child(Children& children, size_t at) {
  const auto& [name, entry, raw] = children.page[at];
  const Bytes key = encode(FsEntryKey{keyspace_, children.directory, name});
  if (!entry) {
    report(FsckKind::record_damaged, InodeId{0}, children.directory, name,
           "an entry that does not decode: " + to_hex(raw));
    remove(key);
    return {};
  }
  use_id(entry->inode.value);
  if (!check_file_name(name)) {
    report(FsckKind::name_illegal, entry->inode, children.directory, name, "no name of a file");
    remove(key);
    return {};
  }
  FsInode child{};
  Bytes edited;
  const Bytes inode_key = encode(FsInodeKey{keyspace_, entry->inode});
  const auto edit = edits_.find(inode_key);
  const Value& stored = children.inodes[at];
  if (edit != edits_.end() && edit->second) edited = *edit->second;
  const ByteView bytes = !edited.empty() ? ByteView(edited) : stored.found() ? stored.bytes() : "";
  const auto decoded = decode<FsInode>(bytes);
  if (!decoded) {
    if (stored.found()) return {};  // inode() tells, and makes one of it
    report(FsckKind::entry_to_nothing, entry->inode, children.directory, name,
           fmt::format("there is no inode {}", entry->inode.value));
    remove(key);
    return {};
  }
  child = *decoded;
  if (entry->type != child.type || entry->generation != child.generation) {
    report(FsckKind::entry_wrong, entry->inode, children.directory, name,
           "type or generation are not the inode's");
    put(key, encode(FsEntry{entry->inode, child.type, child.generation}));
  }
  return child.type == FileType::directory ? check_child_directory(children, at, child)
                                           : check_child_file(children, at, child);
}

Status FsckLook::check_child_directory(Children& children, size_t at, FsInode& child) {
  const auto& [name, entry, raw] = children.page[at];
  const InodeId inode = entry->inode;
  bool is_home = child.home == children.directory;
  if ((child.flags & fs_removed) != 0 && children.counts()) {
    report(FsckKind::flags_wrong, inode, children.directory, name,
           "it has a name, and says that it is removed");
    child.flags &= ~uint32_t{fs_removed};
    child.links = 1;
    child.home = children.directory;
    put_inode(inode, child);
    is_home = tree_changes_ = true;
  } else if (!is_home) {
    TRY_ASSIGN(const bool is_elsewhere, has_name_at(child.home, inode));
    if (is_elsewhere || is_root_directory(inode)) {
      report(FsckKind::directory_named_twice, inode, children.directory, name,
             fmt::format("its name in directory {} stays", child.home.value));
      remove(encode(FsEntryKey{keyspace_, children.directory, name}));
      return {};
    }
    report(FsckKind::home_wrong, inode, children.directory, name,
           fmt::format("it is in {}, and says {}", children.directory.value, child.home.value));
    child.home = children.directory;
    put_inode(inode, child);
    tree_changes_ = true;
  }
  std::array<Bytes, figure_slots> keys;
  std::array<ByteView, figure_slots> views;
  std::array<Value, figure_slots> slots;
  for (uint8_t slot = 0; slot < figure_slots; slot++)
    views[slot] = keys[slot] = encode(FsFiguresKey{keyspace_, inode, slot});
  TRY(source_.multi_get(views, slots));
  for (const Value& slot : slots)
    if (auto figures = decode<FsFigures>(slot.found() ? slot.bytes() : "")) {
      figures->entries = figures->directories = 0;
      add_to(children.sum, *figures);
    }
  children.sum.inodes++;
  children.sum.entries++;
  children.sum.directories++;
  return {};
}

Status FsckLook::check_child_file(Children& children, size_t at, FsInode& child) {
  const auto& [name, entry, raw] = children.page[at];
  const InodeId inode = entry->inode;
  const Bytes link_key = encode(FsLinkKey{keyspace_, inode, children.directory, name});
  std::optional<Bytes> link;
  if (child.links != 1 || child.home != children.directory) {
    TRY_ASSIGN(link, read(link_key));
  }
  children.sum.entries++;
  if (child.links == 0) {
    report(FsckKind::links_wrong, inode, children.directory, name, "it has a name, and says none");
    child.links = 1;
    child.home = children.directory;
    put_inode(inode, child);
    if (link) remove(link_key);
    link.reset();
  } else if (!link && child.home != children.directory) {
    TRY_ASSIGN(const bool is_at_home, has_name_at(child.home, inode));
    if (is_at_home) {
      report(FsckKind::link_lost, inode, children.directory, name,
             "one of its names has no link record");
      put(link_key, Bytes(fs_link_value));
      return {};
    }
    report(FsckKind::home_wrong, inode, children.directory, name,
           fmt::format("it is counted in {}, where it has no name", child.home.value));
    to_recount_.insert(child.home);
    child.home = children.directory;
    put_inode(inode, child);
  }
  if (link) return {};  // counted elsewhere
  add_to(children.sum, figures_of(child));
  return {};
}

Status FsckLook::check_figures(Children& children) {
  const InodeId directory = children.directory;
  FsFigures stored;
  bool is_damaged = false;
  bool is_spread = false;
  for (uint8_t slot = 0; slot < figure_slots; slot++) {
    Value value;
    TRY(source_.get(encode(FsFiguresKey{keyspace_, directory, slot}), value));
    if (!value.found()) continue;
    const auto figures = decode<FsFigures>(value.bytes());
    is_damaged |= !figures;
    if (!figures) continue;
    add_to(stored, *figures);
    is_spread |= slot > 0 && (figures->space != 0 || figures->inodes != 0);
  }
  children.sum.changed_ns = stored.changed_ns;
  const bool has_quota = (children.parent.flags & fs_quota) != 0;
  if (stored == children.sum && !is_damaged && !(has_quota && is_spread)) return {};
  const auto text = [](const FsFigures& figures) {
    return fmt::format("{} bytes of blocks, {} of content, {} inodes, {} entries, {} directories",
                       figures.space, figures.length, figures.inodes, figures.entries,
                       figures.directories);
  };
  report(FsckKind::figures_wrong, directory,
         fmt::format("there are {}; it counts {}{}", text(children.sum), text(stored),
                     is_damaged ? " in records that do not all decode" : ""));
  for (uint8_t slot = 0; slot < figure_slots; slot++) {
    Bytes key = encode(FsFiguresKey{keyspace_, directory, slot});
    if (slot == 0)
      put(std::move(key), encode(children.sum));
    else
      remove(std::move(key));
  }
  to_recount_.insert(children.parent.home);
  return {};
}

// Its way up ends. Of a circle the least directory tells; what is below one is fine when that is.
Status FsckLook::check_chain(InodeId directory) {
  InodeId at = directory;
  InodeId least = directory;
  InodeId mark = directory;  // of Brent: one that is met again if there is a circle
  for (uint64_t steps = 1, power = 1; !is_root_directory(at); steps++) {
    TRY_ASSIGN(const Seen seen, see(at));
    if (!seen || seen->inode.home.value == 0) return {};  // its names are counted elsewhere
    at = seen->inode.home;
    if (at == directory) break;
    if (at == mark) return {};
    least = std::min(least, at, [](InodeId a, InodeId b) { return a.value < b.value; });
    if (steps == power) {
      mark = at;
      power *= 2;
      steps = 0;
    }
  }
  if (is_root_directory(at) || least != directory) return {};
  TRY_ASSIGN(Seen seen, see(directory));
  report(FsckKind::directory_circle, directory,
         fmt::format("it is below itself: it is in {}", seen->inode.home.value));
  TRY_ASSIGN(const auto names, names_at(seen->inode.home, directory));
  for (const Bytes& name : names) remove(encode(FsEntryKey{keyspace_, seen->inode.home, name}));
  to_recount_.insert(seen->inode.home);
  return give_name(directory, seen->inode);
}

// A name in lost+found, its only one.
Status FsckLook::give_name(InodeId inode, FsInode& content) {
  needs_lost_found_ = true;
  const InodeId directory = world_.lost_found;
  if (directory.value == 0) return {};
  Bytes name;
  for (unsigned number = 0;; number++) {
    name = fmt::format("inode-{}{}", inode.value, number == 0 ? "" : fmt::format("-{}", number));
    TRY_ASSIGN(const auto taken, read(encode(FsEntryKey{keyspace_, directory, name})));
    if (!taken) break;
  }
  put(encode(FsEntryKey{keyspace_, directory, name}),
      encode(FsEntry{inode, content.type, content.generation}));
  to_recount_.insert(directory);
  content.links = 1;
  content.home = directory;
  content.flags &= ~uint32_t{fs_removed};
  put_inode(inode, content);
  if (content.type == FileType::directory) tree_changes_ = true;
  return {};
}

// --- names ---

Status FsckLook::names(InodeId inode) {
  TRY_ASSIGN(Seen seen, see(inode));
  if (!seen || seen->inode.links == 0 || is_root_directory(inode)) return {};
  FsInode& content = seen->inode;
  std::vector<Bytes> at_home;
  TRY_ASSIGN(const bool has_home, is_directory(content.home));
  if (has_home) {
    TRY_ASSIGN(at_home, names_at(content.home, inode));
  }
  if (content.type == FileType::directory) {
    if (at_home.empty()) {
      report(FsckKind::name_missing, inode, fmt::format("directory {} has no name", inode.value));
      return give_name(inode, content);
    }
    for (size_t i = 1; i < at_home.size(); i++) {
      report(FsckKind::directory_named_twice, inode, content.home, at_home[i],
             "its first name stays");
      remove(encode(FsEntryKey{keyspace_, content.home, at_home[i]}));
      to_recount_.insert(content.home);
    }
    return {};
  }
  std::vector<std::pair<InodeId, Bytes>> links;
  Bytes prefix = encode(FsInodeKey{keyspace_, inode});
  prefix += 'P';
  uint64_t names = 0;
  RecordCursor cursor = RecordCursor::of_prefix(source_, prefix);
  for (;;) {
    TRY_ASSIGN(const bool more, cursor.next());
    if (!more) break;
    const auto link = decode<FsLinkKey>(cursor.key());
    if (!link || is_removed(cursor.key())) continue;
    TRY_ASSIGN(const auto stored, read(encode(FsEntryKey{keyspace_, link->parent, link->name})));
    const auto entry = decode<FsEntry>(stored ? ByteView(*stored) : "");
    if (!entry || entry->inode != inode) continue;  // inode() tells
    names++;
    if (links.empty()) links.emplace_back(link->parent, Bytes(link->name));
  }
  for (size_t i = 1; i < at_home.size(); i++) {
    report(FsckKind::link_lost, inode, content.home, at_home[i],
           "one of its names has no link record");
    put(encode(FsLinkKey{keyspace_, inode, content.home, at_home[i]}), Bytes(fs_link_value));
    to_recount_.insert(content.home);
  }
  names += at_home.size();
  if (names == 0) {
    report(FsckKind::name_missing, inode, fmt::format("inode {} has no name", inode.value));
    if (has_home) to_recount_.insert(content.home);
    return give_name(inode, content);
  }
  const FsInode before = content;
  if (at_home.empty()) {
    report(FsckKind::home_wrong, inode,
           fmt::format("it is counted in {}, where it has no name", content.home.value));
    to_recount_.insert(content.home);
    content.home = links[0].first;
    to_recount_.insert(content.home);
    remove(encode(FsLinkKey{keyspace_, inode, links[0].first, links[0].second}));
  }
  if (content.links != names) {
    report(FsckKind::links_wrong, inode,
           fmt::format("it has {} names, and says {}", names, content.links));
    content.links = static_cast<uint32_t>(names);
  }
  if (before.links != content.links || before.home != content.home) put_inode(inode, content);
  return {};
}

Status FsckLook::entries_of(InodeId parent) {
  TRY_ASSIGN(const Seen seen, see(parent));
  if (seen && seen->inode.type == FileType::directory) return {};
  Value stored;
  TRY(source_.get(encode(FsInodeKey{keyspace_, parent}), stored));
  if (stored.found() && !seen) return {};  // inode() tells, and makes a directory of it
  if (!seen) {
    TRY_ASSIGN(const bool has_any, has_entries(parent));
    if (!has_any) return {};
    report(FsckKind::inode_lost, parent, "entries of a directory that is not there");
    put_inode(parent,
              new_inode({.type = FileType::directory, .mode = 0700}, parent, 1, world_.now_ns()));
    tree_changes_ = true;
    return {};
  }
  const Bytes prefix = encode(FsEntryKey{keyspace_, parent, {}});
  RecordCursor cursor = RecordCursor::of_prefix(source_, prefix);
  for (;;) {
    TRY_ASSIGN(const bool more, cursor.next());
    if (!more) return {};
    const auto entry = decode<FsEntry>(cursor.value());
    report(FsckKind::entry_of_nothing, entry ? entry->inode : InodeId{0}, parent,
           cursor.key().substr(prefix.size()),
           fmt::format("inode {} is no directory", parent.value));
    remove(Bytes(cursor.key()));
  }
}

}  // namespace trellis
