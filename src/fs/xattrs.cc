#include "fs/xattrs.h"

#include <utility>

#include "base/assert.h"
#include "fs/posix_acl.h"

namespace trellis {
namespace {

Bytes xattr_key(KeyspaceId keyspace, InodeId inode, ByteView name) {
  return encode(FsXattrKey{keyspace, inode, name});
}

Result<ByteView> decode_xattr(InodeId inode, ByteView name, const Value& stored) {
  const auto decoded = decode<FsXattr>(stored.bytes());
  if (!decoded)
    return fs_error::corrupt(fmt::format("attribute {} of inode {}: {}", quote(name), inode.value,
                                         decoded.error().message));
  return decoded->value;
}

bool is_hidden(ByteView name) { return name.starts_with(hidden_xattr_prefix); }

Status check_xattr_name(ByteView name) {
  if (name.size() > xattr_name_bytes_max) return fs_error::name_too_long(name.size());
  if (name.empty() || name.find('\0') != ByteView::npos)
    return fs_error::invalid("an attribute's name has at least one byte, and no NUL");
  return {};
}

Status check_callers_name(ByteView name) {
  TRY(check_xattr_name(name));
  if (is_hidden(name))
    return fs_error::not_permitted("attributes that begin with \"trellis.\" are internal");
  return {};
}

// All that begin with the prefix of an inode's attributes.
template <class Map>
Status visit_xattrs(Map& map, KeyspaceId keyspace, InodeId inode,
                    FunctionRef<void(ByteView name, size_t value_bytes)> visit) {
  const Bytes prefix = xattr_key(keyspace, inode, {});
  Bytes from = prefix;
  for (;;) {
    TRY_ASSIGN(ScanPage page, map.scan({.begin = from, .end = prefix_end(prefix)},
                                       [&](ByteView key, ByteView value) {
                                         visit(key.substr(prefix.size()), value.size());
                                         return Visit::go_on;
                                       }));
    if (!page.resume) return {};
    from = std::move(*page.resume);
  }
}

Status check_room(FsChange& change, InodeId inode, ByteView name, ByteView value) {
  size_t list_bytes = is_hidden(name) ? 0 : name.size() + 1;
  size_t all_bytes = name.size() + value.size();
  TRY(visit_xattrs(change.view(), change.keyspace(), inode,
                   [&](ByteView other, size_t value_bytes) {
                     if (other == name) return;
                     if (!is_hidden(other)) list_bytes += other.size() + 1;
                     all_bytes += other.size() + value_bytes;
                   }));
  if (list_bytes <= xattr_list_bytes_max && all_bytes <= xattrs_bytes_max) return {};
  return fs_error::attributes_full();
}

bool is_acl(ByteView name) { return name == acl_access_name || name == acl_default_name; }

// What is to be stored in place of what was given; absent: nothing, the mode says it all.
Result<std::optional<Bytes>> accept_acl(FsInode& file, ByteView name, ByteView value) {
  if (file.type == FileType::symlink)
    return fs_error::not_permitted("a symlink has no ACL: give one to what it points to");
  TRY_ASSIGN(const PosixAcl acl, decode_acl(value));
  if (name == acl_default_name) {
    if (file.type != FileType::directory)
      return fs_error::not_permitted("only a directory has a default ACL");
    return acl.entries.empty() ? std::optional<Bytes>() : std::optional<Bytes>(encode_acl(acl));
  }
  if (acl.entries.empty()) return std::optional<Bytes>();
  file.mode = static_cast<uint16_t>((file.mode & 07000) | acl.mode());
  return acl.is_mode_only() ? std::optional<Bytes>() : std::optional<Bytes>(encode_acl(acl));
}

}  // namespace

Result<std::optional<Bytes>> find_xattr(FsChange& change, InodeId inode, const FsInode& file,
                                        ByteView name) {
  if ((file.flags & fs_attributes) == 0) return std::optional<Bytes>();
  TRY_ASSIGN(const auto found, change.record(xattr_key(change.keyspace(), inode, name)));
  if (!found.old.found()) return std::optional<Bytes>();
  TRY_ASSIGN(const ByteView value, decode_xattr(inode, name, found.old));
  return std::optional<Bytes>(value);
}

Status put_xattr(FsChange& change, InodeId inode, FsInode& file, ByteView name,
                 std::optional<ByteView> value) {
  TRY_ASSIGN(const auto found, change.record(xattr_key(change.keyspace(), inode, name)));
  if (!value) {
    change.remove(found);
    return {};
  }
  change.put(found, encode(FsXattr{*value}));
  file.flags |= fs_attributes;
  return {};
}

Status follow_mode(FsChange& change, InodeId inode, FsInode& file) {
  TRY_ASSIGN(const auto stored, find_xattr(change, inode, file, acl_access_name));
  if (!stored) return {};
  TRY_ASSIGN(PosixAcl acl, decode_acl(*stored));
  if (acl.entries.empty()) return {};
  acl.set_mode(file.mode);
  return put_xattr(change, inode, file, acl_access_name, encode_acl(acl));
}

Status inherit(FsChange& change, InodeId directory, const FsInode& parent, const NewFile& asked,
               InodeId inode, FsInode& made) {
  const bool is_directory = made.type == FileType::directory;
  if ((parent.mode & 02000) != 0) {
    made.gid = parent.gid;
    if (is_directory) made.mode |= 02000;
  }
  if (made.type == FileType::symlink) return {};
  TRY_ASSIGN(const auto stored, find_xattr(change, directory, parent, acl_default_name));
  if (!stored) {
    made.mode &= static_cast<uint16_t>(~(asked.umask & 0777));
    return {};
  }
  TRY_ASSIGN(PosixAcl acl, decode_acl(*stored));
  if (is_directory) TRY(put_xattr(change, inode, made, acl_default_name, *stored));
  acl.restrict_to(made.mode);
  made.mode = static_cast<uint16_t>((made.mode & 07000) | acl.mode());
  if (acl.is_mode_only()) return {};
  return put_xattr(change, inode, made, acl_access_name, encode_acl(acl));
}

// --- of a file system ---

Result<std::optional<Bytes>> FileSystem::see_xattr(const Caller& caller, InodeId inode,
                                                   ByteView name) {
  TRY(tenant_->admit(caller, Access::read));
  const Bytes keys[] = {encode(FsInodeKey{keyspace(), inode}), xattr_key(keyspace(), inode, name)};
  const ByteView views[] = {keys[0], keys[1]};
  Value values[2];
  TRY(tenant_->map().engine.multi_get(views, values));
  if (!values[0].found()) return fs_error::stale(inode);
  if (!values[1].found()) return std::optional<Bytes>();
  TRY_ASSIGN(const ByteView value, decode_xattr(inode, name, values[1]));
  return std::optional<Bytes>(value);
}

Result<Bytes> FileSystem::get_xattr(const Caller& caller, InodeId inode, ByteView name) {
  TRY(check_callers_name(name));
  TRY_ASSIGN(auto value, see_xattr(caller, inode, name));
  if (!value) return fs_error::no_attribute(name);
  return std::move(*value);
}

Result<std::optional<Bytes>> FileSystem::hidden_xattr(const Caller& caller, InodeId inode,
                                                      ByteView name) {
  ASSERT(is_hidden(name));
  TRY(check_xattr_name(name));
  return see_xattr(caller, inode, name);
}

Status FileSystem::change_xattr(const Caller& caller, InodeId inode, ByteView name,
                                std::optional<ByteView> value, XattrMode mode) {
  if (value && value->size() > xattr_value_bytes_max)
    return fs_error::attribute_too_large(value->size());
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.hold(inode);
    return {};
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY_ASSIGN(FsInode* const file, change.inode(inode));
    TRY_ASSIGN(const auto old, find_xattr(change, inode, *file, name));
    if (old && mode == XattrMode::create) return fs_error::exists(name);
    if (!old && mode == XattrMode::replace) return fs_error::no_attribute(name);
    std::optional<Bytes> stored;
    if (value) stored = Bytes(*value);
    if (value && is_acl(name)) {
      TRY_ASSIGN(stored, accept_acl(*file, name, *value));
    }
    if (stored) TRY(check_room(change, inode, name, *stored));
    file->version++;
    file->changed_ns = change.now_ns();
    return put_xattr(change, inode, *file, name,
                     stored ? std::optional<ByteView>(*stored) : std::nullopt);
  };
  return change(&caller, plan, run);
}

Status FileSystem::set_xattr(const Caller& caller, InodeId inode, ByteView name, ByteView value,
                             XattrMode mode) {
  TRY(check_callers_name(name));
  return change_xattr(caller, inode, name, value, mode);
}

Status FileSystem::set_hidden_xattr(const Caller& caller, InodeId inode, ByteView name,
                                    std::optional<ByteView> value) {
  ASSERT(is_hidden(name));
  TRY(check_xattr_name(name));
  return change_xattr(caller, inode, name, value, XattrMode::set);
}

Status FileSystem::remove_xattr(const Caller& caller, InodeId inode, ByteView name) {
  TRY(check_callers_name(name));
  return change_xattr(caller, inode, name, std::nullopt, XattrMode::replace);
}

Result<std::vector<Bytes>> FileSystem::list_xattrs(const Caller& caller, InodeId inode) {
  TRY(tenant_->admit(caller, Access::read));
  Engine& engine = tenant_->map().engine;
  TRY_ASSIGN(const auto seen, see_inode(engine, keyspace(), inode));
  if (!seen) return fs_error::stale(inode);
  std::vector<Bytes> names;
  if ((seen->inode.flags & fs_attributes) == 0) return names;
  TRY(visit_xattrs(engine, keyspace(), inode, [&](ByteView name, size_t) {
    if (!is_hidden(name)) names.emplace_back(name);
  }));
  return names;
}

}  // namespace trellis
