#include "rocksdb_engine/data_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/env.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {

namespace {

constexpr std::string_view marker_name = "TRELLIS";
constexpr std::string_view marker_draft_name = "TRELLIS.new";
constexpr std::string_view engine_name = "rocksdb";

bool says(const rocksdb::Status& status, std::string_view words) {
  return status.ToString().find(words) != std::string::npos;
}

Status check(const rocksdb::Status& status, rocksdb::Env& env, const std::string& path) {
  if (status.ok()) return {};
  if (std::optional<Error> denied = denied_error(status, path)) return std::move(*denied);
  uint64_t free_bytes = 0;
  env.GetFreeSpace(path, &free_bytes).PermitUncheckedError();
  return open_error(status, free_bytes);
}

// The kernel's own answer: RocksDB would notice only after it had made files.
Status check_writable(const std::string& path) {
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK | X_OK, AT_EACCESS) == 0) return {};
  return denied_error(path, errno == EROFS);
}

Status make_folder(rocksdb::Env& env, const std::string& path) {
  const std::string parent = parent_of(path);
  if (parent != path && env.FileExists(parent).IsNotFound()) TRY(make_folder(env, parent));
  if (const rocksdb::Status made = env.CreateDirIfMissing(path); !made.ok()) {
    return folder_error(env, made, path);
  }
  return sync_folder(env, parent);
}

bool ends_with_any(const std::string& name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

// RocksDB would make a new store beside the data and then delete the data as unknown. Until the
// first CURRENT is durable it makes none of these files, so an interrupted creation passes.
Status check_not_beheaded(const std::vector<std::string>& names, const Marker& marker) {
  if (std::find(names.begin(), names.end(), "CURRENT") != names.end()) return {};
  const auto is_data = [](const std::string& name) {
    return ends_with_any(name, {".sst", ".log", ".blob"});
  };
  if (!marker.store.has_value() && std::none_of(names.begin(), names.end(), is_data)) return {};
  return Error{Code::corrupt,
               "the file CURRENT is missing though there was a store; nothing was changed; put "
               "CURRENT back or restore from a backup"};
}

}  // namespace

std::string store_path(const std::filesystem::path& given) {
  const std::filesystem::path path = given.lexically_normal();
  return (path.has_filename() || !path.has_relative_path() ? path : path.parent_path()).string();
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

Error folder_error(rocksdb::Env& env, const rocksdb::Status& status, const std::string& path) {
  if (std::optional<Error> denied = denied_error(status, path)) return std::move(*denied);
  Error error = read_error(status);
  if (error.code == Code::corrupt) return error;
  if (error.code == Code::no_space) {
    uint64_t free_bytes = 0;
    env.GetFreeSpace(parent_of(path), &free_bytes).PermitUncheckedError();
    return {Code::no_space, fmt::format("the disk is full ({} bytes free): free some space or give "
                                        "another folder ({})",
                                        free_bytes, status.ToString())};
  }
  std::error_code ignored;  // then it is no link that we know of
  if (std::filesystem::is_symlink(path, ignored)) {
    return {Code::invalid, fmt::format("{} is a link to what is not there: make the folder that it "
                                       "names, or give another folder",
                                       path)};
  }
  if (says(status, "Not a directory")) {
    return {Code::invalid, fmt::format("{} is a file, and no folder can be in it: give another "
                                       "folder",
                                       parent_of(path))};
  }
  if (says(status, "File name too long")) {
    return {Code::invalid, "the path is too long for this system: give another folder"};
  }
  if (says(status, "No such file or directory")) {  // though what it would be in is there
    return {Code::invalid,
            fmt::format("{} takes no new folders: give another folder", parent_of(path))};
  }
  return {Code::invalid,
          fmt::format("{} cannot be made: give another folder ({})", path, status.ToString())};
}

Result<Marker> parse_marker(std::string_view text) {
  std::map<std::string_view, std::string_view> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t space = line.find(' ');
    if (space != std::string_view::npos) lines[line.substr(0, space)] = line.substr(space + 1);
  }
  unsigned format = 0;
  const std::string_view number = lines["format"];
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), format);
  if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size() || format == 0) {
    return Error{Code::corrupt,
                 "the file TRELLIS does not say which format this is: restore it "
                 "from a backup"};
  }
  if (format > store_format) {
    return Error{Code::unsupported, fmt::format("format {} is newer than this build's {}: use a "
                                                "newer trellis",
                                                format, store_format)};
  }
  if (lines["engine"] != engine_name) {
    return Error{Code::unsupported, fmt::format("written for the engine '{}', not for '{}': choose "
                                                "that engine in the settings",
                                                lines["engine"], engine_name)};
  }
  Marker marker;
  if (const auto store = lines.find("store"); store != lines.end()) {
    const auto uuid = parse_uuid(store->second);
    if (!uuid.has_value()) {
      return Error{Code::corrupt,
                   "the file TRELLIS does not say which store this is: restore it from a backup"};
    }
    marker.store = *uuid;
  }
  return marker;
}

Status sync_folder(rocksdb::Env& env, const std::string& path) {
  std::unique_ptr<rocksdb::Directory> folder;
  TRY(check(env.NewDirectory(path, &folder), env, path));
  return check(folder->Fsync(), env, path);
}

Status sync_parent(rocksdb::Env& env, const std::string& path) {
  return sync_folder(env, parent_of(path));
}

Status write_marker(rocksdb::Env& env, const std::string& path, const Marker& marker) {
  const std::string draft = fmt::format("{}/{}", path, marker_draft_name);
  std::string text = fmt::format("format {}\nengine {}\n", store_format, engine_name);
  if (marker.store.has_value()) text += fmt::format("store {}\n", to_string(*marker.store));
  rocksdb::Status status = rocksdb::WriteStringToFile(&env, text, draft, true);
  if (status.ok()) status = env.RenameFile(draft, fmt::format("{}/{}", path, marker_name));
  if (!status.ok()) return folder_error(env, status, path);
  return sync_folder(env, path);
}

Result<Marker> prepare_data_directory(rocksdb::Env& env, const std::string& path, bool create) {
  if (env.FileExists(path).IsNotFound()) {
    if (!create) return Error{Code::not_found, "there is no such folder"};
    TRY(make_folder(env, path));
  }
  bool is_folder = false;
  TRY(check(env.IsDirectory(path, &is_folder), env, path));
  if (!is_folder) return Error{Code::invalid, "this is a file: give a folder"};
  if (&env == rocksdb::Env::Default()) TRY(check_writable(path));

  std::vector<std::string> names;
  TRY(check(env.GetChildren(path, &names), env, path));
  const auto ours = [](const std::string& name) {
    return name == "." || name == ".." || name == "lost+found" || name == marker_draft_name;
  };
  std::erase_if(names, ours);
  if (names.empty()) {
    if (!create) return Error{Code::not_found, "there is no store in this folder"};
    TRY(write_marker(env, path, {}));
    return Marker{};
  }
  if (std::find(names.begin(), names.end(), marker_name) == names.end()) {
    return Error{Code::invalid, fmt::format("the folder holds other things ({}) and no store: give "
                                            "an empty or a new folder",
                                            *std::min_element(names.begin(), names.end()))};
  }
  std::string text;
  TRY(check(rocksdb::ReadFileToString(&env, fmt::format("{}/{}", path, marker_name), &text), env,
            path));
  TRY_ASSIGN(const Marker marker, parse_marker(text));
  TRY(check_not_beheaded(names, marker));
  return marker;
}

}  // namespace trellis
