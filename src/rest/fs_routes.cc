// A file system as a whole, and what is done to files beside their content.
//
//   GET   /v1/fs/stat?path=        what is known of a file, or of the link itself
//   GET   /v1/fs/du?path=          what is below
//   GET   /v1/fs/figures           of all, and of that in the trash
//   POST  /v1/fs/copy, rename      {"from": ..., "to": ..., "if_not_exists": true}
//   GET, PUT  /v1/fs/quota?path=   {"bytes_max": ..., "inodes_max": ...}
//   GET, PUT  /v1/fs/trash         what is in it; {"keep_ms": ...}
//   POST  /v1/fs/trash/restore, /v1/fs/trash/empty
//   POST  /v1/fs/fsck              {"repair": true}: JSON lines, as it goes on
#include <fmt/format.h>

#include <mutex>
#include <thread>
#include <utility>

#include "base/job_control.h"
#include "fs/fs_error.h"
#include "fs/fsck.h"
#include "json/json_text.h"
#include "rest/answers.h"
#include "rest/file_routes.h"
#include "rest/fsck_lines.h"
#include "rest/raw_routes.h"
#include "rest/request_reading.h"
#include "rest/routes.h"

namespace trellis {
namespace {

constexpr size_t trash_limit_default = 1'000;
constexpr size_t trash_limit_max = 10'000;

Result<std::string> required_path(const HttpRequest& request) {
  TRY_ASSIGN(auto path, query_text(request, "path"));
  return std::move(path).value_or("/");
}

Result<HttpResponse> get_stat(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const FilesCall call, enter_files(context, request, 0));
  TRY(check_query(request, {"path", "follow"}));
  TRY_ASSIGN(const std::string path, required_path(request));
  TRY_ASSIGN(const auto follow, query_text(request, "follow"));
  StatOptions options;
  if (follow) {
    TRY_ASSIGN(options.follow, query_flag(request, "follow"));
  }
  TRY_ASSIGN(const FileMetadata found, call.files->stat(call.caller(), path, options));
  json::object object;
  add_text_or_base64(object, "path", path);
  for (const auto& member : json_of(found)) object[member.key()] = member.value();
  if (found.attributes.type == FileType::symlink) {
    TRY_ASSIGN(const Bytes target, call.fs().read_link(call.caller(), found.attributes.inode));
    add_text_or_base64(object, "target", target);
  }
  return json_answer(object);
}

json::object json_of(const TreeFigures& figures) {
  return {{"space", figures.space}, {"length", figures.length}, {"inodes", figures.inodes}};
}

Result<HttpResponse> get_du(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const FilesCall call, enter_files(context, request, 0));
  TRY(check_query(request, {"path"}));
  TRY_ASSIGN(const std::string path, required_path(request));
  TRY_ASSIGN(const FileMetadata found, call.files->stat(call.caller(), path));
  TRY_ASSIGN(const TreeFigures figures,
             call.fs().tree_figures(call.caller(), found.attributes.inode));
  return json_answer(json_of(figures));
}

Result<HttpResponse> get_figures(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const FilesCall call, enter_files(context, request, 0));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const FileSystemFigures figures, call.fs().figures(call.caller()));
  return json_answer(
      json::object{{"used", json_of(figures.used)}, {"trash", json_of(figures.trash)}});
}

// --- copy and rename ---

struct FromTo {
  Bytes from;
  Bytes to;
  bool if_not_exists = false;
};

Result<bool> read_flag(JsonMembers& members, std::string_view name) {
  const json::value* const value = members.find(name);
  if (value == nullptr || value->is_null()) return false;
  if (!value->is_bool()) return bad_body(fmt::format("{} is true or false", name));
  return value->as_bool();
}

Result<FromTo> read_from_to(const HttpRequest& request) {
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  DecodedBytes decoded;
  TRY_ASSIGN(const auto from, read_bytes(members, "from", "from_base64", decoded));
  TRY_ASSIGN(const auto to, read_bytes(members, "to", "to_base64", decoded));
  FromTo paths;
  TRY_ASSIGN(paths.if_not_exists, read_flag(members, "if_not_exists"));
  TRY(members.finish());
  if (!from || !to) return bad_body("it needs from and to");
  paths.from = *from;
  paths.to = *to;
  return paths;
}

Result<HttpResponse> copy_file(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const FilesCall call, enter_files_to_write(context, request, 0));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const FromTo paths, read_from_to(request));
  TRY_ASSIGN(const FileMetadata copied,
             call.files->copy(call.caller(), paths.from, paths.to,
                              {.conditions = {.if_not_exists = paths.if_not_exists}}));
  return json_answer(json_of(copied));
}

Result<HttpResponse> rename_file(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const FilesCall call, enter_files_to_write(context, request, 0));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const FromTo paths, read_from_to(request));
  TRY(call.files->rename(call.caller(), paths.from, paths.to,
                         {.if_not_exists = paths.if_not_exists}));
  return empty_answer();
}

// --- quota ---

Result<InodeId> directory_at(const FilesCall& call, const std::string& path) {
  TRY_ASSIGN(const FileMetadata found, call.files->stat(call.caller(), path));
  if (!found.is_directory()) return fs_error::not_a_directory(quote(path));
  return found.attributes.inode;
}

Result<HttpResponse> get_directory_quota(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const FilesCall call, enter_files(context, request, 0));
  TRY(check_query(request, {"path"}));
  TRY_ASSIGN(const std::string path, required_path(request));
  TRY_ASSIGN(const InodeId directory, directory_at(call, path));
  TRY_ASSIGN(const auto quota, call.fs().quota(call.caller(), directory));
  TRY_ASSIGN(const TreeFigures used, call.fs().tree_figures(call.caller(), directory));
  const FsQuota limits = quota.value_or(FsQuota{0, 0});
  return json_answer(json::object{
      {"bytes_max", limits.bytes_max}, {"inodes_max", limits.inodes_max}, {"used", json_of(used)}});
}

Result<HttpResponse> put_directory_quota(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const FilesCall call, enter_files_to_write(context, request, 0));
  TRY(check_query(request, {"path"}));
  TRY_ASSIGN(const std::string path, required_path(request));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  TRY_ASSIGN(const auto bytes_max, members.number("bytes_max"));
  TRY_ASSIGN(const auto inodes_max, members.number("inodes_max"));
  TRY(members.finish());
  TRY_ASSIGN(const InodeId directory, directory_at(call, path));
  TRY(call.fs().set_quota(call.caller(), directory,
                          {bytes_max.value_or(0), inodes_max.value_or(0)}));
  return empty_answer();
}

// --- trash ---

Result<HttpResponse> get_trash(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const FilesCall call, enter_files(context, request, 0));
  TRY(check_query(request, {"start_after", "limit"}));
  TRY_ASSIGN(const auto start_after, query_text(request, "start_after"));
  TRY_ASSIGN(const size_t limit, query_limit(request, trash_limit_default, trash_limit_max));
  TRY_ASSIGN(const uint64_t keep_ms, call.fs().trash_ms(call.caller()));
  Bytes out = fmt::format("{{\"keep_ms\":{},\"entries\":[", keep_ms);
  bool is_first = true;
  TRY_ASSIGN(
      const DirectoryPage page,
      call.fs().list_trash(
          call.caller(), start_after.value_or(""), limit, [&](const FileSystem::TrashEntry& entry) {
            json::object object;
            add_text_or_base64(object, "item", Bytes(entry.hour) + "/" + Bytes(entry.stored_name));
            add_text_or_base64(object, "name", entry.name);
            object["parent"] = entry.parent.value;
            object["inode"] = entry.entry.inode.value;
            object["type"] = file_type_name(entry.entry.type);
            object["hour"] = std::string(entry.hour);
            if (!std::exchange(is_first, false)) out += ',';
            append_json(out, object);
            return Visit::go_on;
          }));
  out += ']';
  if (page.resume) {
    out += ',';
    append_json_bytes(out, "resume", *page.resume);
  }
  return text_answer(out + "}");
}

Result<HttpResponse> put_trash(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const FilesCall call, enter_files_to_write(context, request, 0));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  TRY_ASSIGN(const auto keep_ms, members.number("keep_ms"));
  TRY(members.finish());
  if (!keep_ms) return bad_body("it needs keep_ms: 0 is no trash");
  TRY(call.fs().set_trash_ms(call.caller(), *keep_ms));
  return empty_answer();
}

Result<HttpResponse> restore_from_trash(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const FilesCall call, enter_files_to_write(context, request, 0));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  DecodedBytes decoded;
  TRY_ASSIGN(const auto item, read_bytes(members, "item", "item_base64", decoded));
  TRY_ASSIGN(const auto to, read_bytes(members, "to", "to_base64", decoded));
  TRY(members.finish());
  if (!item) return bad_body("it needs item, as the list of the trash has it");
  if (const size_t slash = item->find('/'); slash == ByteView::npos || slash + 1 == item->size())
    return fs_error::no_entry(*item);
  std::optional<FileSystem::RestoreTo> place;
  FilePath path;
  if (to) {
    TRY_ASSIGN(path, parse_path(*to));
    if (path.is_root()) return fs_error::exists("/");
    FilePath above = path;
    above.names.pop_back();
    above.is_directory = true;
    TRY(call.files->create_dir(call.caller(), above.text()));  // as for all that writes
    TRY_ASSIGN(const InodeId directory, directory_at(call, above.text()));
    place = FileSystem::RestoreTo{directory, path.names.back()};
  }
  TRY_ASSIGN(const FileAttributes restored, call.fs().restore(call.caller(), *item, place));
  return json_answer(json_of(restored));
}

Result<HttpResponse> empty_trash(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const FilesCall call, enter_files_to_write(context, request, 0));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const size_t hours, call.fs().empty_trash(call.caller()));
  return json_answer(json::object{{"hours", hours}});
}

// --- fsck ---

// A thread checks, and this hands on what it says. REQUIRES: begin_fsck, which it ends.
class FsckStream final : public BodySource {
 public:
  FsckStream(FilesCall call, FsckOptions options) : call_(std::move(call)), options_(options) {}
  ~FsckStream() override {
    control_.cancel();
    if (thread_.joinable())
      thread_.join();
    else
      call_.fs().end_fsck();
  }

  void on_start(Waker waker) override {
    waker_ = std::move(waker);
    thread_ = std::thread([this] { run(); });
  }

  Result<Chunk> next() override {
    const std::lock_guard lock(mutex_);
    Chunk chunk{.bytes = std::exchange(lines_, {}), .then = Chunk::Then::pause, .wait_ms = 1'000};
    control_.pause(false);
    if (is_done_) chunk.then = Chunk::Then::end;
    if (chunk.bytes.empty() && !is_done_) chunk.bytes = fsck_progress_line(control_.progress());
    return chunk;
  }

 private:
  // Who cannot keep up with findings makes the check wait.
  static constexpr size_t lines_bytes_max = size_t{1} << 20;

  void add_line(ByteView line) {
    {
      const std::lock_guard lock(mutex_);
      if (lines_.size() > lines_bytes_max) control_.pause(true);
      lines_ += line;
    }
    waker_.wake();
  }

  void run() {
    const auto report =
        fsck(call_.fs(), call_.caller(), options_, control_,
             [&](const FsckFinding& finding) { add_line(fsck_finding_line(finding)); });
    call_.fs().end_fsck();
    add_line(fsck_end_line(report));
    {
      const std::lock_guard lock(mutex_);
      is_done_ = true;
    }
    waker_.wake();
  }

  const FilesCall call_;
  const FsckOptions options_;
  JobControl control_;
  Waker waker_;
  std::mutex mutex_;
  Bytes lines_;
  bool is_done_ = false;
  std::thread thread_;
};

Result<HttpResponse> check_files(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(FilesCall call, enter_files(context, request, 0));
  TRY(check_query(request, {}));
  FsckOptions options;
  if (!request.body.empty()) {
    TRY_ASSIGN(const json::value body, parse_json(request.body));
    TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
    TRY_ASSIGN(options.repair, read_flag(members, "repair"));
    TRY_ASSIGN(const bool quick, read_flag(members, "quick"));
    options.read_blocks = !quick;
    TRY(members.finish());
  }
  TRY_ASSIGN(const Keyspace keyspace, call.data.tenant->keyspace());
  TRY(check_access(call.caller(), options.repair ? Access::write : Access::read, keyspace.state,
                   keyspace.name));
  HttpResponse response;
  response.content_type = "application/x-ndjson";
  // Each is a thread that reads all there is.
  if (!call.fs().begin_fsck())
    return Error{Code::conflict, "these files are being checked already: wait until that is done",
                 "fsck_running"};
  response.stream = std::make_unique<FsckStream>(std::move(call), options);
  return response;
}

}  // namespace

void add_fs_routes(const RestContext& context, std::vector<Route>& routes) {
  using enum HttpMethod;
  const auto add = [&](HttpMethod method, std::string_view pattern, std::string_view of_keyspace,
                       Handler handler, size_t body_bytes_max = 0) {
    routes.push_back(make_route(context, {method, pattern, handler, body_bytes_max}));
    routes.push_back(make_route(context, {method, of_keyspace, handler, body_bytes_max}));
  };
  add(get, "/v1/fs/stat", "/k/{keyspace}/v1/fs/stat", get_stat);
  add(get, "/v1/fs/du", "/k/{keyspace}/v1/fs/du", get_du);
  add(get, "/v1/fs/figures", "/k/{keyspace}/v1/fs/figures", get_figures);
  add(post, "/v1/fs/copy", "/k/{keyspace}/v1/fs/copy", copy_file, small_body_bytes_max);
  add(post, "/v1/fs/rename", "/k/{keyspace}/v1/fs/rename", rename_file, small_body_bytes_max);
  add(get, "/v1/fs/quota", "/k/{keyspace}/v1/fs/quota", get_directory_quota);
  add(put, "/v1/fs/quota", "/k/{keyspace}/v1/fs/quota", put_directory_quota, small_body_bytes_max);
  add(get, "/v1/fs/trash", "/k/{keyspace}/v1/fs/trash", get_trash);
  add(put, "/v1/fs/trash", "/k/{keyspace}/v1/fs/trash", put_trash, small_body_bytes_max);
  add(post, "/v1/fs/trash/restore", "/k/{keyspace}/v1/fs/trash/restore", restore_from_trash,
      small_body_bytes_max);
  add(post, "/v1/fs/trash/empty", "/k/{keyspace}/v1/fs/trash/empty", empty_trash);
  add(post, "/v1/fs/fsck", "/k/{keyspace}/v1/fs/fsck", check_files, small_body_bytes_max);
}

}  // namespace trellis
