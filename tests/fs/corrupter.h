// For tests: damages a healthy file system in one way, chosen by name, at a place that a seed
// chooses. Counters are kept right, so that nothing but the damage is to be found.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "fs/change.h"
#include "fs/fsck.h"

namespace trellis {

class Corrupter;

struct Damage {
  std::string name;
  FsckKind kind;               // what must be found
  std::set<FsckKind> follows;  // what may be found beside it
  std::function<void(Corrupter&)> make;
  bool latched_only = false;  // elsewhere nothing would be wrong
};
const std::vector<Damage>& all_damages();

class Corrupter {
 public:
  Corrupter(FileSystem& fs, Random& random) : fs_(fs), random_(random) {}

  struct Entry {
    InodeId directory;
    Bytes name;
    FsEntry entry;
  };

  Random& random() { return random_; }
  FileSystem& fs() { return fs_; }
  KeyspaceId keyspace() const { return fs_.keyspace(); }
  Engine& engine() { return fs_.tenant().map().engine; }

  // One of those that are so; fails the test if none is.
  Entry any_entry(const std::function<bool(const Entry&, const FsInode&)>& is_wanted);
  Entry any_file();       // with one name, inline
  Entry any_mapped();     // a file with at least two blocks in one extent of its own
  Entry any_linked();     // with several names; this one has a link record
  Entry any_directory();  // with something in it, in the root or below

  FsInode inode(InodeId inode, Bytes& keeps);
  void edit_inode(InodeId inode, const std::function<void(FsInode&)>& edit);
  std::optional<Bytes> get(ByteView key);
  void put(ByteView key, ByteView value);
  void remove(ByteView key);
  // The first key with that prefix (and behind it, if given) that is so.
  Bytes find(ByteView prefix, const std::function<bool(ByteView, ByteView)>& is_wanted);
  // A note of files of that kind is lost.
  void lose_note(char kind);

 private:
  void edit(ByteView key, std::optional<ByteView> value);

  FileSystem& fs_;
  Random& random_;
};

}  // namespace trellis
