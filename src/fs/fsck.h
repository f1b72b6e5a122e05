// Checks a file system, and repairs it if told to: while it is used, and while it is not.
//
//   FsckReport report;
//   TRY_ASSIGN(report, fsck(fs, caller, {.repair = true}, control, [&](const FsckFinding& found) {
//     print(found.kind, found.inode, found.what);
//   }));
//   if (!report.clean()) ...
//
// It reads without locks, page by page. What looks wrong is looked at again, and if it still does,
// once more in a transaction that has the file system to itself: only what is wrong there is
// reported, and repaired by that transaction. Memory is bounded: names are counted for a window of
// inodes at a time, blocks for a window of blocks.
//
// A repair loses no content silently: files and directories that have no name get one in
// "lost+found" of the root (inode-N), what is lost of a file is a hole, and its bytes are told.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/job_control.h"
#include "fs/file_system.h"

namespace trellis {

enum class FsckKind : uint8_t {
  superblock_lost,        // or does not decode
  tree_version_lost,      // likewise
  id_over_counter,        // an id that the superblock would give out again
  record_damaged,         // does not decode, or is of no kind; what it was is told in hex
  inode_damaged,          // does not decode
  inode_lost,             // it has records but no inode
  size_wrong,             // of what is inline, or over the limit
  blocks_wrong,           // not as many as are mapped, or one would be used twice
  flags_wrong,            // they do not say what the inode is like
  entry_to_nothing,       // names an inode that is not there
  entry_wrong,            // its type or generation is not the inode's
  entry_of_nothing,       // is in what is no directory
  name_illegal,           // nobody can ask for it
  name_missing,           // of a file or directory that should have one
  directory_named_twice,  //
  directory_circle,       // directories that are in each other
  home_wrong,             // it is counted where it has no name
  links_wrong,            // another number than it has names
  link_lost,              // a further name without its link record
  link_wrong,             // a link record without a name
  figures_wrong,          // of a directory
  extent_damaged,         // does not make sense
  extent_overlaps,        // a block of the file, or of its data, is mapped twice
  block_missing,          // that is mapped
  block_damaged,          // its checksum fails
  block_unused,           // nobody maps it; a crash may leave some, which is no damage
  data_use_wrong,         // how much of shared data an inode maps
  shared_data_wrong,      // how many inodes do
  session_without_end,    // nothing would end it
  held_by_none,           // a held file of no session
  lock_of_none,           // a lock of no session, or of no file
  note_missing,           // nothing would collect it
  note_damaged,           // does not make sense
  counters_wrong,         // the keyspace's, of files
  not_confirmed,          // others change it each time, or it is too large for one look, or damage
                          // is in the way: try it offline
};
inline constexpr size_t fsck_kinds = static_cast<size_t>(FsckKind::not_confirmed) + 1;
std::string_view to_string(FsckKind kind);

struct FsckFinding {
  FsckKind kind;
  InodeId inode = {};      // 0: of none
  InodeId directory = {};  // of an entry
  Bytes name = {};         // of an entry
  std::string what = {};   // for people
  bool repaired = false;
};

struct FsckOptions {
  bool repair = false;
  bool read_blocks = true;  // all content is read, and its checksums with it
  // Nobody else has the file system open, anywhere: blocks of writes that were never finished are
  // found, too.
  bool offline = false;
  size_t window = 1'000'000;  // inodes, or blocks, that are counted at a time
};

struct FsckReport {
  uint64_t inodes = 0;
  uint64_t directories = 0;
  uint64_t entries = 0;
  uint64_t blocks = 0;
  std::array<uint64_t, fsck_kinds> found{};
  std::array<uint64_t, fsck_kinds> repaired{};

  uint64_t count(FsckKind kind) const { return found[static_cast<size_t>(kind)]; }
  // Nothing but what a crash leaves was found.
  bool clean() const;
};

using FsckVisitor = FunctionRef<void(const FsckFinding&)>;

// `control` tells how many bytes of records are done, and cancels. The caller must be allowed to
// write if it repairs.
Result<FsckReport> fsck(FileSystem& fs, const Caller& caller, const FsckOptions& options,
                        JobControl& control, FsckVisitor found);

}  // namespace trellis
