// What is in a directory or below, in the order of paths.
//
//   TRY_ASSIGN(FileLister lister, files.lister(caller, "a/", {.recursive = true}));
//   for (;;) {
//     TRY_ASSIGN(const auto entry, lister.next());
//     if (!entry) break;
//   }
//
// A path is a prefix: "a/" lists the directory itself and what is in it, "a" what is beside it and
// starts so. What is not there is empty. Order: by the bytes of the path, in which directories have
// their '/' at the end, so that "a-b" comes before "a/" and that before "a0". A listing that ended
// anywhere goes on with its last path as start_after. Symlinks are listed, not followed.
//
// Memory: a page for each directory on the way down, smaller the deeper it is. Each page is of one
// instant; what changes meanwhile is seen or not.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "fs/file_system.h"
#include "fs/paths.h"

namespace trellis {

struct ListOptions {
  bool recursive = false;
  Bytes start_after = {};       // a path; those behind it
  bool attributes = false;      // with them
  size_t page_entries = 1'024;  // that are read at a time
};

struct ListedFile {
  Bytes path;  // "a/b", "a/b/", "/"
  FsEntry entry;
  std::optional<FileAttributes> attributes = {};  // if they are asked for
};

// One thread.
class FileLister {
 public:
  // Absent: that was all.
  Result<std::optional<ListedFile>> next();

 private:
  friend class Files;
  struct Item {
    Bytes name;
    FsEntry entry;
    std::optional<FileAttributes> attributes;
    // What is compared.
    Bytes key() const { return entry.type == FileType::directory ? name + "/" : name; }
  };
  struct Frame {
    InodeId directory;
    Bytes path;         // with '/' at its end; empty: the root's
    Bytes prefix = {};  // of the names that count
    Bytes after = {};   // the next page starts behind it
    bool has_more = true;
    std::deque<Item> page = {};
    // Directories that wait for files that come before their '/'; the next one last. Each begins
    // with the one before it, so they are few.
    std::vector<Item> waiting = {};
  };

  FileLister(std::shared_ptr<FileSystem> fs, Caller caller, ListOptions options);
  // The listing begins in this directory, with names that start with `prefix`.
  Status begin(InodeId directory, Bytes path, Bytes prefix);
  Status enter(InodeId directory, Bytes path, Bytes prefix);
  Status seek(Frame& frame, ByteView from, bool is_behind);
  Status wait_for(Frame& frame, ByteView name);
  Status load(Frame& frame);
  Status add_attributes(std::deque<Item>& items);
  Result<std::optional<Item>> take(Frame& frame);
  bool is_behind_start(ByteView path) const { return path > ByteView(start_after_); }

  std::shared_ptr<FileSystem> fs_;
  Caller caller_;
  ListOptions options_;
  Bytes start_after_;
  std::optional<ListedFile> first_;  // the directory itself
  std::vector<Frame> frames_;
};

}  // namespace trellis
