// Files (seed 003, OpenDAL's scoped keys): one file system per keyspace, behind 'x' keyspace 'f'.
// Scopes 0 to 3 are the seed's; the others are ours.
//
//   0                         superblock
//   0 'T'                     how often directories changed their places
//   1 inode                   attributes, small files inline
//   1 inode 'D' data          how much of shared data the inode maps
//   1 inode 'E' block         extent: where the blocks from there on are
//   1 inode 'P' parent name   link: a further directory entry that names the inode
//   1 inode 'S' slot          figures of a directory, which writers spread over slots
//   1 inode 'X' name          extended attribute
//   2 data block              64 KiB of file data, kept in the BlockStore
//   3 parent name             directory entry; names are bytes
//   5 data                    how many inodes share data
//   6 session                 a client
//   6 session inode           a file that it holds: open though unlinked, or locked; where others
//                             share the map every file that it has open
//   7 inode kind              locks: 'F' flock, 'P' POSIX
#pragma once

#include "base/strong_id.h"
#include "codec/field_codecs.h"
#include "codec/keyspace_keys.h"

namespace trellis {

inline constexpr Literal model_fs = literal("model", "f", "file system", "/Files");

template <class Record>
constexpr auto inode_field(InodeId Record::*member) {
  return field<BigEndian<8>>("inode", member, "inode number");
}

// | 'x' | keyspace u24 | 'f' | 00 |
struct FsSuperblockKey {
  KeyspaceId keyspace;
  static constexpr std::string_view kind = "fs.superblock";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsSuperblockKey::keyspace), model_fs,
                  literal("scope", "\0", "superblock", "/Superblock"));
  }
};

// | 'x' | keyspace u24 | 'f' | 00 | 'T' |
struct FsTreeKey {
  KeyspaceId keyspace;
  static constexpr std::string_view kind = "fs.tree";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsTreeKey::keyspace), model_fs,
                  literal("scope", "\0", "superblock", "/Superblock"),
                  literal("record", "T", "version of the tree", "/Tree"));
  }
};

inline constexpr Literal fs_inode_scope = literal("scope", "\x01", "inode", "/Inode");

// | 'x' | keyspace u24 | 'f' | 01 | inode u64 |
struct FsInodeKey {
  KeyspaceId keyspace;
  InodeId inode;
  static constexpr std::string_view kind = "fs.inode";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsInodeKey::keyspace), model_fs, fs_inode_scope,
                  inode_field(&FsInodeKey::inode));
  }
};

// | 'x' | keyspace u24 | 'f' | 01 | inode u64 | 'D' | data u64 |
struct FsDataUseKey {
  KeyspaceId keyspace;
  InodeId inode;
  DataId data;
  static constexpr std::string_view kind = "fs.data_use";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsDataUseKey::keyspace), model_fs, fs_inode_scope,
                  inode_field(&FsDataUseKey::inode),
                  literal("record", "D", "use of shared data", "/DataUse"),
                  field<BigEndian<8>>("data", &FsDataUseKey::data, "data id"));
  }
};

// | 'x' | keyspace u24 | 'f' | 01 | inode u64 | 'E' | block u64 |
struct FsExtentKey {
  KeyspaceId keyspace;
  InodeId inode;
  uint64_t block;
  static constexpr std::string_view kind = "fs.extent";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsExtentKey::keyspace), model_fs, fs_inode_scope,
                  inode_field(&FsExtentKey::inode), literal("record", "E", "extent", "/Extent"),
                  field<BigEndian<8>>("block", &FsExtentKey::block, "first block of the file"));
  }
};

// | 'x' | keyspace u24 | 'f' | 01 | inode u64 | 'P' | parent u64 | name bytes |
struct FsLinkKey {
  KeyspaceId keyspace;
  InodeId inode;
  InodeId parent;
  ByteView name;
  static constexpr std::string_view kind = "fs.link";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsLinkKey::keyspace), model_fs, fs_inode_scope,
                  inode_field(&FsLinkKey::inode), literal("record", "P", "link", "/Link"),
                  field<BigEndian<8>>("parent", &FsLinkKey::parent, "directory's inode number"),
                  field<Remaining>("name", &FsLinkKey::name, "file name"));
  }
};

// | 'x' | keyspace u24 | 'f' | 01 | inode u64 | 'S' | slot u8 |
struct FsFiguresKey {
  KeyspaceId keyspace;
  InodeId inode;
  uint8_t slot;
  static constexpr std::string_view kind = "fs.figures";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsFiguresKey::keyspace), model_fs, fs_inode_scope,
                  inode_field(&FsFiguresKey::inode),
                  literal("record", "S", "figures of a directory", "/Figures"),
                  field<BigEndian<1>>("slot", &FsFiguresKey::slot, "its writers' slot"));
  }
};

// | 'x' | keyspace u24 | 'f' | 01 | inode u64 | 'X' | name bytes |
struct FsXattrKey {
  KeyspaceId keyspace;
  InodeId inode;
  ByteView name;
  static constexpr std::string_view kind = "fs.xattr";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsXattrKey::keyspace), model_fs, fs_inode_scope,
                  inode_field(&FsXattrKey::inode),
                  literal("record", "X", "extended attribute", "/Xattr"),
                  field<Remaining>("name", &FsXattrKey::name, "attribute name"));
  }
};

// | 'x' | keyspace u24 | 'f' | 02 | data u64 | block u64 |
struct FsBlockKey {
  KeyspaceId keyspace;
  DataId data;
  uint64_t block;
  static constexpr std::string_view kind = "fs.block";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsBlockKey::keyspace), model_fs,
                  literal("scope", "\x02", "block of file data", "/Block"),
                  field<BigEndian<8>>("data", &FsBlockKey::data, "data id, usually the inode's"),
                  field<BigEndian<8>>("block", &FsBlockKey::block, "block index"));
  }
};

// | 'x' | keyspace u24 | 'f' | 03 | parent u64 | name bytes |
struct FsEntryKey {
  KeyspaceId keyspace;
  InodeId parent;
  ByteView name;
  static constexpr std::string_view kind = "fs.entry";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsEntryKey::keyspace), model_fs,
                  literal("scope", "\x03", "directory entry", "/Entry"),
                  field<BigEndian<8>>("parent", &FsEntryKey::parent, "directory's inode number"),
                  field<Remaining>("name", &FsEntryKey::name, "file name"));
  }
};

// | 'x' | keyspace u24 | 'f' | 05 | data u64 |
struct FsSharedDataKey {
  KeyspaceId keyspace;
  DataId data;
  static constexpr std::string_view kind = "fs.shared_data";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsSharedDataKey::keyspace), model_fs,
                  literal("scope", "\x05", "references to shared data", "/SharedData"),
                  field<BigEndian<8>>("data", &FsSharedDataKey::data, "data id"));
  }
};

inline constexpr Literal fs_session_scope = literal("scope", "\x06", "session", "/Session");

// | 'x' | keyspace u24 | 'f' | 06 | session u64 |
struct FsSessionKey {
  KeyspaceId keyspace;
  SessionId session;
  static constexpr std::string_view kind = "fs.session";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsSessionKey::keyspace), model_fs, fs_session_scope,
                  field<BigEndian<8>>("session", &FsSessionKey::session, "session id"));
  }
};

// | 'x' | keyspace u24 | 'f' | 06 | session u64 | inode u64 |
struct FsOpenUnlinkedKey {
  KeyspaceId keyspace;
  SessionId session;
  InodeId inode;
  static constexpr std::string_view kind = "fs.open_unlinked";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsOpenUnlinkedKey::keyspace), model_fs,
                  fs_session_scope,
                  field<BigEndian<8>>("session", &FsOpenUnlinkedKey::session, "session id"),
                  inode_field(&FsOpenUnlinkedKey::inode));
  }
};

// | 'x' | keyspace u24 | 'f' | 07 | inode u64 | 'F' or 'P' |
struct FsLockKey {
  KeyspaceId keyspace;
  InodeId inode;
  unsigned char lock;
  static constexpr std::string_view kind = "fs.lock";
  static constexpr Word locks[] = {{"F", "flock", "/Flock"}, {"P", "posix", "/Posix"}};
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&FsLockKey::keyspace), model_fs,
                  literal("scope", "\x07", "locks of an inode", "/Lock"),
                  inode_field(&FsLockKey::inode),
                  field<OneOf<locks>>("lock", &FsLockKey::lock, "kind of lock"));
  }
};

}  // namespace trellis
