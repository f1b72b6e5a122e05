// What fsck finds of the rest: superblock, inodes that wait to be collected, shared data, blocks
// that nobody maps, sessions, locks, notes, counters; and how edits are made.
#include <algorithm>
#include <utility>

#include "codec/counter_value.h"
#include "fs/content.h"
#include "fs/fsck_look.h"
#include "fs/locks.h"
#include "fs/trash.h"

namespace trellis {
namespace {

constexpr uint64_t rebuilt_trash_ms = 24ull * 3600 * 1000;
// A process may have taken so many ids that nothing is stored of yet.
constexpr uint64_t ids_ahead = 1'000'000;
constexpr size_t held_key_bytes = 22;

Bytes notes_prefix(KeyspaceId keyspace) {
  Bytes prefix = fs_scope_prefix(keyspace, 0).substr(0, 4);
  prefix += 'g';
  return prefix;
}

}  // namespace

Bytes fs_scope_prefix(KeyspaceId keyspace, char scope) {
  Bytes prefix = encode(FsSuperblockKey{keyspace});
  prefix.back() = scope;
  return prefix;
}

std::optional<BlockRange> blocks_of_note(ByteView target) {
  if (target.size() != 25 || target[0] != static_cast<char>(FsNote::blocks)) return std::nullopt;
  return BlockRange{DataId{load_be(target.data() + 1, 8)}, load_be(target.data() + 9, 8),
                    load_be(target.data() + 17, 8)};
}

// --- edits ---

FsckFinding& FsckLook::report(FsckKind kind, InodeId inode, std::string what) {
  return findings_.emplace_back(FsckFinding{.kind = kind, .inode = inode, .what = std::move(what)});
}

FsckFinding& FsckLook::report(FsckKind kind, InodeId inode, InodeId directory, ByteView name,
                              std::string what) {
  FsckFinding& found = report(kind, inode, std::move(what));
  found.directory = directory;
  found.name = Bytes(name);
  return found;
}

bool FsckLook::is_removed(ByteView key) const {
  const auto edit = edits_.find(key);
  return edit != edits_.end() && !edit->second;
}

Result<std::optional<Bytes>> FsckLook::read(ByteView key) {
  if (const auto edit = edits_.find(key); edit != edits_.end()) return edit->second;
  Value stored;
  TRY(source_.get(key, stored));
  return stored.found() ? std::optional(Bytes(stored.bytes())) : std::nullopt;
}

Result<FsckLook::Seen> FsckLook::see(InodeId inode) {
  const Bytes key = encode(FsInodeKey{keyspace_, inode});
  SeenInode seen;
  if (const auto edit = edits_.find(key); edit != edits_.end()) {
    if (!edit->second) return Seen();
    seen.stored.set_borrowed(*edit->second);
  } else {
    TRY(source_.get(key, seen.stored));
  }
  if (!seen.stored.found()) return Seen();
  const auto decoded = decode<FsInode>(seen.stored.bytes());
  if (!decoded) return Seen();
  seen.inode = *decoded;
  return Seen(std::move(seen));
}

void FsckLook::put_inode(InodeId inode, const FsInode& content) {
  Bytes encoded = encode(content);  // before what content.rest refers to goes
  put(encode(FsInodeKey{keyspace_, inode}), std::move(encoded));
}

Status FsckLook::damaged(ByteView key, std::string_view what) {
  TRY_ASSIGN(const auto stored, read(key));
  if (!stored) return {};
  const bool has_inode = key.size() >= fs_inode_key_bytes && key[fs_scope_offset] == 1;
  report(FsckKind::record_damaged, has_inode ? InodeId{fs_id_of(key)} : InodeId{0},
         fmt::format("{} that does not make sense: {} {}", what, to_hex(key), to_hex(*stored)));
  remove(Bytes(key));
  return {};
}

Status FsckLook::apply(CountedView& view) {
  for (const auto& [key, value] : edits_) {
    Value old;
    TRY(view.get(key, old));
    if (!value && !old.found()) continue;
    if (key.size() == fs_inode_key_bytes && key[fs_scope_offset] == 1) {
      const auto was = decode<FsInode>(old.found() ? old.bytes() : "");
      const auto is = decode<FsInode>(value ? ByteView(*value) : "");
      const int64_t blocks =
          static_cast<int64_t>(is ? is->blocks : 0) - static_cast<int64_t>(was ? was->blocks : 0);
      view.count_keys((value ? 1 : 0) - (old.found() ? 1 : 0));
      view.count_outside(blocks * int64_t{block_bytes_max});
    }
    if (value)
      view.put(key, *value, old);
    else
      view.remove(key, old);
  }
  for (const Bytes& note : notes_) view.leave_garbage(world_.now_ms(), note, 0);
  if (missing_counts_.keys != 0) view.count_keys(missing_counts_.keys);
  view.count_outside(missing_counts_.bytes);
  for (const auto& [data, first, end] : doomed_blocks_)
    TRY(world_.engine().blocks().remove(keyspace_, data, first, end));
  const Bytes tree_key = encode(FsTreeKey{keyspace_});
  if (!tree_changes_ || edits_.contains(tree_key)) return {};
  Value stored;
  TRY(view.get(tree_key, stored));
  if (const auto tree = decode<FsTree>(stored.found() ? stored.bytes() : ""))
    view.put(tree_key, encode(FsTree{tree->version + 1}), stored);
  return {};
}

// --- superblock ---

Status FsckLook::superblock(uint64_t id_max) {
  const Bytes key = encode(FsSuperblockKey{keyspace_});
  TRY_ASSIGN(const auto stored, read(key));
  const auto found = decode<FsSuperblock>(stored ? ByteView(*stored) : "");
  if (!found) {
    report(FsckKind::superblock_lost, InodeId{0}, "it is made anew; what is removed is kept a day");
    put(key, encode(FsSuperblock{.era = 1,
                                 .created_ms = world_.now_ms(),
                                 .ids = std::max(id_max, first_free_id) + ids_ahead,
                                 .trash_ms = rebuilt_trash_ms}));
  } else if (found->ids <= id_max) {
    report(FsckKind::id_over_counter, InodeId{0},
           fmt::format("id {} is used, and {} would be given out next", id_max, found->ids));
    FsSuperblock right = *found;
    right.ids = id_max + ids_ahead;
    put(key, encode(right));
  }
  const Bytes tree_key = encode(FsTreeKey{keyspace_});
  TRY_ASSIGN(const auto tree, read(tree_key));
  if (decode<FsTree>(tree ? ByteView(*tree) : "")) return {};
  report(FsckKind::tree_version_lost, InodeId{0}, "it is made anew");
  put(tree_key, encode(FsTree{world_.now_ms()}));  // none that anybody knows
  return {};
}

// --- what waits to be collected ---

Status FsckLook::strike_out(std::set<InodeId>& inodes) {
  RecordCursor notes = RecordCursor::of_prefix(source_, notes_prefix(keyspace_));
  for (;;) {
    TRY_ASSIGN(const bool more, notes.next());
    if (!more || inodes.empty()) break;
    const auto note = decode<GarbageKey>(notes.key());
    if (!note || note->model != Model::fs || note->target.size() < 9) continue;
    const char kind = note->target[0];
    if (kind == static_cast<char>(FsNote::inode) || kind == static_cast<char>(FsNote::tree))
      inodes.erase(InodeId{load_be(note->target.data() + 1, 8)});
  }
  RecordCursor sessions = RecordCursor::of_prefix(source_, fs_scope_prefix(keyspace_, 6));
  for (;;) {
    TRY_ASSIGN(const bool more, sessions.next());
    if (!more || inodes.empty()) return {};
    if (sessions.key().size() != held_key_bytes) continue;
    inodes.erase(InodeId{load_be(sessions.key().data() + fs_inode_key_bytes, 8)});
  }
}

Status FsckLook::unnamed(std::span<const InodeId> inodes) {
  std::set<InodeId> left;
  for (const InodeId inode : inodes) {
    TRY_ASSIGN(const Seen seen, see(inode));
    if (seen && seen->inode.links == 0) left.insert(inode);
  }
  if (left.empty()) return {};
  TRY(strike_out(left));
  for (const InodeId inode : left) {
    TRY_ASSIGN(const bool is_full, has_entries(inode));
    report(FsckKind::note_missing, inode, "it has no name, and nobody is to collect it");
    notes_.push_back(fs_note(is_full ? FsNote::tree : FsNote::inode, inode.value));
  }
  return {};
}

// --- data ---

Status FsckLook::shared_data(DataId data) {
  const Bytes key = encode(FsSharedDataKey{keyspace_, data});
  TRY_ASSIGN(const auto stored, read(key));
  if (!stored) return {};
  const auto users = decode<FsSharedData>(*stored);
  uint64_t counted = 0;
  RecordCursor cursor = RecordCursor::of_prefix(source_, fs_scope_prefix(keyspace_, 1));
  for (;;) {
    TRY_ASSIGN(const bool more, cursor.next());
    if (!more) break;
    const auto use = decode<FsDataUseKey>(cursor.key());
    if (use && use->data == data) counted++;
  }
  if (users && users->inodes == counted) return {};
  report(FsckKind::shared_data_wrong, InodeId{0},
         fmt::format("{} inodes share data {}, {} are counted", counted, data.value,
                     users ? users->inodes : 0));
  if (counted == 0)  // its blocks are those that nobody maps
    remove(key);
  else
    put(key, encode(FsSharedData{counted}));
  return {};
}

Status FsckLook::unused_blocks(std::span<const BlockId> candidates) {
  std::set<BlockId> left(candidates.begin(), candidates.end());
  const auto erase = [&](DataId data, uint64_t first, uint64_t end) {
    left.erase(left.lower_bound({keyspace_, data, first}),
               left.lower_bound({keyspace_, data, end}));
  };
  RecordCursor inodes = RecordCursor::of_prefix(source_, fs_scope_prefix(keyspace_, 1));
  for (;;) {
    TRY_ASSIGN(const bool more, inodes.next());
    if (!more || left.empty()) break;
    const auto extent = decode<FsExtent>(inodes.value());
    if (extent && decode<FsExtentKey>(inodes.key()))
      erase(extent->data, extent->first, extent->first + extent->blocks);
    const auto content = decode<FsInode>(inodes.value());
    // What has no name is given back bit by bit.
    if (content && content->links == 0 && decode<FsInodeKey>(inodes.key()))
      erase(content->data, 0, UINT64_MAX);
  }
  // All of shared data goes with the last who maps some of it.
  RecordCursor shared = RecordCursor::of_prefix(source_, fs_scope_prefix(keyspace_, 5));
  for (;;) {
    TRY_ASSIGN(const bool more, shared.next());
    if (!more || left.empty()) break;
    if (const auto data = decode<FsSharedDataKey>(shared.key())) erase(data->data, 0, UINT64_MAX);
  }
  RecordCursor notes = RecordCursor::of_prefix(source_, notes_prefix(keyspace_));
  for (;;) {
    TRY_ASSIGN(const bool more, notes.next());
    if (!more || left.empty()) break;
    const auto note = decode<GarbageKey>(notes.key());
    if (!note || note->model != Model::fs) continue;
    if (const auto range = blocks_of_note(note->target))
      erase(range->data, range->first, range->end);
  }
  for (const BlockId& block : left) {
    const BlockId next{block.keyspace, block.data, block.index + 1};
    TRY_ASSIGN(const BlockPage page, world_.engine().blocks().list(block, next, 1));
    if (page.blocks.empty()) continue;
    report(FsckKind::block_unused, InodeId{0},
           fmt::format("nobody maps block {} of data {}", block.index, block.data.value));
    if (!world_.latched() && !world_.options.offline) continue;  // somebody may be about to
    doomed_blocks_.push_back({block.data, block.index, block.index + 1});
  }
  return {};
}

// --- sessions, locks, notes ---

Result<bool> FsckLook::session_is_there(SessionId session) {
  TRY_ASSIGN(const auto stored, read(encode(FsSessionKey{keyspace_, session})));
  return stored.has_value();
}

Status FsckLook::session(SessionId session) {
  const Bytes key = encode(FsSessionKey{keyspace_, session});
  TRY_ASSIGN(const auto stored, read(key));
  if (!stored) return {};
  use_id(session.value);
  const auto found = decode<FsSession>(*stored);
  if (!found) return damaged(key, "a session");
  RecordCursor notes = RecordCursor::of_prefix(source_, notes_prefix(keyspace_));
  for (;;) {
    TRY_ASSIGN(const bool more, notes.next());
    if (!more) break;
    const auto note = decode<GarbageKey>(notes.key());
    if (note && note->model == Model::fs && note->target == fs_note(FsNote::session, session.value))
      return {};
  }
  report(FsckKind::session_without_end, InodeId{0},
         fmt::format("session {} would never end", session.value));
  notes_.push_back(fs_note(FsNote::session, session.value));
  return {};
}

Status FsckLook::held(ByteView key) {
  TRY_ASSIGN(const auto stored, read(key));
  if (!stored) return {};
  const auto held = decode<FsOpenUnlinkedKey>(key);
  if (!held) return damaged(key, "a file of a session");
  TRY_ASSIGN(const bool is_there, session_is_there(held->session));
  // Of a file that is not there any more it goes with the session: a close may have failed.
  if (is_there) return {};
  report(FsckKind::held_by_none, held->inode,
         fmt::format("session {} holds it, which is not there", held->session.value));
  remove(Bytes(key));
  return {};
}

Status FsckLook::locks(ByteView key) {
  TRY_ASSIGN(const auto stored, read(key));
  if (!stored) return {};
  const auto place = decode<FsLockKey>(key);
  auto locks = LockList::decode(*stored);
  if (!place || !locks) return damaged(key, "locks");
  TRY_ASSIGN(const auto file, read(encode(FsInodeKey{keyspace_, place->inode})));
  if (!file) {
    report(FsckKind::lock_of_none, place->inode, "locks of a file that is not there");
    remove(Bytes(key));
    return {};
  }
  std::set<SessionId> gone;
  for (const FsLock& lock : locks->locks()) {
    if (gone.contains(lock.session)) continue;
    TRY_ASSIGN(const bool is_there, session_is_there(lock.session));
    if (!is_there) gone.insert(lock.session);
  }
  for (const SessionId session : gone) {
    report(FsckKind::lock_of_none, place->inode,
           fmt::format("locked by session {}, which is not there", session.value));
    locks->drop(session);
  }
  if (gone.empty()) return {};
  if (locks->locks().empty())
    remove(Bytes(key));
  else
    put(Bytes(key), locks->encode());
  return {};
}

Status FsckLook::note(ByteView key) {
  TRY_ASSIGN(const auto stored, read(key));
  const auto note = decode<GarbageKey>(key);
  if (!stored || !note || note->model != Model::fs) return {};
  constexpr ByteView kinds = "bdist";
  const ByteView target = note->target;
  const bool makes_sense = target.size() >= 9 && kinds.find(target[0]) != ByteView::npos &&
                           (target[0] != 'b' || blocks_of_note(target)) &&
                           (target[0] != 't' || target.size() == trash_hour_note({}, 0).size()) &&
                           decode_garbage_value(*stored);
  if (makes_sense) return {};
  report(FsckKind::note_damaged, InodeId{0}, "a note that makes no sense: " + to_hex(target));
  remove(Bytes(key));
  return {};
}

Status FsckLook::trash() {
  std::map<InodeId, uint64_t> hours;
  const Bytes prefix = encode(FsEntryKey{keyspace_, trash_inode, {}});
  RecordCursor entries = RecordCursor::of_prefix(source_, prefix);
  for (;;) {
    TRY_ASSIGN(const bool more, entries.next());
    if (!more) break;
    const auto hour = parse_trash_hour(entries.key().substr(prefix.size()));
    const auto entry = decode<FsEntry>(entries.value());
    if (hour && entry) hours.emplace(entry->inode, *hour);
  }
  RecordCursor notes = RecordCursor::of_prefix(source_, notes_prefix(keyspace_));
  for (;;) {
    TRY_ASSIGN(const bool more, notes.next());
    if (!more || hours.empty()) break;
    const auto note = decode<GarbageKey>(notes.key());
    if (note && note->model == Model::fs && note->target.size() >= 9 &&
        note->target[0] == static_cast<char>(FsNote::trash_hour))
      hours.erase(InodeId{load_be(note->target.data() + 1, 8)});
  }
  for (const auto& [directory, hour] : hours) {
    report(FsckKind::note_missing, directory, "an hour of the trash that would never be emptied");
    notes_.push_back(trash_hour_note(directory, hour));
  }
  return {};
}

// --- counters ---

Status FsckLook::counters() {
  Figures right;
  const auto count = [&](const Bytes& prefix) -> Status {
    RecordCursor cursor = RecordCursor::of_prefix(source_, prefix);
    for (;;) {
      TRY_ASSIGN(const bool more, cursor.next());
      if (!more) return {};
      const auto entry = counted(cursor.key(), cursor.value());
      if (!entry || entry->model != Model::fs) continue;
      right.bytes += entry->figures.bytes;
      right.keys += entry->figures.keys;
    }
  };
  TRY(count(fs_scope_prefix(keyspace_, 0).substr(0, fs_scope_offset)));
  TRY(count(notes_prefix(keyspace_)));
  // Last, and not in the view, which is to add to them: who changed them since changed more.
  Figures stored;
  const Bytes prefix = encode(CounterKey{keyspace_, Model::fs, CounterName::bytes, 0}).substr(0, 6);
  Status bad;
  TRY(world_.engine().scan(
      {.begin = prefix, .end = prefix_end(prefix)}, [&](ByteView key, ByteView value) {
        const auto counter = decode<CounterKey>(key);
        const auto number = decode_counter_value(value);
        if (counter && number)
          (counter->counter == CounterName::bytes ? stored.bytes : stored.keys) += *number;
        return Visit::go_on;
      }));
  if (stored == right) return {};
  report(FsckKind::counters_wrong, InodeId{0},
         fmt::format("there are {} bytes and {} inodes, the counters say {} and {}", right.bytes,
                     right.keys, stored.bytes, stored.keys));
  missing_counts_ = {.bytes = right.bytes - stored.bytes, .keys = right.keys - stored.keys};
  return {};
}

}  // namespace trellis
