#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/utf8.h"
#include "json/json_text.h"
#include "rest/file_routes.h"
#include "rest/raw_routes.h"

namespace trellis {
namespace {

constexpr int64_t second_ns = 1'000'000'000;

int64_t whole_seconds(int64_t unix_ns) {
  return unix_ns / second_ns - (unix_ns % second_ns < 0 ? 1 : 0);
}

std::tm utc(int64_t unix_s) {
  const auto time = static_cast<time_t>(unix_s);
  std::tm parts{};
  gmtime_r(&time, &parts);
  return parts;
}

constexpr std::array<std::string_view, 7> days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

Result<FilesCall> enter_files(const RestContext& context, const HttpRequest& request,
                              size_t captures) {
  TRY_ASSIGN(DataCall data, enter_data(context, request, keyspace_of_path(request, captures)));
  TRY_ASSIGN(auto files, context.files.files_of(data.tenant));
  return FilesCall{std::move(data), std::move(files)};
}

Result<FilesCall> enter_files_to_write(const RestContext& context, const HttpRequest& request,
                                       size_t captures) {
  TRY_ASSIGN(FilesCall call, enter_files(context, request, captures));
  TRY_ASSIGN(const Keyspace keyspace, call.data.tenant->keyspace());
  TRY(check_access(call.caller(), Access::write, keyspace.state, keyspace.name));
  return call;
}

std::string_view file_type_name(FileType type) {
  switch (type) {
    case FileType::fifo: return "fifo";
    case FileType::character_device: return "character_device";
    case FileType::directory: return "directory";
    case FileType::block_device: return "block_device";
    case FileType::regular: return "file";
    case FileType::symlink: return "symlink";
    case FileType::socket: return "socket";
  }
  return "unknown";
}

std::string iso_time(int64_t unix_ns) {
  const int64_t unix_s = whole_seconds(unix_ns);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z", utc(unix_s), unix_ns - unix_s * second_ns);
}

std::string http_time(int64_t unix_ns) {
  const std::tm parts = utc(whole_seconds(unix_ns));
  // Not by the locale: HTTP wants English names.
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     days[static_cast<size_t>(parts.tm_wday)], parts.tm_mday,
                     months[static_cast<size_t>(parts.tm_mon)], parts.tm_year + 1900, parts.tm_hour,
                     parts.tm_min, parts.tm_sec);
}

// "Sun, 06 Nov 1994 08:49:37 GMT", the one form that is still sent.
std::optional<int64_t> parse_http_time(std::string_view text) {
  const auto number = [&](size_t at, size_t size) {
    int value = 0;
    for (const char c : text.substr(at, size)) {
      if (c < '0' || c > '9') return -1;
      value = value * 10 + (c - '0');
    }
    return value;
  };
  if (text.size() != 29 || !text.ends_with(" GMT")) return std::nullopt;
  std::tm parts{};
  parts.tm_mday = number(5, 2);
  parts.tm_year = number(12, 4) - 1900;
  parts.tm_hour = number(17, 2);
  parts.tm_min = number(20, 2);
  parts.tm_sec = number(23, 2);
  const auto month = std::find(months.begin(), months.end(), text.substr(8, 3));
  if (month == months.end() || parts.tm_mday < 1 || parts.tm_mday > 31 || parts.tm_year < -1900 ||
      parts.tm_hour < 0 || parts.tm_hour > 23 || parts.tm_min < 0 || parts.tm_min > 59 ||
      parts.tm_sec < 0 || parts.tm_sec > 60)
    return std::nullopt;
  parts.tm_mon = static_cast<int>(month - months.begin());
  const time_t unix_s = timegm(&parts);
  if (unix_s > INT64_MAX / second_ns || unix_s < INT64_MIN / second_ns) return std::nullopt;
  return static_cast<int64_t>(unix_s) * second_ns;
}

void add_text_or_base64(json::object& object, std::string_view name, ByteView bytes) {
  if (is_utf8(bytes))
    object[name] = bytes;
  else
    object[std::string(name) + "_base64"] = base64_encode(bytes);
}

json::object json_of(const FileAttributes& attributes) {
  json::object object;
  object["type"] = file_type_name(attributes.type);
  object["inode"] = attributes.inode.value;
  object["size"] = attributes.size;
  object["space"] = attributes.space;
  object["mode"] = fmt::format("{:04o}", attributes.mode);
  object["uid"] = attributes.uid;
  object["gid"] = attributes.gid;
  object["links"] = attributes.links;
  object["version"] = attributes.version;
  object["modified"] = iso_time(attributes.modified_ns);
  object["changed"] = iso_time(attributes.changed_ns);
  object["accessed"] = iso_time(attributes.accessed_ns);
  object["born"] = iso_time(attributes.born_ns);
  return object;
}

json::object json_of(const FileMetadata& metadata) {
  json::object object = json_of(metadata.attributes);
  if (!metadata.is_directory()) object["etag"] = metadata.etag();
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) add_text_or_base64(object, name, value);
  };
  add("content_type", metadata.headers.content_type);
  add("content_disposition", metadata.headers.content_disposition);
  add("content_encoding", metadata.headers.content_encoding);
  add("cache_control", metadata.headers.cache_control);
  if (!metadata.headers.user.empty()) {
    json::object user;
    for (const auto& [name, value] : metadata.headers.user) add_text_or_base64(user, name, value);
    object["user_metadata"] = std::move(user);
  }
  return object;
}

}  // namespace trellis
