#include "rocksdb_engine/checkpoint.h"

#include <fmt/format.h>
#include <rocksdb/env.h>
#include <rocksdb/utilities/checkpoint.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "rocksdb_engine/data_directory.h"
#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {

namespace {

bool is_store_file(std::string_view name) {
  for (const std::string_view start : {"CURRENT", "MANIFEST-", "OPTIONS-", "IDENTITY", "TRELLIS"}) {
    if (name.starts_with(start)) return true;
  }
  return name.ends_with(".sst") || name.ends_with(".log") || name.ends_with(".blob");
}

// Removes a copy that was never finished. Anything else of that name is somebody's and stays.
Status remove_unfinished(rocksdb::Env& env, const std::string& part) {
  if (env.FileExists(part).IsNotFound()) return {};
  const Error in_the_way{Code::invalid,
                         fmt::format("{} is in the way and is no unfinished checkpoint: move it "
                                     "away or give another folder",
                                     part)};
  std::vector<std::string> names;
  if (!env.GetChildren(part, &names).ok()) return in_the_way;
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  if (!std::all_of(names.begin(), names.end(), is_store_file)) return in_the_way;
  rocksdb::Status status;
  for (const std::string& name : names) {
    if (status.ok()) status = env.DeleteFile(fmt::format("{}/{}", part, name));
  }
  if (status.ok()) status = env.DeleteDir(part);
  if (status.ok()) return {};
  return Error{Code::unavailable, fmt::format("an unfinished checkpoint cannot be removed: remove "
                                              "{} yourself or give another folder ({})",
                                              part, status.ToString())};
}

Status check_place(rocksdb::Env& env, const std::string& path) {
  if (path.empty()) return Error{Code::invalid, "the path is empty: give a new folder"};
  if (env.FileExists(path).ok()) {
    return Error{Code::exists, path + " is there already: give a new folder"};
  }
  const std::string parent = parent_of(path);
  bool is_folder = false;
  if (env.IsDirectory(parent, &is_folder).ok() && is_folder) return {};
  return Error{Code::invalid, parent + " is no folder: make it or give another folder"};
}

Status copy(rocksdb::DB& db, const Marker& marker, const std::string& part) {
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(&db, &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (status.ok()) status = checkpoint->CreateCheckpoint(part);
  if (!status.ok()) return folder_error(*db.GetEnv(), status, part);
  return write_marker(*db.GetEnv(), part, marker);
}

Status copy_and_rename(rocksdb::DB& db, const Marker& marker, const std::string& part,
                       const std::string& path) {
  TRY(copy(db, marker, part));
  const rocksdb::Status renamed = db.GetEnv()->RenameFile(part, path);
  if (!renamed.ok()) return folder_error(*db.GetEnv(), renamed, path);
  return sync_parent(*db.GetEnv(), path);
}

}  // namespace

Status make_checkpoint(rocksdb::DB& db, const Marker& marker, const std::string& path) {
  rocksdb::Env& env = *db.GetEnv();
  TRY(check_place(env, path));
  const std::string part = path + ".part";
  TRY(remove_unfinished(env, part));
  Status made = copy_and_rename(db, marker, part, path);
  if (made.has_value()) return made;
  discard(remove_unfinished(env, part));  // if that fails too, the next checkpoint does it
  return with_context("checkpoint in " + path, std::move(made).error());
}

}  // namespace trellis
