// One look at one thing of a file system: what is wrong with it, and which edits make it right.
//
//   FsckLook look(source, ...);        // the map, or a transaction
//   TRY(look.inode(inode));
//   for (const FsckFinding& found : look.findings()) ...
//   TRY(look.apply(view));             // in the transaction that it looked in
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "fs/block_map.h"
#include "fs/change.h"
#include "fs/fsck.h"
#include "fs/fsck_source.h"
#include "fs/names.h"

namespace trellis {

// What all looks of a run know.
struct FsckWorld {
  FileSystem& fs;
  KeyspaceId keyspace;
  const FsckOptions& options;
  JobControl& control;
  InodeId lost_found = {};  // 0: there is none yet

  Engine& engine() const { return fs.tenant().map().engine; }
  bool latched() const { return fs.tenant().map().latched(); }
  uint64_t now_ms() const { return fs.tenant().map().clock.unix_ms(); }
  int64_t now_ns() const { return fs.tenant().map().clock.unix_ns(); }
};

// Keys of files begin with | 'x' | keyspace u24 | 'f' | scope |.
constexpr size_t fs_scope_offset = 5;
constexpr size_t fs_inode_key_bytes = 14;
Bytes fs_scope_prefix(KeyspaceId keyspace, char scope);
// Of any key with an inode, data id or directory behind its scope. REQUIRES: it is so long.
inline uint64_t fs_id_of(ByteView key) { return load_be(key.data() + fs_scope_offset + 1, 8); }

// Blocks [first, end) of one data id.
struct BlockRange {
  DataId data;
  uint64_t first;
  uint64_t end;
};
// Of a note 'b'; absent: it is none.
std::optional<BlockRange> blocks_of_note(ByteView target);

class FsckLook {
 public:
  // `before`: an earlier look at the same thing; of content only what was wrong then is read again.
  FsckLook(const FsckWorld& world, FsckSource& source, const FsckLook* before = nullptr)
      : world_(world), source_(source), keyspace_(world.keyspace), before_(before) {}

  // The superblock and the tree's version. id_max: the largest id that is used.
  Status superblock(uint64_t id_max);
  // The records of an inode; those of a directory's entries are directory()'s.
  Status inode(InodeId inode);
  // Entries, figures, and that it is in the tree.
  Status directory(InodeId inode);
  // Whether it has as many names as it says, where it says.
  Status names(InodeId inode);
  // Entries of what is no directory.
  Status entries_of(InodeId parent);
  // Of these inodes, which have no names, those that nobody will collect.
  Status unnamed(std::span<const InodeId> inodes);
  Status shared_data(DataId data);
  // Blocks that nobody maps, of those that are so.
  Status unused_blocks(std::span<const BlockId> candidates);
  Status session(SessionId session);
  Status held(ByteView key);
  Status locks(ByteView key);
  Status note(ByteView key);
  // That every hour of it is to be emptied.
  Status trash();
  Status counters();
  // A record that makes no sense, if it is there.
  Status damaged(ByteView key, std::string_view what);

  const std::vector<FsckFinding>& findings() const { return findings_; }
  // Whether inode() saw link records that cannot be all: names() should look.
  bool names_doubtful() const { return names_doubtful_; }
  bool needs_lost_found() const { return needs_lost_found_; }
  uint64_t id_max() const { return id_max_; }
  // Whose figures may be others once the edits are made.
  const std::set<InodeId>& to_recount() const { return to_recount_; }
  // REQUIRES: the view has the file system to itself, and the source is it.
  Status apply(CountedView& view);

 private:
  struct Records;  // of an inode
  struct Children;
  using Seen = std::optional<SeenInode>;

  FsckFinding& report(FsckKind kind, InodeId inode, std::string what);
  FsckFinding& report(FsckKind kind, InodeId inode, InodeId directory, ByteView name,
                      std::string what);
  // What is stored, with the edits on top.
  Result<std::optional<Bytes>> read(ByteView key);
  Result<Seen> see(InodeId inode);  // absent, too, if it does not decode
  bool is_removed(ByteView key) const;
  void put(Bytes key, Bytes value) { edits_[std::move(key)] = std::move(value); }
  void put_inode(InodeId inode, const FsInode& content);
  void remove(Bytes key) { edits_[std::move(key)] = std::nullopt; }
  void use_id(uint64_t id) { id_max_ = std::max(id_max_, id); }

  Status take_record(Records& records, ByteView key, ByteView value);
  void take_extent(Records& records, ByteView key, ByteView value);
  Status take_link(Records& records, ByteView key, ByteView value);
  Status finish_inode(Records& records);
  Result<FsInode> rebuild(Records& records);
  Status check_regular(Records& records, FsInode& right);
  void check_inline(Records& records, FsInode& right);
  void check_other(Records& records, FsInode& right);
  void check_directory_record(Records& records, FsInode& right);
  Status check_extents(Records& records, FsInode& right);
  void check_own_blocks(Records& records, const FsInode& right);
  Status check_blocks(Records& records);
  Status check_stored(Records& records, const FileExtent& extent);
  Status check_each(Records& records, const FileExtent& extent);
  Status read_content(Records& records, const FileExtent& extent);
  void cut(Records& records, FsckKind kind, uint64_t begin, uint64_t end, std::string_view why);
  void store_extents(Records& records);
  Status check_uses(Records& records, FsInode& right);

  Status take_children(Children& children);
  Status check_child(Children& children, size_t at);
  Status check_child_directory(Children& children, size_t at, FsInode& child);
  Status check_child_file(Children& children, size_t at, FsInode& child);
  Status check_figures(Children& children);
  Status check_chain(InodeId directory);
  // Names in its home that have no link record, up to a few, and how many.
  Result<std::vector<Bytes>> names_at(InodeId directory, InodeId inode);
  Result<bool> has_name_at(InodeId directory, InodeId inode);
  Status give_name(InodeId inode, FsInode& content);
  Result<bool> is_directory(InodeId inode);
  Result<bool> has_entries(InodeId inode);
  // Whether a note or a session has them; those are taken out.
  Status strike_out(std::set<InodeId>& inodes);
  Result<bool> session_is_there(SessionId session);

  const FsckWorld& world_;
  FsckSource& source_;
  const KeyspaceId keyspace_;
  const FsckLook* const before_;
  std::vector<FsckFinding> findings_;
  std::map<Bytes, std::optional<Bytes>, std::less<>> edits_;
  std::vector<Bytes> notes_;  // to be left
  std::vector<BlockRange> doomed_blocks_;
  std::vector<std::pair<uint64_t, uint64_t>> bad_blocks_;  // of the file: [first, end)
  std::set<InodeId> to_recount_;
  bool names_doubtful_ = false;
  bool needs_lost_found_ = false;
  bool tree_changes_ = false;
  uint64_t id_max_ = 0;
  Figures missing_counts_;  // what the counters lack
};

}  // namespace trellis
