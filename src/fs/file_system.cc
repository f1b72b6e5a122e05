#include "fs/file_system.h"

#include <utility>

#include "codec/fs_keys.h"
#include "fs/change.h"

namespace trellis {
namespace {

// What is removed by path stays in the trash for so long, unless told otherwise.
constexpr uint64_t default_trash_ms = 24ull * 3600 * 1000;

FsInode root_directory(int64_t now_ns) {
  FsInode root{};
  root.type = FileType::directory;
  root.mode = 0755;
  root.links = 1;
  root.generation = 1;
  root.accessed_ns = root.modified_ns = root.changed_ns = root.born_ns = now_ns;
  return root;
}

Status make_file_system(CountedView& view, KeyspaceId keyspace, const Clock& clock) {
  const auto put_new = [&](ByteView key, ByteView value) -> Status {
    Value old;
    TRY(view.get(key, old));
    view.put(key, value, old);
    return {};
  };
  TRY(put_new(encode(FsSuperblockKey{keyspace}),
              encode(FsSuperblock{.era = 1,
                                  .created_ms = clock.unix_ms(),
                                  .ids = first_free_id,
                                  .trash_ms = default_trash_ms})));
  TRY(put_new(encode(FsTreeKey{keyspace}), encode(FsTree{1})));
  for (const InodeId inode : {root_inode, trash_inode}) {
    TRY(put_new(encode(FsInodeKey{keyspace, inode}), encode(root_directory(clock.unix_ns()))));
    view.count_keys(1);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<FileSystem>> FileSystem::open(std::shared_ptr<Tenant> tenant,
                                                     FileSystemOptions options) {
  const KeyspaceId keyspace = tenant->id();
  const Bytes superblock = encode(FsSuperblockKey{keyspace});
  const MapHandle map = tenant->map();
  Value stored;
  TRY(map.engine.get(superblock, stored));
  if (!stored.found()) {
    Scope scope = Scope::in(keyspace);
    scope.exclusive(superblock).exclusive(encode(FsTreeKey{keyspace}));
    for (const InodeId inode : {root_inode, trash_inode})
      scope.exclusive(encode(FsInodeKey{keyspace, inode}));
    TRY(tenant->collect(Model::fs, scope, [&](CountedView& view) -> Status {
      TRY(view.get(superblock, stored));
      // Without a superblock but with a root it is damaged: it opens, for fsck, and gives out no
      // ids.
      if (!stored.found()) TRY(view.get(encode(FsInodeKey{keyspace, root_inode}), stored));
      if (stored.found()) return {};
      return make_file_system(view, keyspace, map.clock);
    }));
  }
  std::shared_ptr<FileSystem> opened(new FileSystem(std::move(tenant), options));
  if (const auto found = opened->superblock())
    opened->strangers_below_ = opened->leftovers_below_ = found->ids;
  TRY(opened->look_for_strangers());
  return opened;
}

int64_t FileSystem::now_ns() const { return tenant_->map().clock.unix_ns(); }

Result<FsSuperblock> FileSystem::superblock() {
  Value stored;
  TRY(tenant_->map().engine.get(encode(FsSuperblockKey{keyspace()}), stored));
  if (!stored.found()) return fs_error::corrupt("the superblock is lost");
  return decode<FsSuperblock>(stored.bytes());
}

Result<uint64_t> FileSystem::take_id() {
  const std::lock_guard lock(ids_mutex_);
  if (next_id_ == ids_end_) {
    const Bytes key = encode(FsSuperblockKey{keyspace()});
    uint64_t first = 0;
    TRY(tenant_->collect(
        Model::fs, Scope::in(keyspace()).exclusive(key), [&](CountedView& view) -> Status {
          Value stored;
          TRY(view.get(key, stored));
          if (!stored.found()) return fs_error::corrupt("the superblock is lost");
          TRY_ASSIGN(FsSuperblock superblock, decode<FsSuperblock>(stored.bytes()));
          first = superblock.ids;
          superblock.ids += options_.ids_reserved;
          era_ = superblock.era;
          view.put(key, encode(superblock), stored);
          return {};
        }));
    next_id_ = first;
    ids_end_ = first + options_.ids_reserved;
  }
  return next_id_++;
}

void FileSystem::forget_ids() {
  const std::lock_guard lock(ids_mutex_);
  next_id_ = ids_end_;
}

uint64_t FileSystem::known_tree_version() {
  const std::shared_lock lock(places_mutex_);
  return places_version_;
}

void FileSystem::learn_tree_version(uint64_t version) {
  const std::lock_guard lock(places_mutex_);
  if (version <= places_version_) return;
  places_version_ = version;
  places_.clear();
}

Result<std::optional<FileSystem::Place>> FileSystem::place(InodeId directory,
                                                           uint64_t tree_version) {
  {
    const std::shared_lock lock(places_mutex_);
    if (places_version_ == tree_version)
      if (const auto found = places_.find(directory); found != places_.end())
        return std::optional<Place>(found->second);
  }
  TRY_ASSIGN(const auto seen, see_inode(tenant_->map().engine, keyspace(), directory));
  if (!seen) return std::optional<Place>();
  const Place place{.parent = seen->inode.home, .has_quota = (seen->inode.flags & fs_quota) != 0};
  const std::lock_guard lock(places_mutex_);
  if (places_version_ == tree_version) {
    if (places_.size() >= places_max) places_.clear();
    places_.emplace(directory, place);
  }
  return std::optional<Place>(place);
}

}  // namespace trellis
