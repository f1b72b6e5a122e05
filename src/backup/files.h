// Files of backups: whole or not there.
#pragma once

#include <filesystem>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// Code::not_found; too_large if it has more than that.
Result<Bytes> read_whole_file(const std::filesystem::path& path, size_t bytes_max);

// Under another name in `drafts`, a folder on the same disk, synced, then renamed. The folder that
// it is in is to be synced before it counts as there.
Status write_whole_file(const std::filesystem::path& path, const std::filesystem::path& drafts,
                        ByteView bytes);
Status sync_folder_of_files(const std::filesystem::path& folder);
bool on_one_disk(const std::filesystem::path& a, const std::filesystem::path& b);
// With all folders above it that are missing.
Status make_folders(const std::filesystem::path& folder);
// Whatever is there; nothing is fine too.
Status remove_tree(const std::filesystem::path& path);

}  // namespace trellis
