// What the trash calls what is in it: trash/YYYYMMDDHH/parent-inode-name, with the hour (UTC) in
// which it was removed and the inode numbers of the directory that it was in and of itself, in
// decimal. A name that would be too long is cut.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/strong_id.h"

namespace trellis {

constexpr uint64_t trash_hour_ms = 3'600'000;
constexpr uint64_t trash_ms_max = 100ull * 365 * 24 * trash_hour_ms;

// Of hours since 1970.
Bytes trash_hour_name(uint64_t hour);
std::optional<uint64_t> parse_trash_hour(ByteView name);

// | 't' | directory u64 | hour u64 |: with the directory's number, because one of the same hour may
// have been emptied before.
Bytes trash_hour_note(InodeId directory, uint64_t hour);

struct TrashName {
  InodeId parent;
  InodeId inode;
  ByteView name;  // as far as it was kept
};
Bytes trash_name(const TrashName& name);
std::optional<TrashName> parse_trash_name(ByteView name);

}  // namespace trellis
