// Extended attributes within a change, and what a new file has from its directory: group and ACLs.
#pragma once

#include <optional>

#include "fs/change.h"

namespace trellis {

constexpr size_t xattr_name_bytes_max = 255;
constexpr size_t xattr_value_bytes_max = 64 * 1024;
// Of all names with the NUL that a listing has behind each, as Linux has it.
constexpr size_t xattr_list_bytes_max = 64 * 1024;
// Of all names and values of one file.
constexpr size_t xattrs_bytes_max = 1024 * 1024;
// Names that begin so are ours: callers do not see them.
inline constexpr ByteView hidden_xattr_prefix = "trellis.";

// Absent: there is none.
Result<std::optional<Bytes>> find_xattr(FsChange& change, InodeId inode, const FsInode& file,
                                        ByteView name);
// Absent: it goes. REQUIRES: name and value are checked, and there is room.
Status put_xattr(FsChange& change, InodeId inode, FsInode& file, ByteView name,
                 std::optional<ByteView> value);

// The ACL shows what chmod has set. REQUIRES: file.mode is the new one.
Status follow_mode(FsChange& change, InodeId inode, FsInode& file);

// A set-group-id directory gives its group, and itself to directories; a default ACL takes the
// place of the umask. REQUIRES: the plan shares the directory and holds the inode.
Status inherit(FsChange& change, InodeId directory, const FsInode& parent, const NewFile& asked,
               InodeId inode, FsInode& made);

}  // namespace trellis
