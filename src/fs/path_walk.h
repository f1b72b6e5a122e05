// From a path to what it names, as a kernel goes: symlinks on the way are followed, up to 40.
#pragma once

#include <optional>

#include "fs/file_system.h"
#include "fs/paths.h"

namespace trellis {

constexpr unsigned symlinks_followed_max = 40;

struct PathEnd {
  // Where the name is, or would be. If a directory before it is missing: the last that is there.
  InodeId directory;
  Bytes name;  // empty: the path ends in the directory itself, the root or where a symlink leads to
  std::optional<FsEntry> entry = {};  // absent: nothing has the name
  bool has_parent = true;             // all directories before it are there
};

struct WalkOptions {
  bool follow = true;         // a symlink at the end
  bool make_parents = false;  // directories on the way that are missing
};

// What is on the way and no directory: reason not_a_directory if parents are to be made; else
// nothing is there. Reason: too_many_symlinks.
Result<PathEnd> walk_path(FileSystem& fs, const Caller& caller, const FilePath& path,
                          WalkOptions options);

}  // namespace trellis
