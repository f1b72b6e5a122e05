#include "fs/trash.h"

#include <charconv>
#include <chrono>
#include <utility>

#include "fs/names.h"

namespace trellis {
namespace {

// A year has four digits.
constexpr uint64_t trash_hours_max = 10'000ull * 365 * 24;
constexpr size_t trash_hour_digits = 10;
// What changes while it is looked at is looked at again, so often.
constexpr unsigned trash_attempts_max = 32;

// Takes a number and the '-' behind it off the front.
std::optional<uint64_t> take_number(ByteView& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != '-') return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return number;
}

uint64_t hour_end_ms(uint64_t hour) { return (hour + 1) * trash_hour_ms; }

struct HourAndName {
  ByteView hour;
  ByteView name;
};
HourAndName split_item(ByteView item) {
  const size_t slash = item.find('/');
  if (slash == ByteView::npos) return {item, {}};
  return {item.substr(0, slash), item.substr(slash + 1)};
}

Error parent_gone(InodeId parent) {
  return {Code::not_found,
          fmt::format("the directory that it was in, inode {}, is gone: say where to restore it to",
                      parent.value),
          "parent_gone"};
}

}  // namespace

Bytes trash_hour_name(uint64_t hour) {
  using namespace std::chrono;
  const auto days = static_cast<int>(std::min(hour, trash_hours_max) / 24);
  const year_month_day date{sys_days(std::chrono::days(days))};
  return fmt::format("{:04}{:02}{:02}{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     hour % 24);
}

std::optional<uint64_t> parse_trash_hour(ByteView name) {
  using namespace std::chrono;
  if (name.size() != trash_hour_digits) return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  const year_month_day date{year(static_cast<int>(number / 1'000'000)),
                            month(static_cast<unsigned>(number / 10'000 % 100)),
                            day(static_cast<unsigned>(number / 100 % 100))};
  const auto days = date.ok() ? sys_days(date).time_since_epoch().count() : -1;
  if (days < 0 || number % 100 > 23) return std::nullopt;
  return static_cast<uint64_t>(days) * 24 + number % 100;
}

Bytes trash_hour_note(InodeId directory, uint64_t hour) {
  Bytes note = fs_note(FsNote::trash_hour, directory.value);
  append_be64(note, hour);
  return note;
}

Bytes trash_name(const TrashName& name) {
  Bytes out = fmt::format("{}-{}-", name.parent.value, name.inode.value);
  out += name.name;
  if (out.size() > file_name_bytes_max) out.resize(file_name_bytes_max);
  return out;
}

std::optional<TrashName> parse_trash_name(ByteView name) {
  const auto parent = take_number(name);
  if (!parent) return std::nullopt;
  const auto inode = take_number(name);
  if (!inode || name.empty()) return std::nullopt;
  return TrashName{InodeId{*parent}, InodeId{*inode}, name};
}

// --- of a file system ---

Result<uint64_t> FileSystem::trash_ms(const Caller& caller) {
  TRY(tenant_->admit(caller, Access::read));
  TRY_ASSIGN(const FsSuperblock found, superblock());
  return found.trash_ms;
}

Status FileSystem::set_trash_ms(const Caller& caller, uint64_t ms) {
  if (ms > trash_ms_max) return fs_error::invalid("the trash keeps things for up to 100 years");
  const Bytes key = encode(FsSuperblockKey{keyspace()});
  return tenant_->write(caller, Model::fs, Scope::in(keyspace()).exclusive(key),
                        [&](CountedView& view) -> Status {
                          Value stored;
                          TRY(view.get(key, stored));
                          if (!stored.found()) return fs_error::corrupt("the superblock is lost");
                          TRY_ASSIGN(FsSuperblock found, decode<FsSuperblock>(stored.bytes()));
                          found.trash_ms = ms;
                          view.put(key, encode(found), stored);
                          return {};
                        });
}

Result<InodeId> FileSystem::make_trash_hour(const Caller& caller, uint64_t trash_ms) {
  const uint64_t hour = tenant_->map().clock.unix_ms() / trash_hour_ms;
  const Bytes name = trash_hour_name(hour);
  TRY_ASSIGN(const auto seen, see_entry(tenant_->map().engine, keyspace(), trash_inode, name));
  if (seen) return seen->inode;
  TRY_ASSIGN(const uint64_t id, take_id());
  InodeId directory{id};
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.entry(trash_inode, name);
    plan.hold(InodeId{id});
    return plan.charge(trash_inode);
  };
  const auto run = [&](FsChange& change) -> Status {
    directory = InodeId{id};
    TRY_ASSIGN(const auto there, change.entry(trash_inode, name));
    if (there) {
      directory = there->inode;
      return {};
    }
    FsInode made = new_inode({.type = FileType::directory, .mode = 0700}, directory, era_.load(),
                             change.now_ns());
    made.home = trash_inode;
    change.make_inode(directory, made);
    TRY(change.put_entry(trash_inode, name, {directory, made.type, made.generation}));
    change.view().leave_garbage(hour_end_ms(hour) + trash_ms, trash_hour_note(directory, hour), 0);
    return change.count(
        trash_inode, {.inodes = 1, .entries = 1, .directories = 1, .changed_ns = change.now_ns()});
  };
  TRY(change(&caller, plan, run));
  return directory;
}

Status FileSystem::move_to_trash(const Caller& caller, InodeId directory, ByteView name,
                                 const ExpectedFile& expected) {
  TRY(check_file_name(name));
  for (unsigned attempt = 1;; attempt++) {
    Engine& engine = tenant_->map().engine;
    TRY_ASSIGN(const FsSuperblock found, superblock());
    TRY_ASSIGN(const auto parent, see_inode(engine, keyspace(), directory));
    const bool is_in_trash =
        directory == trash_inode || (parent && parent->inode.home == trash_inode);
    if (found.trash_ms == 0 || is_in_trash) return remove_tree(caller, directory, name, expected);
    TRY_ASSIGN(const auto entry, see_entry(engine, keyspace(), directory, name));
    if (!entry) return fs_error::no_entry(name);
    TRY_ASSIGN(const InodeId hour, make_trash_hour(caller, found.trash_ms));
    // The name in the trash is of this file: one that replaced it meanwhile must not get it, nor
    // be unlinked because this one is there already.
    const ExpectedFile seen{expected.inode.value_or(entry->inode), expected.version};
    const Bytes to_name = trash_name({directory, *seen.inode, name});
    Status moved = rename(caller, directory, name, hour, to_name, RenameMode::no_replace, seen);
    // The same name of the same file was removed before: it is there already.
    if (!moved && moved.error().reason == "exists") moved = unlink(caller, directory, name, seen);
    if (moved) return {};
    // The hour was emptied at this moment, or the name is another file's.
    const bool again = moved.error().reason == "stale" ||
                       (moved.error().reason == "condition_failed" && expected.is_any());
    if (!again || attempt == trash_attempts_max) return moved;
  }
}

Result<std::optional<Bytes>> FileSystem::next_trash_hour(const Caller& caller, ByteView after) {
  std::optional<Bytes> hour;
  TRY(list(caller, trash_inode, after, 1, [&](const DirectoryEntry& entry) {
    hour = Bytes(entry.name);
    return Visit::stop;
  }));
  return hour;
}

Result<DirectoryPage> FileSystem::list_trash(const Caller& caller, ByteView after,
                                             size_t entries_max, TrashVisitor visit) {
  auto [hour_view, name] = split_item(after);
  Bytes hour(hour_view);
  Bytes from(name);
  DirectoryPage page;
  // Within the hour of `after`, then hour by hour.
  bool is_new_hour = after.empty();
  for (;;) {
    if (is_new_hour) {
      TRY_ASSIGN(auto next, next_trash_hour(caller, hour));
      if (!next) return page;
      hour = std::move(*next);
      from.clear();
    }
    is_new_hour = true;
    TRY_ASSIGN(const auto directory,
               see_entry(tenant_->map().engine, keyspace(), trash_inode, hour));
    if (!directory) continue;  // emptied meanwhile
    Bytes last;
    bool stopped = false;
    const auto visit_entry = [&](const DirectoryEntry& entry) {
      last = Bytes(entry.name);
      page.entries++;
      const TrashName parsed = parse_trash_name(entry.name)
                                   .value_or(TrashName{InodeId{0}, entry.entry.inode, entry.name});
      stopped = visit({hour, entry.name, parsed.parent, parsed.name, entry.entry}) == Visit::stop;
      return stopped || page.entries == entries_max ? Visit::stop : Visit::go_on;
    };
    auto listed = list(caller, directory->inode, from, entries_max - page.entries, visit_entry);
    if (!listed && listed.error().reason == "stale") continue;
    TRY(listed);
    if (listed->resume) {
      page.resume = hour + '/' + *listed->resume;
      return page;
    }
    if (page.entries >= entries_max) {
      page.resume = hour + '/' + last;
      return page;
    }
  }
}

Result<bool> FileSystem::is_below_root(InodeId directory) {
  for (size_t levels = 0; levels < file_path_bytes_max; levels++) {
    if (directory == root_inode) return true;
    if (directory == trash_inode || directory.value == 0) return false;
    TRY_ASSIGN(const auto seen, see_inode(tenant_->map().engine, keyspace(), directory));
    if (!seen || seen->inode.type != FileType::directory) return false;
    directory = seen->inode.home;
  }
  return false;
}

Result<FileAttributes> FileSystem::restore(const Caller& caller, ByteView item,
                                           std::optional<RestoreTo> to) {
  TRY(tenant_->admit(caller, Access::write, 0));
  const auto [hour, name] = split_item(item);
  TRY(check_file_name(hour));
  TRY(check_file_name(name));
  Engine& engine = tenant_->map().engine;
  TRY_ASSIGN(const auto directory, see_entry(engine, keyspace(), trash_inode, hour));
  if (!directory) return fs_error::no_entry(item);
  if (!to) {
    const auto parsed = parse_trash_name(name);
    if (!parsed) return fs_error::no_entry(item);
    TRY_ASSIGN(const bool is_there, is_below_root(parsed->parent));
    if (!is_there) return parent_gone(parsed->parent);
    to = RestoreTo{parsed->parent, parsed->name};
  }
  TRY(rename(caller, directory->inode, name, to->directory, to->name, RenameMode::no_replace));
  return lookup(caller, to->directory, to->name);
}

Result<size_t> FileSystem::empty_trash(const Caller& caller, uint64_t before_ms) {
  TRY(tenant_->admit(caller, Access::write, 0));  // also if there is nothing to be removed
  size_t emptied = 0;
  Bytes after;
  for (;;) {
    TRY_ASSIGN(auto name, next_trash_hour(caller, after));
    if (!name) return emptied;
    after = std::move(*name);
    const auto hour = parse_trash_hour(after);
    if (hour && hour_end_ms(*hour) > before_ms) continue;
    const Status removed = remove_tree(caller, trash_inode, after);
    if (!removed && removed.error().reason != "no_entry") return removed.error();
    emptied++;
  }
}

Result<bool> FileSystem::collect_trash_hour(const Garbage& note, InodeId directory) {
  if (note.target.size() != trash_hour_note(directory, 0).size())
    return fs_error::corrupt("a note of the trash does not make sense: " + to_hex(note.target));
  const uint64_t hour = load_be(note.target.data() + 9, 8);
  const Bytes name = trash_hour_name(hour);
  TRY_ASSIGN(const FsSuperblock found, superblock());
  // It may be kept for longer by now, and a clock may have been set back.
  const uint64_t due_ms = hour_end_ms(hour) + found.trash_ms;
  const bool is_due = due_ms <= tenant_->map().clock.unix_ms();
  if (!is_due && due_ms <= note.due_ms) return false;
  std::optional<FsEntry> planned;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.entry(trash_inode, name);
    TRY_ASSIGN(planned, plan.see(trash_inode, name));
    if (is_due && planned) TRY(plan_tree_removal(plan, planned->inode));
    return plan.charge(trash_inode);
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY_ASSIGN(const auto entry, change.entry(trash_inode, name));
    if (entry != planned) return plan_outdated();
    change.view().forget_garbage(note.due_ms, note.target);
    if (!entry || entry->inode != directory) return {};  // emptied before
    if (!is_due) {
      change.view().leave_garbage(due_ms, note.target, note.bytes);
      return {};
    }
    TRY(change.remove_entry(trash_inode, name));
    TRY(cut_tree_off(change, trash_inode, directory));
    return change.count(trash_inode,
                        {.entries = -1, .directories = -1, .changed_ns = change.now_ns()});
  };
  TRY(change(nullptr, plan, run));
  return true;
}

}  // namespace trellis
