// What goes wrong with files, each by one name. A mount answers with the errno that stands behind
// it.
#pragma once

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"
#include "base/strong_id.h"

namespace trellis::fs_error {

inline Error no_entry(ByteView name) {  // ENOENT
  return {Code::not_found, fmt::format("there is no {}", quote(name)), "no_entry"};
}
inline Error stale(InodeId inode) {  // ESTALE
  return {Code::not_found, fmt::format("inode {} is not there any more", inode.value), "stale"};
}
inline Error exists(ByteView name) {  // EEXIST
  return {Code::exists, fmt::format("{} is there already", quote(name)), "exists"};
}
inline Error not_a_directory(std::string_view what) {  // ENOTDIR
  return {Code::invalid, fmt::format("{} is not a directory", what), "not_a_directory"};
}
inline Error is_a_directory(std::string_view what) {  // EISDIR
  return {Code::invalid, fmt::format("{} is a directory", what), "is_a_directory"};
}
// For operations that take both, and go by the spelling.
inline Error is_spelled_as_file(ByteView path) {
  return {Code::invalid,
          fmt::format("{} is a directory: it, and where it goes, are spelled with a / at the end",
                      quote(path)),
          "is_a_directory"};
}
inline Error not_empty(ByteView name) {  // ENOTEMPTY
  return {Code::refused,
          fmt::format("the directory {} is not empty: remove what is in it first", quote(name)),
          "not_empty"};
}
inline Error illegal_name(ByteView name) {  // EINVAL
  return {Code::invalid,
          fmt::format("{} is no name of a file: \".\", \"..\", '/' and NUL are not "
                      "allowed, nor is none",
                      quote(name)),
          "illegal_name"};
}
inline Error name_too_long(size_t bytes) {  // ENAMETOOLONG
  return {Code::too_large, fmt::format("a name of {} bytes is over the limit of 255", bytes),
          "name_too_long"};
}
inline Error path_too_long(size_t bytes) {  // ENAMETOOLONG
  return {Code::too_large, fmt::format("a path of {} bytes is over the limit of 4,096", bytes),
          "path_too_long"};
}
inline Error too_many_symlinks() {  // ELOOP
  return {Code::invalid, "the path leads over more than 40 symlinks", "too_many_symlinks"};
}
inline Error is_same_file(std::string_view path) {
  return {Code::invalid, fmt::format("{} would go to itself", path), "is_same_file"};
}
inline Error range_not_satisfied(uint64_t end, uint64_t size) {
  return {Code::invalid, fmt::format("the range ends at byte {}, and the file has {}", end, size),
          "range_not_satisfied"};
}
inline Error changed_meanwhile(std::string_view what) {
  return {Code::conflict, fmt::format("{} was changed meanwhile: try again", what),
          "changed_meanwhile"};
}
inline Error too_many_links() {  // EMLINK
  return {Code::too_large, "a file has at most 65,000 names", "too_many_links"};
}
inline Error file_too_large() {  // EFBIG
  return {Code::too_large, "a file has at most 2^63 - 1 bytes", "file_too_large"};
}
inline Error too_fragmented() {  // EFBIG
  return {Code::too_large,
          "more than 100,000 pieces of the file would move, which is not possible at once: write "
          "its content to a new file",
          "too_fragmented"};
}
inline Error into_itself() {  // EINVAL
  return {Code::invalid, "a directory cannot be moved into itself or below", "into_itself"};
}
inline Error not_a_file(std::string_view what) {  // EINVAL
  return {Code::invalid, fmt::format("{} has no content: it is no regular file", what),
          "not_a_file"};
}
inline Error not_permitted(std::string_view why) {  // EPERM
  return {Code::denied, std::string(why), "not_permitted"};
}
inline Error invalid(std::string_view why) {  // EINVAL
  return {Code::invalid, std::string(why), "invalid_argument"};
}
inline Error not_supported(std::string_view why) {  // EOPNOTSUPP
  return {Code::unsupported, std::string(why), "not_supported"};
}
inline Error no_such_offset() {  // ENXIO
  return {Code::not_found, "there is nothing of the kind at that offset or behind it",
          "no_such_offset"};
}
inline Error directory_quota(std::string_view directory, std::string_view quota) {  // EDQUOT
  return {Code::exhausted,
          fmt::format("the quota of {} of {} is full: remove something there, or raise it", quota,
                      directory),
          "directory_quota_exceeded"};
}
inline Error condition_failed(std::string_view what) {
  return {Code::refused, fmt::format("a condition does not hold: {}", what), "condition_failed"};
}
inline Error session_gone(SessionId session) {  // ESTALE
  return {Code::not_found,
          fmt::format("session {} is over: begin another one, and open files anew", session.value),
          "session_gone"};
}
inline Error not_open(InodeId inode) {  // EBADF
  return {Code::invalid, fmt::format("inode {} is not open in this session", inode.value),
          "not_open"};
}
inline Error would_block(std::string_view holder) {  // EAGAIN
  return {Code::busy, fmt::format("locked by {}", holder), "would_block"};
}
inline Error deadlock(std::string_view holder) {  // EDEADLK
  return {Code::conflict,
          fmt::format("locked by {}, who waits for this one: waiting would never end", holder),
          "deadlock"};
}
inline Error too_many_locks() {  // ENOLCK
  return {Code::too_large, "a file has at most 10,000 locks", "too_many_locks"};
}
inline Error no_attribute(ByteView name) {  // ENODATA
  return {Code::not_found, fmt::format("there is no attribute {}", quote(name)), "no_attribute"};
}
inline Error attribute_too_large(size_t bytes) {  // E2BIG
  return {Code::too_large,
          fmt::format("an attribute of {} bytes is over the limit of 65536", bytes),
          "attribute_too_large"};
}
inline Error attributes_full() {  // ENOSPC
  return {Code::too_large,
          "the attributes of a file have at most 64 KiB of names, and 1 MiB with their values",
          "attributes_full"};
}
inline Error corrupt(std::string_view what) {  // EIO
  return {Code::corrupt, fmt::format("{}: run `trellis fs fsck`", what), "fs_corrupt"};
}

}  // namespace trellis::fs_error
