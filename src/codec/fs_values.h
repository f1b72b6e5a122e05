// What the records of a file system (fs_keys.h) hold. Each layout is drawn above its struct.
//
//   superblock   | 01 | era u32 | created u64, unix ms | ids u64 | trash u64, ms |
//   tree         | 01 | version u64 |
//   inode        | 01 | 112 bytes of attributes | content, target or quota |
//   entry        | inode u64 | type u8 | generation u32 |            (the seed's inode first)
//   figures      | 01 | space, length, inodes, entries, directories i64 | changed i64, ns |
//   extent       | 01 | data u64 | first u64 | blocks u64 |
//   data use     | 01 | blocks u64 |
//   shared data  | 01 | inodes u64 |
//   link         | 01 |
//   xattr        | 01 | value |
//   session      | 01 | began u64 | expires u64, unix ms | client |
//   held file    | 01 |
//   locks        | 01 | session u64, owner u64, first u64, last u64, process u32, how u8 | ... |
#pragma once

#include <cstdint>

#include "codec/field_codecs.h"

namespace trellis {

// As in struct stat's mode, shifted to one digit.
enum class FileType : uint8_t {
  fifo = 1,
  character_device = 2,
  directory = 4,
  block_device = 6,
  regular = 8,
  symlink = 10,
  socket = 12,
};
constexpr bool is_file_type(FileType type) {
  switch (type) {
    case FileType::fifo:
    case FileType::character_device:
    case FileType::directory:
    case FileType::block_device:
    case FileType::regular:
    case FileType::symlink:
    case FileType::socket: return true;
  }
  return false;
}
struct FileTypeField : BigEndian<1> {
  static bool read(Reader& reader, FileType& type) {
    const size_t start = reader.offset();
    if (!BigEndian<1>::read(reader, type)) return false;
    return is_file_type(type) || reader.fail("no type of file", start);
  }
  static const char* invalid(FileType type) {
    return is_file_type(type) ? nullptr : "no type of file";
  }
};

// | 01 | era u32 | created u64, unix ms | ids u64 | trash u64, ms |
struct FsSuperblock {
  uint32_t era;  // of the generation of inodes: another one after a restore
  uint64_t created_ms;
  uint64_t ids;       // of inodes and data: those below are given out
  uint64_t trash_ms;  // how long what is removed stays in the trash; 0: there is none
  static constexpr std::string_view kind = "fs.superblock_value";
  static constexpr auto layout() {
    return record(literal("format", "\x01", "format"),
                  field<BigEndian<4>>("era", &FsSuperblock::era, "generation of new inodes"),
                  field<BigEndian<8>>("created", &FsSuperblock::created_ms, "unix time in ms"),
                  field<BigEndian<8>>("ids", &FsSuperblock::ids, "ids below it are given out"),
                  field<BigEndian<8>>("trash", &FsSuperblock::trash_ms, "kept for so many ms"));
  }
};

// | 01 | version u64 |
struct FsTree {
  uint64_t version;
  static constexpr std::string_view kind = "fs.tree_value";
  static constexpr auto layout() {
    return record(literal("format", "\x01", "format"),
                  field<BigEndian<8>>("version", &FsTree::version,
                                      "counts moves and removals of directories"));
  }
};

// | 01 | type u8 | mode u16 | flags u32 | uid u32 | gid u32 | links u32 | generation u32 |
// | size u64 | blocks u64 | data u64 | next u64 | home u64 | device u64 | version u64 |
// | accessed i64 | modified i64 | changed i64 | born i64 | rest bytes |
struct FsInode {
  FileType type;
  uint16_t mode;   // permission bits, with set-id and sticky: 07777
  uint32_t flags;  // of FsInodeFlag
  uint32_t uid;
  uint32_t gid;
  uint32_t links;  // entries that name it; of a directory 1, or 0 when it is removed
  uint32_t generation;
  uint64_t size;    // of the content in bytes; of a symlink: of its target
  uint64_t blocks;  // that are mapped: what the file takes
  DataId data;      // whose blocks are the inode's alone
  uint64_t next;    // block of `data` that was never used
  InodeId home;     // a directory's parent; where another file is counted: one of its links
  uint64_t device;
  uint64_t version;  // counts changes of content and attributes, but for the time of access
  int64_t accessed_ns;
  int64_t modified_ns;
  int64_t changed_ns;
  int64_t born_ns;
  ByteView rest;  // content if inline, target of a symlink, FsQuota of a directory that has one
  bool operator==(const FsInode&) const = default;
  static constexpr std::string_view kind = "fs.inode_value";
  static constexpr auto layout() {
    return record(
        literal("format", "\x01", "format"), field<FileTypeField>("type", &FsInode::type, "type"),
        field<BigEndian<2>>("mode", &FsInode::mode, "permission bits"),
        field<BigEndian<4>>("flags", &FsInode::flags, "flags"),
        field<BigEndian<4>>("uid", &FsInode::uid, "owner"),
        field<BigEndian<4>>("gid", &FsInode::gid, "group"),
        field<BigEndian<4>>("links", &FsInode::links, "entries that name it"),
        field<BigEndian<4>>("generation", &FsInode::generation, "era in which it was made"),
        field<BigEndian<8>>("size", &FsInode::size, "bytes of content"),
        field<BigEndian<8>>("blocks", &FsInode::blocks, "blocks that are mapped"),
        field<BigEndian<8>>("data", &FsInode::data, "data id of its own blocks"),
        field<BigEndian<8>>("next", &FsInode::next, "block of its own that was never used"),
        field<BigEndian<8>>("home", &FsInode::home, "directory that it is counted in"),
        field<BigEndian<8>>("device", &FsInode::device, "device number"),
        field<BigEndian<8>>("version", &FsInode::version, "counts changes"),
        field<BigEndian<8>>("accessed", &FsInode::accessed_ns, "unix time in ns"),
        field<BigEndian<8>>("modified", &FsInode::modified_ns, "unix time in ns"),
        field<BigEndian<8>>("changed", &FsInode::changed_ns, "unix time in ns"),
        field<BigEndian<8>>("born", &FsInode::born_ns, "unix time in ns"),
        field<Remaining>("rest", &FsInode::rest, "content, target or quota"));
  }
};
enum FsInodeFlag : uint32_t {
  fs_inline = 1,      // a regular file whose content is `rest`
  fs_shares = 2,      // maps data that is not its own: there are 'D' records
  fs_removed = 4,     // a directory that was removed with what is in it, and its collection is owed
  fs_quota = 8,       // a directory with a quota
  fs_attributes = 16  // there may be extended attributes
};
constexpr uint32_t fs_flags_known = 31;

// | bytes u64 | inodes u64 |
struct FsQuota {
  uint64_t bytes_max;   // of space; 0: no limit
  uint64_t inodes_max;  // 0: no limit
  static constexpr std::string_view kind = "fs.quota_value";
  static constexpr auto layout() {
    return record(field<BigEndian<8>>("bytes", &FsQuota::bytes_max, "limit of space"),
                  field<BigEndian<8>>("inodes", &FsQuota::inodes_max, "limit of inodes"));
  }
};

// | inode u64 | type u8 | generation u32 |
struct FsEntry {
  InodeId inode;
  FileType type;
  uint32_t generation;
  bool operator==(const FsEntry&) const = default;
  static constexpr std::string_view kind = "fs.entry_value";
  static constexpr auto layout() {
    return record(field<BigEndian<8>>("inode", &FsEntry::inode, "inode number"),
                  field<FileTypeField>("type", &FsEntry::type, "type"),
                  field<BigEndian<4>>("generation", &FsEntry::generation, "of the inode"));
  }
};

// | 01 | space i64 | length i64 | inodes i64 | entries i64 | directories i64 | changed i64, ns |
//
// One slot: the sum of all slots counts, and one alone may be negative.
struct FsFigures {
  int64_t space = 0;        // bytes of blocks of all files below, at any depth
  int64_t length = 0;       // bytes of their contents
  int64_t inodes = 0;       // of all that is below, at any depth
  int64_t entries = 0;      // of the directory itself
  int64_t directories = 0;  // among them
  int64_t changed_ns = 0;   // when an entry was last made or removed: the latest of all slots
  bool operator==(const FsFigures&) const = default;
  static constexpr std::string_view kind = "fs.figures_value";
  static constexpr auto layout() {
    return record(
        literal("format", "\x01", "format"),
        field<BigEndian<8>>("space", &FsFigures::space, "bytes of blocks below"),
        field<BigEndian<8>>("length", &FsFigures::length, "bytes of contents below"),
        field<BigEndian<8>>("inodes", &FsFigures::inodes, "inodes below"),
        field<BigEndian<8>>("entries", &FsFigures::entries, "its own entries"),
        field<BigEndian<8>>("directories", &FsFigures::directories, "directories among them"),
        field<BigEndian<8>>("changed", &FsFigures::changed_ns, "last change of its entries, ns"));
  }
};

// | 01 | data u64 | first u64 | blocks u64 |
struct FsExtent {
  DataId data;
  uint64_t first;   // block of the data that the key's block of the file is
  uint64_t blocks;  // so many, side by side; not 0
  static constexpr std::string_view kind = "fs.extent_value";
  static constexpr auto layout() {
    return record(literal("format", "\x01", "format"),
                  field<BigEndian<8>>("data", &FsExtent::data, "data id"),
                  field<BigEndian<8>>("first", &FsExtent::first, "first block of the data"),
                  field<BigEndian<8>>("blocks", &FsExtent::blocks, "number of blocks"));
  }
};

// | 01 | blocks u64 |
struct FsDataUse {
  uint64_t blocks;  // of the data that the inode maps; not 0
  static constexpr std::string_view kind = "fs.data_use_value";
  static constexpr auto layout() {
    return record(literal("format", "\x01", "format"),
                  field<BigEndian<8>>("blocks", &FsDataUse::blocks, "blocks that are mapped"));
  }
};

// | 01 | inodes u64 |
struct FsSharedData {
  uint64_t inodes;  // with a 'D' record of the data; not 0
  static constexpr std::string_view kind = "fs.shared_data_value";
  static constexpr auto layout() {
    return record(literal("format", "\x01", "format"),
                  field<BigEndian<8>>("inodes", &FsSharedData::inodes, "inodes that map it"));
  }
};

inline constexpr ByteView fs_link_value = "\x01";
inline constexpr ByteView fs_held_value = "\x01";

// | 01 | value bytes |
struct FsXattr {
  ByteView value;
  static constexpr std::string_view kind = "fs.xattr_value";
  static constexpr auto layout() {
    return record(literal("format", "\x01", "format"),
                  field<Remaining>("value", &FsXattr::value, "what the attribute holds"));
  }
};

// | 01 | began u64, unix ms | expires u64, unix ms | client bytes |
struct FsSession {
  uint64_t began_ms;
  uint64_t expires_ms;  // unless it is renewed; 0: it has ended, and what it held is given back
  ByteView client;      // what it calls itself
  static constexpr std::string_view kind = "fs.session_value";
  static constexpr auto layout() {
    return record(
        literal("format", "\x01", "format"),
        field<BigEndian<8>>("began", &FsSession::began_ms, "unix time in ms"),
        field<BigEndian<8>>("expires", &FsSession::expires_ms, "unix time in ms; 0: over"),
        field<Remaining>("client", &FsSession::client, "what it calls itself"));
  }
};

enum class FileLockType : uint8_t { shared = 1, exclusive = 2 };
struct FileLockTypeField : BigEndian<1> {
  static bool is_type(FileLockType type) {
    return type == FileLockType::shared || type == FileLockType::exclusive;
  }
  static bool read(Reader& reader, FileLockType& type) {
    const size_t start = reader.offset();
    if (!BigEndian<1>::read(reader, type)) return false;
    return is_type(type) || reader.fail("no type of lock", start);
  }
  static const char* invalid(FileLockType type) {
    return is_type(type) ? nullptr : "no type of lock";
  }
};

// | session u64 | owner u64 | first u64 | last u64 | process u32 | type u8 |
struct FsLock {
  SessionId session;
  uint64_t owner;    // whom the session calls so: locks of one owner never conflict
  uint64_t first;    // byte of the file
  uint64_t last;     // included
  uint32_t process;  // for who asks who it is
  FileLockType type;
  bool operator==(const FsLock&) const = default;
  static constexpr std::string_view kind = "fs.lock_value";
  static constexpr auto layout() {
    return record(field<BigEndian<8>>("session", &FsLock::session, "session id"),
                  field<BigEndian<8>>("owner", &FsLock::owner, "owner within the session"),
                  field<BigEndian<8>>("first", &FsLock::first, "first byte"),
                  field<BigEndian<8>>("last", &FsLock::last, "last byte"),
                  field<BigEndian<4>>("process", &FsLock::process, "process id"),
                  field<FileLockTypeField>("type", &FsLock::type, "1 shared, 2 exclusive"));
  }
};
constexpr size_t fs_lock_bytes = 37;

// | 01 | FsLock | FsLock | ... |
struct FsLocks {
  ByteView locks;
  static constexpr std::string_view kind = "fs.locks_value";
  static constexpr auto layout() {
    return record(literal("format", "\x01", "format"),
                  field<Remaining>("locks", &FsLocks::locks, "locks of 37 bytes each"));
  }
};

}  // namespace trellis
