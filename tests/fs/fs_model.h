// A simple file system in memory: what the real one must be like.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "fs/file_system.h"

namespace trellis {

constexpr uint64_t block = block_bytes_max;

struct ModelFile {
  FileType type = FileType::regular;
  uint16_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string content;  // of a regular file; of a symlink its target
  bool is_inline = true;
  std::set<uint64_t> mapped;  // blocks of the file
  std::map<std::string, std::string> xattrs;
  std::map<std::string, uint64_t> entries;           // of a directory
  FsQuota quota{};                                   // of a directory
  uint64_t parent = 0;                               // of a directory
  std::set<std::pair<uint64_t, std::string>> names;  // of another file
  std::pair<uint64_t, std::string> home;             // the one that it is counted by

  bool is_directory() const { return type == FileType::directory; }
};

// Copies share what has not changed.
class FsModel {
 public:
  explicit FsModel(std::initializer_list<InodeId> roots = {root_inode, trash_inode});

  const ModelFile* find(uint64_t inode) const;
  const ModelFile& at(uint64_t inode) const { return *files_.at(inode); }
  const std::map<uint64_t, std::shared_ptr<const ModelFile>>& files() const { return files_; }
  TreeFigures figures(uint64_t directory) const;
  // Whether a quota keeps `next` from becoming of this.
  bool is_over_quota(const FsModel& next) const;
  bool is_below(uint64_t directory, uint64_t above) const;

  // Whether it can be done, and is. If not, the model may be half changed: ask a copy.
  bool make(uint64_t directory, const std::string& name, uint64_t inode, const NewFile& file);
  bool link(uint64_t inode, uint64_t directory, const std::string& name);
  bool unlink(uint64_t directory, const std::string& name);
  bool remove_directory(uint64_t directory, const std::string& name);
  bool remove_tree(uint64_t directory, const std::string& name);
  bool rename(uint64_t from, const std::string& from_name, uint64_t to, const std::string& to_name,
              RenameMode mode);
  bool adopt(uint64_t inode, uint64_t directory, const std::string& name, bool replace);
  void make_unnamed(uint64_t inode, const NewFile& file) { add(inode, file); }

  bool set_size(uint64_t inode, uint64_t size);
  bool write(uint64_t inode, uint64_t offset, ByteView bytes);
  bool fallocate(uint64_t inode, FallocateMode mode, uint64_t offset, uint64_t size);
  bool copy_range(uint64_t from, uint64_t from_offset, uint64_t to, uint64_t to_offset,
                  uint64_t size);

  ModelFile& edit(uint64_t inode);
  // Open files keep theirs.
  std::multiset<uint64_t> opened;
  void forget_closed();  // files without names that nobody has open

 private:
  ModelFile& add(uint64_t inode, const NewFile& file);
  void add_name(uint64_t inode, uint64_t directory, const std::string& name);
  void drop_name(uint64_t inode, uint64_t directory, const std::string& name);
  void drop_tree(uint64_t inode);
  uint64_t share(uint64_t from, uint64_t from_offset, uint64_t to, uint64_t to_offset,
                 uint64_t size);
  uint64_t copy_piece(uint64_t from, uint64_t from_offset, uint64_t to, uint64_t to_offset,
                      uint64_t size);
  bool replace(uint64_t directory, const std::string& name, FileType by);
  bool put_directory(uint64_t directory) const;

  std::map<uint64_t, std::shared_ptr<const ModelFile>> files_;
};

}  // namespace trellis
