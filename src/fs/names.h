// What a name may be, and how inodes get and lose names within a change.
#pragma once

#include "fs/change.h"

namespace trellis {

// 1 to 255 bytes of anything but '/' and NUL, and neither "." nor "..". Reasons: illegal_name,
// name_too_long.
Status check_file_name(ByteView name);

// Reasons: invalid_argument, name_too_long.
Status check_new_file(const NewFile& file);
// With one link, and no home yet.
FsInode new_inode(const NewFile& file, InodeId inode, uint32_t era, int64_t now_ns);

FileAttributes attributes_of(InodeId inode, const FsInode& stored);

// What a file that is no directory counts for where it is at home.
inline FsFigures figures_of(const FsInode& file) {
  return {.space = static_cast<int64_t>(file.blocks * block_bytes_max),
          .length = static_cast<int64_t>(file.type == FileType::regular ? file.size : 0),
          .inodes = 1};
}
inline FsFigures negative(const FsFigures& figures) {
  return {.space = -figures.space,
          .length = static_cast<int64_t>(-static_cast<uint64_t>(figures.length)),
          .inodes = -figures.inodes,
          .entries = -figures.entries,
          .directories = -figures.directories};
}

// --- losing a name (removal.cc) ---

// What removing the entry `name` of `directory`, which names `inode`, needs: the inode, and where
// its figures are or go to. The entry itself is the caller's.
Status plan_name_removal(FsPlan& plan, const OpenFiles& open_files, InodeId directory,
                         ByteView name, InodeId inode);
// The inode loses that name, its figures and links are right, and if it was the last one the inode
// goes: at once, by the collector, or when it is closed. Entry and figures of the entry are the
// caller's. REQUIRES: it is no directory.
Status remove_name(FsChange& change, const OpenFiles& open_files, InodeId directory, ByteView name,
                   InodeId inode);
// The collector shall take what is left of an inode without names.
Status leave_inode(FsChange& change, InodeId inode, const FsInode& stored);

// A directory with everything in it is cut off: as the entry of `directory` that is about to go.
Status plan_tree_removal(FsPlan& plan, InodeId tree);
Status cut_tree_off(FsChange& change, InodeId parent, InodeId tree);

// Notes for the collector: | kind | id u64be | ... |
enum class FsNote : char {
  blocks = 'b',     // of a data id: | 'b' | data | first | end |
  tree = 'd',       // a directory that was removed with what is in it
  inode = 'i',      // one without names
  session = 's',    // one that may be over
  trash_hour = 't'  // a directory of the trash
};
Bytes fs_note(FsNote kind, uint64_t id);

}  // namespace trellis
