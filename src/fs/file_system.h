// A file system: the one of a keyspace, by inode numbers, as a kernel asks for it.
//
//   TRY_ASSIGN(auto made, fs.make(caller, root_inode, "notes", {.type = FileType::regular}));
//   TRY(fs.write(caller, made.inode, 0, "hello"));
//   TRY_ASSIGN(auto found, fs.lookup(caller, root_inode, "notes"));
//
// Every call is one transaction (content of more than a few MiB: one for each piece), and holds
// what it promises at every instant: link counts, figures of directories and quotas are exact.
// docs/decisions/0008-files.md says how. Paths are in files.h.
//
// Errors: what Tenant says, and the reasons of fs_error.h, each with the errno that it stands for.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/function_ref.h"
#include "codec/fs_values.h"
#include "fs/lock_waits.h"
#include "fs/open_files.h"
#include "tenant/collector.h"
#include "tenant/tenant.h"

namespace trellis {

class Content;
class FsChange;
class FsPlan;
struct FreshBlocks;

inline constexpr InodeId root_inode{1};
inline constexpr InodeId trash_inode{2};  // its entries are what was removed of one hour each
inline constexpr uint64_t first_free_id = 16;

constexpr size_t file_name_bytes_max = 255;
constexpr size_t file_path_bytes_max = 4096;
constexpr uint64_t file_size_max = INT64_MAX;
constexpr uint32_t file_links_max = 65'000;
constexpr size_t symlink_bytes_max = 4095;
constexpr size_t inline_bytes_max = 4096;
constexpr size_t directory_page_bytes = 1024 * 1024;

struct FileAttributes {
  InodeId inode;
  FileType type = FileType::regular;
  uint16_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t links = 0;  // of a directory: 2 and one for each directory in it
  uint32_t generation = 0;
  uint64_t size = 0;   // of a directory: its entries
  uint64_t space = 0;  // bytes of blocks
  uint64_t device = 0;
  uint64_t version = 0;  // changes with content and attributes
  int64_t accessed_ns = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  int64_t born_ns = 0;
  InodeId parent;  // of a directory; of others one of their directories
  bool operator==(const FileAttributes&) const = default;
};

struct NewFile {
  FileType type = FileType::regular;
  uint16_t mode = 0644;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t device = 0;    // of devices
  uint16_t umask = 0;     // bits that are taken from mode, unless the directory has a default ACL
  ByteView target = {};   // of a symlink
  ByteView content = {};  // of a regular file, up to inline_bytes_max
};

struct AttributePatch {
  std::optional<uint16_t> mode = {};
  std::optional<uint32_t> uid = {};
  std::optional<uint32_t> gid = {};
  std::optional<uint64_t> size = {};
  std::optional<int64_t> accessed_ns = {};
  std::optional<int64_t> modified_ns = {};
};

enum class RenameMode : uint8_t { replace, no_replace, exchange };

struct DirectoryEntry {
  ByteView name;  // dies when the visitor returns
  FsEntry entry;
};
// A visitor must not call the file system.
using EntryVisitor = FunctionRef<Visit(const DirectoryEntry&)>;
struct DirectoryPage {
  size_t entries = 0;
  std::optional<Bytes> resume;  // set if there may be more: the next page's `after`
};

// What is below a directory, it not included; of another file its own.
struct TreeFigures {
  uint64_t space = 0;
  uint64_t length = 0;  // modulo 2^64: sparse files may have more
  uint64_t inodes = 0;
};

struct FileSystemFigures {
  TreeFigures used;  // trash included
  TreeFigures trash;
};

struct FallocateMode {
  enum class Kind : uint8_t { allocate, punch_hole, zero, collapse, insert };
  Kind kind = Kind::allocate;
  bool keep_size = false;
};

// What a name must stand for, if it was decided by a look at it: else reason condition_failed.
struct ExpectedFile {
  std::optional<InodeId> inode = {};
  std::optional<uint64_t> version = {};  // of anything but a directory
  bool is_any() const { return !inode && !version; }
};

struct FileSystemOptions {
  uint32_t ids_reserved = 4096;  // at a time
  uint64_t session_ms = 60'000;  // a client that is not heard of for so long is gone
};

// Any thread.
class FileSystem {
 public:
  // Makes it if there is none in the keyspace.
  static Result<std::shared_ptr<FileSystem>> open(std::shared_ptr<Tenant> tenant,
                                                  FileSystemOptions options = {});

  // --- names (names.cc, rename.cc, removal.cc) ---
  Result<FileAttributes> lookup(const Caller& caller, InodeId directory, ByteView name);
  Result<FileAttributes> make(const Caller& caller, InodeId directory, ByteView name,
                              const NewFile& file);
  Result<FileAttributes> link(const Caller& caller, InodeId inode, InodeId directory,
                              ByteView name);
  // Anything but a directory; remove_directory: only an empty one.
  Status unlink(const Caller& caller, InodeId directory, ByteView name,
                const ExpectedFile& expected = {});
  Status remove_directory(const Caller& caller, InodeId directory, ByteView name);
  // With all that is in it, at once whatever that is: the collector takes it away. What else a
  // name may be is unlinked.
  Status remove_tree(const Caller& caller, InodeId directory, ByteView name,
                     const ExpectedFile& expected = {});
  Status rename(const Caller& caller, InodeId from, ByteView from_name, InodeId to,
                ByteView to_name, RenameMode mode = RenameMode::replace,
                const ExpectedFile& expected = {});
  // In the order of names (bytes), those behind `after`; each page of one instant.
  Result<DirectoryPage> list(const Caller& caller, InodeId directory, ByteView after,
                             size_t entries_max, EntryVisitor visit);
  Result<Bytes> read_link(const Caller& caller, InodeId inode);

  // --- attributes (attributes.cc) ---
  Result<FileAttributes> stat(const Caller& caller, InodeId inode);
  // Of several at one instant; absent: it is not there.
  Result<std::vector<std::optional<FileAttributes>>> stat_many(const Caller& caller,
                                                               std::span<const InodeId> inodes);
  Result<FileAttributes> set_attributes(const Caller& caller, InodeId inode,
                                        const AttributePatch& patch);
  Result<TreeFigures> tree_figures(const Caller& caller, InodeId inode);
  Result<FileSystemFigures> figures(const Caller& caller);
  Result<std::optional<FsQuota>> quota(const Caller& caller, InodeId directory);
  // Whether so much more space is within the quotas of the directory and of those above it, as of
  // now: for what is only counted there when it is complete. Reason: directory_quota_exceeded.
  Status check_quotas(InodeId directory, uint64_t space);
  // 0 and 0: none.
  Status set_quota(const Caller& caller, InodeId directory, FsQuota quota);

  // --- content (content.cc, fallocate.cc, clone.cc) ---
  // Up to the end of the file.
  Result<size_t> read(const Caller& caller, InodeId inode, uint64_t offset, std::span<char> into);
  // All of it or an error; if it has more than one piece, those before the error are written.
  Status write(const Caller& caller, InodeId inode, uint64_t offset, ByteView bytes);
  // At the end, wherever that is; where it was. Of another version: reason condition_failed.
  Result<uint64_t> append(const Caller& caller, InodeId inode, ByteView bytes,
                          std::optional<uint64_t> version_expected = {});
  Status fallocate(const Caller& caller, InodeId inode, FallocateMode mode, uint64_t offset,
                   uint64_t size);
  // The first byte of data, or of a hole, from offset on. Reason no_such_offset: there is none.
  Result<uint64_t> seek_data(const Caller& caller, InodeId inode, uint64_t offset);
  Result<uint64_t> seek_hole(const Caller& caller, InodeId inode, uint64_t offset);
  // Whole blocks are shared, the rest is copied. size 0: to the end. How much it was.
  Result<uint64_t> copy_range(const Caller& caller, InodeId from, uint64_t from_offset, InodeId to,
                              uint64_t to_offset, uint64_t size);

  // --- extended attributes, ACLs among them (xattrs.cc) ---
  // Reasons: no_attribute, exists, attribute_too_large, attributes_full, not_permitted. An ACL that
  // is set changes the mode, as chmod changes the ACL.
  enum class XattrMode : uint8_t { set, create, replace };
  Result<Bytes> get_xattr(const Caller& caller, InodeId inode, ByteView name);
  Status set_xattr(const Caller& caller, InodeId inode, ByteView name, ByteView value,
                   XattrMode mode = XattrMode::set);
  Status remove_xattr(const Caller& caller, InodeId inode, ByteView name);
  Result<std::vector<Bytes>> list_xattrs(const Caller& caller, InodeId inode);
  // What the calls above neither show nor let anybody change. Absent: there is none; it goes.
  // REQUIRES: the name begins with "trellis.".
  Result<std::optional<Bytes>> hidden_xattr(const Caller& caller, InodeId inode, ByteView name);
  Status set_hidden_xattr(const Caller& caller, InodeId inode, ByteView name,
                          std::optional<ByteView> value);

  // --- sessions and open files (sessions.cc) ---
  // A client: what it has open and locked is given back when it ends, or is not heard of for
  // session_ms. A clock that jumps ahead may end it early, one that is set back lets it live on.
  Result<SessionId> begin_session(const Caller& caller, std::string_view client);
  // Reason, here and below: session_gone. That is for ever: what it held may be somebody else's.
  Status renew_session(const Caller& caller, SessionId session);
  // No error if it is over already.
  Status end_session(const Caller& caller, SessionId session);
  // A file that is open stays when its last name is removed, until it is closed as often.
  Status open_file(const Caller& caller, SessionId session, InodeId inode);
  // With the last one of the session its locks of the file go. After an error it is closed all the
  // same, and what is stored of it goes with the session.
  Status close_file(const Caller& caller, SessionId session, InodeId inode);
  // Of one that was made without a name, and has none: nobody else can have read it, and all of it
  // goes at once. As close_file if it has one.
  Status discard_unnamed(const Caller& caller, SessionId session, InodeId inode);
  // A file without a name, open in the session, as one that is made in the directory: for what is
  // to appear complete (adopt). It is counted nowhere until then.
  Result<FileAttributes> make_unnamed(const Caller& caller, SessionId session, InodeId directory,
                                      const NewFile& file);
  // Gives it a name, in place of the file that has it; it stays open. Reasons: exists,
  // condition_failed, is_a_directory, stale.
  struct Adoption {
    bool replace = true;
    ExpectedFile expected = {};  // of the file that has the name
  };
  Result<FileAttributes> adopt(const Caller& caller, SessionId session, InodeId inode,
                               InodeId directory, ByteView name, const Adoption& how);

  // --- locks (locks.cc) ---
  // Each kind by itself: one sees nothing of the other. Those of flock are always of all bytes.
  enum class LockKind : uint8_t { flock, posix };
  // In place of what the owner has locked of these bytes. Waits until it can be had, for up to
  // wait_ms. Reasons: would_block, deadlock (of POSIX locks that this process waits for),
  // too_many_locks, not_open. REQUIRES: first <= last.
  Status lock(const Caller& caller, InodeId inode, LockKind kind, FsLock wanted,
              uint64_t wait_ms = 0);
  // What the owner has locked of these bytes.
  Status unlock(const Caller& caller, InodeId inode, LockKind kind, FsLock range);
  // A lock for which `wanted` would have to wait; absent: there is none.
  Result<std::optional<FsLock>> test_lock(const Caller& caller, InodeId inode, LockKind kind,
                                          FsLock wanted);

  // --- trash (trash.cc) ---
  // How long what is removed stays; 0: there is no trash.
  Result<uint64_t> trash_ms(const Caller& caller);
  Status set_trash_ms(const Caller& caller, uint64_t ms);
  // Whatever it is, with all that is in it. For good if there is no trash, or it is there already.
  Status move_to_trash(const Caller& caller, InodeId directory, ByteView name,
                       const ExpectedFile& expected = {});
  struct TrashEntry {  // the views die when the visitor returns
    ByteView hour;     // YYYYMMDDHH in UTC; hour/stored_name is what restore() takes
    ByteView stored_name;
    InodeId parent;  // where it was
    ByteView name;   // what it was called; very long ones are cut
    FsEntry entry;
  };
  using TrashVisitor = FunctionRef<Visit(const TrashEntry&)>;
  // In the order of hours and names, from behind `after`: what a page's `resume` said.
  Result<DirectoryPage> list_trash(const Caller& caller, ByteView after, size_t entries_max,
                                   TrashVisitor visit);
  struct RestoreTo {
    InodeId directory;
    ByteView name;
  };
  // To where it was, or elsewhere. Reasons: no_entry, exists, parent_gone.
  Result<FileAttributes> restore(const Caller& caller, ByteView item,
                                 std::optional<RestoreTo> to = {});
  // Of hours that were over by then. How many.
  Result<size_t> empty_trash(const Caller& caller, uint64_t before_ms = UINT64_MAX);

  Tenant& tenant() { return *tenant_; }
  const FileSystemOptions& options() const { return options_; }
  KeyspaceId keyspace() const { return tenant_->id(); }

  // --- for the collector (collect.cc) ---
  Result<size_t> collect(std::span<const Garbage> notes);

  // For fsck: one at a time is enough. False: one is under way.
  bool begin_fsck() { return !is_checked_.exchange(true); }
  void end_fsck() { is_checked_ = false; }

  // For fsck: those that were taken from a counter that was wrong may be in use.
  void forget_ids();

 private:
  friend class FsChange;
  friend class FsPlan;

  FileSystem(std::shared_ptr<Tenant> tenant, FileSystemOptions options)
      : tenant_(std::move(tenant)), options_(options) {}

  // Plans and runs a change (change.h), again if what was planned with has changed meanwhile.
  // Without a caller: the collector's.
  Status change(const Caller* caller, FunctionRef<Status(FsPlan&)> plan,
                FunctionRef<Status(FsChange&)> run);
  Result<uint64_t> take_id();
  Result<FsSuperblock> superblock();
  int64_t now_ns() const;
  Result<FileAttributes> attributes(InodeId inode);
  Result<FsFigures> see_figures(InodeId directory);
  // For messages: its path, or its number if names cannot be found with few reads.
  std::string describe_directory(InodeId directory);
  static void add_figures(FileAttributes& directory, const FsFigures& figures);
  // Whether the note is gone.
  Result<bool> collect_note(const Garbage& note);
  Result<bool> collect_tree(const Garbage& note, InodeId tree);
  Result<bool> collect_entries(InodeId tree);
  Result<bool> collect_blocks(const Garbage& note);                // content.cc
  Result<bool> collect_inode(const Garbage& note, InodeId inode);  // content.cc
  Result<bool> leave_to_holder(const Garbage& note, InodeId inode, SessionId session);
  Result<bool> collect_session(const Garbage& note, SessionId session);  // sessions.cc
  Result<bool> collect_trash_hour(const Garbage& note, InodeId hour);    // trash.cc
  void orphan_tree(FsChange& change, InodeId inode, FsInode& directory);
  // An empty directory that lost its name.
  Status drop_directory(FsChange& change, InodeId inode, FsInode& directory);
  // What a name stood for goes, because something of that type gets it. Its entry, and that it is
  // not counted as one, are the caller's. Reasons: not_empty, is_a_directory, not_a_directory.
  Status plan_replacing(FsPlan& plan, InodeId directory, ByteView name, const FsEntry& old);
  Status replace_entry(FsChange& change, InodeId directory, ByteView name, const FsEntry& old,
                       FileType by);
  // Of what is in [offset, end), or behind the size. Whether that is sure to change what the file
  // counts for; else it is planned anew if it does.
  Status change_content(const Caller& caller, InodeId inode, uint64_t offset, uint64_t end,
                        bool charges, FunctionRef<Status(Content&)> edit);
  Result<uint64_t> seek(const Caller& caller, InodeId inode, uint64_t offset, bool for_data);
  Result<uint64_t> share_piece(const Caller& caller, InodeId from, uint64_t from_offset, InodeId to,
                               uint64_t to_offset, uint64_t size);
  Result<uint64_t> copy_hole(const Caller& caller, InodeId to, uint64_t offset, uint64_t size);
  Result<uint64_t> copy_piece(const Caller& caller, InodeId from, uint64_t from_offset, InodeId to,
                              uint64_t to_offset, uint64_t size);
  Status remove_unmapped(InodeId inode, const FreshBlocks& fresh, const Error& error);
  Result<size_t> read_piece(InodeId inode, uint64_t offset, std::span<char> into);
  // Where a directory is, if the tree has that version; absent: it is not there.
  struct Place {
    InodeId parent;  // 0: none, it is a root or was removed
    bool has_quota;
  };
  Result<std::optional<Place>> place(InodeId directory, uint64_t tree_version);
  uint64_t known_tree_version();
  void learn_tree_version(uint64_t version);

  Result<InodeId> make_trash_hour(const Caller& caller, uint64_t trash_ms);
  Result<std::optional<Bytes>> next_trash_hour(const Caller& caller, ByteView after);
  // As of now: not in the trash, nor removed.
  Result<bool> is_below_root(InodeId directory);
  Result<std::optional<Bytes>> see_xattr(const Caller& caller, InodeId inode, ByteView name);
  // Without a value it goes.
  Status change_xattr(const Caller& caller, InodeId inode, ByteView name,
                      std::optional<ByteView> value, XattrMode mode);
  // What sessions do is written whatever role they have, and though a quota is full.
  Status keep_books(const Caller& caller, const Scope& scope, FunctionRef<Status(CountedView&)> fn);
  // Whether the session is over now, because it is not there, has expired or must end.
  Result<bool> mark_over(SessionId session, bool must_end);
  // What a session that is over holds, up to so many files. Whether that was all.
  Result<bool> drop_all_held(SessionId session, size_t files_max);
  // REQUIRES, to do something: the session has it open no more.
  // The note that is left for the collector, if one is.
  Result<std::optional<Garbage>> drop_held(SessionId session, InodeId inode);
  static Status check_expected(FsChange& change, const std::optional<FsEntry>& there,
                               const ExpectedFile& expected);
  // Who has it, if it is locked; `gone`: sessions that seem to be.
  Result<std::optional<FsLock>> try_lock(InodeId inode, LockKind kind, const FsLock& wanted,
                                         std::span<const SessionId> gone);
  Result<std::optional<FsLock>> lock_over_gone(InodeId inode, LockKind kind, const FsLock& wanted);
  Result<bool> is_gone(SessionId session);
  Result<std::string> name_of_holder(const FsLock& lock);

  const std::shared_ptr<Tenant> tenant_;
  const FileSystemOptions options_;
  std::atomic<bool> is_checked_{false};
  OpenFiles open_files_;
  LockWaits lock_waits_;

  std::mutex ids_mutex_;
  uint64_t next_id_ = 0;
  uint64_t ids_end_ = 0;
  std::atomic<uint32_t> era_{1};  // as of the ids that were taken last

  // Sessions of earlier lives of this process, which open_files_ knows nothing of: there may be
  // some, whose ids are below what was not given out then.
  Status look_for_strangers();
  uint64_t strangers_below_ = UINT64_MAX;  // set when it is opened
  std::atomic<bool> has_strangers_{true};
  // Of inodes below it there may be blocks that they know nothing of: of writes that a crash cut
  // off, or that failed and could not be taken back.
  std::atomic<uint64_t> leftovers_below_{UINT64_MAX};

  // As of the tree's version that was known last. It is seen before the tree is held, perhaps in
  // the middle of a move; a change that then finds another version is planned anew.
  static constexpr size_t places_max = 100'000;
  std::shared_mutex places_mutex_;
  uint64_t places_version_ = 0;
  std::unordered_map<InodeId, Place> places_;
};

}  // namespace trellis
