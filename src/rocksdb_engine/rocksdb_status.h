// RocksDB's statuses as ours.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

inline rocksdb::Slice to_slice(ByteView bytes) { return {bytes.data(), bytes.size()}; }
inline ByteView to_view(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// REQUIRES: !status.ok()
Error read_error(const rocksdb::Status& status);

// What a failed write means for the commits in it. A write that RocksDB turned away never reached
// the log; one that failed on the way may be found in it by the next start.
Error write_error(const rocksdb::Status& status);

// What the system does not let this user do with `what`, a folder or files; nothing if the status
// tells of something else.
std::optional<Error> denied_error(const rocksdb::Status& status, std::string_view what);
Error denied_error(std::string_view what, bool is_read_only_mount);

// Of a store whose folder is there.
// REQUIRES: !status.ok()
Error open_error(const rocksdb::Status& status, uint64_t free_bytes);

}  // namespace trellis
