// The folder of a store, before RocksDB touches it.
//
// A store has a text file TRELLIS beside RocksDB's files:
//
//   format 1
//   engine rocksdb
//   store 0ce61c17-5eb4-4587-8c36-dcf4062ada4c
//
// It is there, durable, before RocksDB makes its first file, so a folder without it is somebody
// else's and stays as it is. Lines with other names are ignored; a format that is higher than ours
// is refused.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/field_codecs.h"

namespace rocksdb {
class Env;
class Status;
}  // namespace rocksdb

namespace trellis {

constexpr unsigned store_format = 1;

// One spelling for each folder, so that LogFiles knows its own: without . and .. and an end slash.
std::string store_path(const std::filesystem::path& given);
std::string parent_of(const std::string& path);

// Why a folder could not be made, and what to do.
// REQUIRES: !status.ok()
Error folder_error(rocksdb::Env& env, const rocksdb::Status& status, const std::string& path);

// What the marker says about its store.
struct Marker {
  // Absent until the store has been made completely. From then on a store without this identity has
  // lost files, and is not a new one.
  std::optional<Uuid> store;
};

// Checks the folder, and makes it or its marker if there is nothing yet and `create` says so.
Result<Marker> prepare_data_directory(rocksdb::Env& env, const std::string& path, bool create);

// From the text of a file TRELLIS, which may be any bytes.
Result<Marker> parse_marker(std::string_view text);

// Writes the marker so that it is there whole or not at all, and durable.
Status write_marker(rocksdb::Env& env, const std::string& path, const Marker& marker);

// Makes durable which files a folder has; or, of its parent, that the folder is there.
Status sync_folder(rocksdb::Env& env, const std::string& path);
Status sync_parent(rocksdb::Env& env, const std::string& path);

}  // namespace trellis
