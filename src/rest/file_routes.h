// What the routes of files share: each is there twice, as /v1/... and /k/{keyspace}/v1/...
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>
#include <vector>

#include "fs/file_systems.h"
#include "fs/files.h"
#include "rest/gate.h"
#include "rest/rest.h"

namespace trellis {

struct FilesCall {
  DataCall data;
  std::shared_ptr<Files> files;
  const Caller& caller() const { return data.caller; }
  FileSystem& fs() const { return files->fs(); }
};
// `captures`: how many the path has without the keyspace's.
Result<FilesCall> enter_files(const RestContext& context, const HttpRequest& request,
                              size_t captures);
// Likewise, and refuses who may not write: before anything is looked at, or sent.
Result<FilesCall> enter_files_to_write(const RestContext& context, const HttpRequest& request,
                                       size_t captures);

std::string_view file_type_name(FileType type);  // "file", "directory", "symlink" ...
// 2026-11-16T06:00:00.123456789Z; and as HTTP has it, which knows no part of a second.
std::string iso_time(int64_t unix_ns);
std::string http_time(int64_t unix_ns);
// Absent: it is none.
std::optional<int64_t> parse_http_time(std::string_view text);

// Bytes under `name` if they are text, else under `name`_base64.
void add_text_or_base64(boost::json::object& object, std::string_view name, ByteView bytes);
boost::json::object json_of(const FileAttributes& attributes);
boost::json::object json_of(const FileMetadata& metadata);

}  // namespace trellis
