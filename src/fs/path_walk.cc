#include "fs/path_walk.h"

#include <deque>
#include <utility>

#include "fs/change.h"

namespace trellis {
namespace {

class Walk {
 public:
  Walk(FileSystem& fs, const Caller& caller, WalkOptions options)
      : fs_(fs), caller_(caller), options_(options) {}

  Result<PathEnd> run(const FilePath& path) {
    todo_.assign(path.names.begin(), path.names.end());
    while (!todo_.empty()) {
      const Bytes name = std::move(todo_.front());
      todo_.pop_front();
      if (name.empty() || name == ".") continue;
      if (name == "..") {
        if (directories_.size() > 1) directories_.pop_back();
        continue;
      }
      TRY_ASSIGN(auto entry, see(name));
      const bool is_last = todo_.empty();
      if (entry && entry->type == FileType::symlink && (!is_last || options_.follow)) {
        TRY(follow(entry->inode));
        continue;
      }
      if (is_last) return PathEnd{directories_.back(), name, entry};
      if (!entry && options_.make_parents) {
        TRY_ASSIGN(entry, make_directory(name));
      }
      if (!entry || entry->type != FileType::directory) {
        if (options_.make_parents) return fs_error::not_a_directory(quote(name));
        return PathEnd{directories_.back(), name, {}, false};
      }
      directories_.push_back(entry->inode);
    }
    return PathEnd{directories_.back(), {}, FsEntry{directories_.back(), FileType::directory, 0}};
  }

 private:
  Result<std::optional<FsEntry>> see(ByteView name) {
    return see_entry(fs_.tenant().map().engine, fs_.keyspace(), directories_.back(), name);
  }

  Status follow(InodeId link) {
    if (++links_ > symlinks_followed_max) return fs_error::too_many_symlinks();
    TRY_ASSIGN(const Bytes target, fs_.read_link(caller_, link));
    if (target.starts_with('/')) directories_.resize(1);
    const std::vector<ByteView> parts = split_path(target);
    todo_.insert(todo_.begin(), parts.begin(), parts.end());
    return {};
  }

  Result<std::optional<FsEntry>> make_directory(ByteView name) {
    const auto made =
        fs_.make(caller_, directories_.back(), name, {.type = FileType::directory, .mode = 0755});
    if (made) return std::optional(FsEntry{made->inode, FileType::directory, made->generation});
    if (made.error().reason != "exists") return made.error();
    TRY_ASSIGN(const auto entry, see(name));
    if (!entry) return fs_error::stale(directories_.back());  // made by others, and removed since
    return entry;
  }

  FileSystem& fs_;
  const Caller& caller_;
  const WalkOptions options_;
  unsigned links_ = 0;
  std::deque<Bytes> todo_;
  std::vector<InodeId> directories_{root_inode};
};

}  // namespace

Result<PathEnd> walk_path(FileSystem& fs, const Caller& caller, const FilePath& path,
                          WalkOptions options) {
  TRY(fs.tenant().admit(caller, Access::read, 0));  // who walks goes on to do what counts
  return Walk(fs, caller, options).run(path);
}

}  // namespace trellis
