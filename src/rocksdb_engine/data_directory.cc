#include "rocksdb_engine/data_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/env.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {

namespace {

constexpr std::string_view marker_name = "TRELLIS";
constexpr std::string_view marker_draft_name = "TRELLIS.new";
constexpr std::string_view engine_name = "rocksdb";

Status check(const rocksdb::Status& status, rocksdb::Env& env, const std::string& path) {
  if (status.ok()) return {};
  uint64_t free_bytes = 0;
  env.GetFreeSpace(path, &free_bytes).PermitUncheckedError();
  Error error = open_error(status, free_bytes);
  if (status.ToString().find("Permission denied") != std::string::npos) {
    return Error{Code::denied, fmt::format("{}: give trellis the right to write there, or another "
                                           "folder",
                                           error.message)};
  }
  return error;
}

// The kernel's own answer: RocksDB would notice only after it had made files.
Status check_writable(const std::string& path) {
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK | X_OK, AT_EACCESS) == 0) return {};
  return Error{Code::denied,
               "the folder cannot be written: give trellis the right to, or another "
               "folder"};
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

Status make_folder(rocksdb::Env& env, const std::string& path) {
  const std::string parent = parent_of(path);
  if (parent != path && env.FileExists(parent).IsNotFound()) TRY(make_folder(env, parent));
  TRY(check(env.CreateDirIfMissing(path), env, path));
  return sync_folder(env, parent);
}

Status check_marker(std::string_view text) {
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
  return {};
}

bool ends_with_any(const std::string& name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

// RocksDB would make a new store beside the data and then delete the data as unknown. Until the
// first CURRENT is durable it makes none of these files, so an interrupted creation passes.
Status check_not_beheaded(const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), "CURRENT") != names.end()) return {};
  for (const std::string& name : names) {
    if (ends_with_any(name, {".sst", ".log", ".blob"})) {
      return Error{Code::corrupt, fmt::format("the file CURRENT is missing though there is data "
                                              "({}); nothing was changed; put CURRENT back or "
                                              "restore from a backup",
                                              name)};
    }
  }
  return {};
}

}  // namespace

Status sync_folder(rocksdb::Env& env, const std::string& path) {
  std::unique_ptr<rocksdb::Directory> folder;
  TRY(check(env.NewDirectory(path, &folder), env, path));
  return check(folder->Fsync(), env, path);
}

Status sync_parent(rocksdb::Env& env, const std::string& path) {
  return sync_folder(env, parent_of(path));
}

Status write_marker(rocksdb::Env& env, const std::string& path) {
  const std::string draft = fmt::format("{}/{}", path, marker_draft_name);
  const std::string text = fmt::format("format {}\nengine {}\n", store_format, engine_name);
  TRY(check(rocksdb::WriteStringToFile(&env, text, draft, true), env, path));
  TRY(check(env.RenameFile(draft, fmt::format("{}/{}", path, marker_name)), env, path));
  return sync_folder(env, path);
}

Status prepare_data_directory(rocksdb::Env& env, const std::string& path, bool create) {
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
    return write_marker(env, path);
  }
  if (std::find(names.begin(), names.end(), marker_name) == names.end()) {
    return Error{Code::invalid, fmt::format("the folder holds other things ({}) and no store: give "
                                            "an empty or a new folder",
                                            *std::min_element(names.begin(), names.end()))};
  }
  std::string marker;
  TRY(check(rocksdb::ReadFileToString(&env, fmt::format("{}/{}", path, marker_name), &marker), env,
            path));
  TRY(check_marker(marker));
  return check_not_beheaded(names);
}

}  // namespace trellis
