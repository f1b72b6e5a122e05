// Files over HTTP: content, listings, removal.
//
//   GET, HEAD  /v1/files/a/b     content, with ranges and conditions
//   GET        /v1/files/a/      what is in the directory
//   PUT        /v1/files/a/b     the file is there, complete, when it is answered
//   PUT        /v1/files/a/      a directory
//   DELETE     /v1/files/a/b
#include "rest/file_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fs/fs_error.h"
#include "json/json_body.h"
#include "json/json_text.h"
#include "net/ascii.h"
#include "rest/answers.h"
#include "rest/entity_tags.h"
#include "rest/request_reading.h"
#include "rest/routes.h"

namespace trellis {
namespace {

constexpr size_t file_captures = 1;
constexpr size_t piece_bytes = size_t{1} << 20;
constexpr size_t file_body_bytes_max = size_t{1} << 62;  // whatever a disk can hold
constexpr std::string_view user_header = "X-Trellis-Meta-";
constexpr size_t list_limit_default = 1'000;
constexpr size_t list_limit_max = 10'000;
// Of a file that is replaced again and again while somebody wants to read it.
constexpr unsigned opens_max = 16;

std::string in_quotes(std::string_view tag) { return fmt::format("\"{}\"", tag); }

// --- reading ---

Error condition_failed(std::string_view header) {
  return {Code::refused, fmt::format("{} does not hold", header), "condition_failed"};
}

// Whether the client has it already (304). In HTTP's order (RFC 9110, 13.2.2).
Result<bool> is_known(const HttpRequest& request, const FileMetadata& file) {
  constexpr int64_t second_ns = 1'000'000'000;
  const int64_t modified_s = file.attributes.modified_ns / second_ns;
  const auto if_match = request.header("If-Match");
  const auto if_none_match = request.header("If-None-Match");
  if (!if_match.empty()) {
    if (!names_tag(if_match, in_quotes(file.etag()), TagMatch::strong))
      return condition_failed("If-Match");
  } else if (const auto since = parse_http_time(request.header("If-Unmodified-Since"))) {
    if (modified_s > *since / second_ns) return condition_failed("If-Unmodified-Since");
  }
  if (!if_none_match.empty())
    return names_tag(if_none_match, in_quotes(file.etag()), TagMatch::weak);
  const auto since = parse_http_time(request.header("If-Modified-Since"));
  return since && modified_s <= *since / second_ns;
}

struct ByteRange {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Whatever number of digits it has: what is behind every file is as good as any other such place.
std::optional<uint64_t> parse_position(std::string_view text) {
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  return is_number ? parse_decimal(text).value_or(UINT64_MAX) : std::optional<uint64_t>();
}

// Absent: all of it, as for a range in a form that is not understood, or several (RFC 9110, 14.2).
// Reason: range_not_satisfied.
Result<std::optional<ByteRange>> read_range(const HttpRequest& request, const FileMetadata& file) {
  const std::string_view header = request.header("Range");
  constexpr std::string_view unit = "bytes=";
  const std::string_view if_range = request.header("If-Range");
  if (!header.starts_with(unit) || header.find(',') != std::string_view::npos ||
      (!if_range.empty() && if_range != in_quotes(file.etag())))
    return std::optional<ByteRange>();
  const std::string_view range = header.substr(unit.size());
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::optional<ByteRange>();
  const uint64_t size = file.attributes.size;
  const auto first = parse_position(range.substr(0, dash));
  const auto last = parse_position(range.substr(dash + 1));
  const bool has_end = dash + 1 < range.size();
  if (dash == 0) {
    if (!last) return std::optional<ByteRange>();
    if (*last > 0 && size > 0) {
      const uint64_t wanted = std::min(*last, size);
      return std::optional<ByteRange>({size - wanted, wanted});
    }
  } else {
    if (!first || (has_end && (!last || *last < *first))) return std::optional<ByteRange>();
    if (*first < size) {
      const uint64_t end = has_end ? std::min(*last, size - 1) : size - 1;
      return std::optional<ByteRange>({*first, end - *first + 1});
    }
  }
  return Error{Code::invalid, fmt::format("the file has {} bytes, and none of that range", size),
               "range_not_satisfied"};
}

class FileDownload final : public BodySource {
 public:
  FileDownload(const RestContext& context, FilesCall call, std::string authorization,
               FileReader reader)
      : context_(context),
        call_(std::move(call)),
        authorization_(std::move(authorization)),
        reader_(std::move(reader)) {}

  Result<Chunk> next() override {
    TRY(check_still_valid(context_, authorization_));
    Chunk chunk;
    chunk.bytes.resize(std::min<uint64_t>(piece_bytes, reader_.end() - reader_.begin() - given_));
    if (!chunk.bytes.empty()) {
      auto got = reader_.read(chunk.bytes);
      if (!got && given_ > 0 && got.error().reason == "rate_exceeded") {
        const uint64_t wait_ms = std::min<uint64_t>(got.error().retry_after_ms, 60'000);
        return Chunk{
            .bytes = {}, .then = Chunk::Then::pause, .wait_ms = static_cast<uint32_t>(wait_ms)};
      }
      if (!got) return std::move(got).error();
      chunk.bytes.resize(*got);
      given_ += *got;
    }
    const bool is_done = chunk.bytes.empty() || given_ == reader_.end() - reader_.begin();
    chunk.then = is_done ? Chunk::Then::end : Chunk::Then::more;
    return chunk;
  }

 private:
  const RestContext& context_;
  const FilesCall call_;
  const std::string authorization_;
  FileReader reader_;
  uint64_t given_ = 0;
};

void add_file_headers(HttpResponse& response, const FileMetadata& file) {
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) response.headers.push_back({std::string(name), value});
  };
  add("ETag", in_quotes(file.etag()));
  add("Last-Modified", http_time(file.attributes.modified_ns));
  add("Accept-Ranges", "bytes");
  add("Content-Type",
      file.headers.content_type.empty() ? "application/octet-stream" : file.headers.content_type);
  add("Content-Disposition", file.headers.content_disposition);
  add("Content-Encoding", file.headers.content_encoding);
  add("Cache-Control", file.headers.cache_control);
  for (const auto& [name, value] : file.headers.user) add(std::string(user_header) + name, value);
}

Result<HttpResponse> get_content(const RestContext& context, const HttpRequest& request,
                                 FilesCall call, ByteView path, const FileMetadata& file) {
  HttpResponse response;
  add_file_headers(response, file);
  TRY_ASSIGN(const bool known, is_known(request, file));
  if (known) {
    response.status = 304;
    std::erase_if(response.headers, [](const auto& header) {
      return header.name == "Content-Type" || header.name == "Content-Encoding";
    });
    return response;
  }
  auto range = read_range(request, file);
  if (!range) {
    HttpResponse refused = v1_error(range.error());
    refused.headers.push_back({"Content-Range", fmt::format("bytes */{}", file.attributes.size)});
    return refused;
  }
  const ByteRange wanted = range->value_or(ByteRange{0, file.attributes.size});
  response.stream_bytes = wanted.size;
  if (range->has_value()) {
    response.status = 206;
    response.headers.push_back(
        {"Content-Range", fmt::format("bytes {}-{}/{}", wanted.offset,
                                      wanted.offset + wanted.size - 1, file.attributes.size)});
  }
  if (request.method == HttpMethod::head) return response;
  TRY_ASSIGN(FileReader reader, call.files->reader(call.caller(), path,
                                                   {.conditions = {.if_match = file.etag()},
                                                    .offset = wanted.offset,
                                                    .size = wanted.size}));
  response.stream = std::make_unique<FileDownload>(
      context, std::move(call), std::string(request.header("Authorization")), std::move(reader));
  return response;
}

// One page; the next one is asked for with its last path as start_after.
Result<HttpResponse> get_listing(const HttpRequest& request, const FilesCall& call, ByteView path) {
  TRY(check_query(request, {"recursive", "start_after", "limit", "prefix"}));
  TRY_ASSIGN(const bool recursive, query_flag(request, "recursive"));
  TRY_ASSIGN(auto start_after, query_text(request, "start_after"));
  TRY_ASSIGN(const auto prefix, query_text(request, "prefix"));
  TRY_ASSIGN(const size_t limit, query_limit(request, list_limit_default, list_limit_max));
  const Bytes listed = Bytes(path) + prefix.value_or("");
  TRY_ASSIGN(FileLister lister,
             call.files->lister(call.caller(), listed,
                                {.recursive = recursive,
                                 .start_after = std::move(start_after).value_or(""),
                                 .attributes = true,
                                 .page_entries = std::min<size_t>(limit, 1'024)}));
  Bytes out = "{\"entries\":[";
  std::optional<Bytes> last;
  size_t entries = 0;
  for (; entries < limit; entries++) {
    TRY_ASSIGN(const auto entry, lister.next());
    if (!entry) break;
    if (entries > 0) out += ',';
    json::object object;
    add_text_or_base64(object, "path", entry->path);
    if (entry->attributes)
      for (const auto& member : json_of(*entry->attributes)) object[member.key()] = member.value();
    else
      object["type"] = file_type_name(entry->entry.type);
    append_json(out, object);
    last = entry->path;
  }
  out += ']';
  if (entries == limit) {
    out += ',';
    append_json_bytes(out, "resume", *last);
  }
  return text_answer(out + "}");
}

Result<HttpResponse> get_file(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(FilesCall call, enter_files(context, request, file_captures));
  const std::string& path = request.captures.back();
  if (path.empty() || path.ends_with('/')) {
    if (request.method == HttpMethod::get) return get_listing(request, call, path);
    TRY_ASSIGN(const FileMetadata found, call.files->stat(call.caller(), path));
    HttpResponse response;
    response.headers.push_back({"Last-Modified", http_time(found.attributes.modified_ns)});
    response.headers.push_back({"X-Trellis-Type", "directory"});
    return response;
  }
  TRY(check_query(request, {}));
  for (unsigned attempt = 1;; attempt++) {
    TRY_ASSIGN(const FileMetadata file, call.files->stat(call.caller(), path));
    if (file.is_directory())
      return Error{Code::invalid, fmt::format("{} is a directory: ask for {}/", quote(path), path),
                   "is_a_directory"};
    auto response = get_content(context, request, call, path, file);
    // Replaced since: the condition that failed is ours.
    const bool replaced = !response && response.error().reason == "condition_failed" &&
                          request.header("If-Match").empty() &&
                          request.header("If-Unmodified-Since").empty();
    if (!replaced || attempt == opens_max) return response;
  }
}

// --- writing ---

Result<std::string> read_tag_or_any(std::string_view header, std::string_view value) {
  if (value == "*") return std::string(value);
  return read_tag(header, value);
}

// A condition that would not be looked at must not be taken for one that holds.
Status refuse_conditions(const HttpRequest& request,
                         std::initializer_list<std::string_view> headers) {
  for (const std::string_view name : headers)
    if (!request.header(name).empty())
      return bad_condition(fmt::format("{} is not understood here", name));
  return {};
}

Result<WriteOptions> read_write_options(const HttpRequest& request) {
  WriteOptions options;
  for (const HttpHeaderView& header : request.headers) {
    const auto is = [&](std::string_view name) { return equals_ignoring_case(header.name, name); };
    if (is("Content-Type")) options.headers.content_type = header.value;
    if (is("Content-Disposition")) options.headers.content_disposition = header.value;
    if (is("Content-Encoding")) options.headers.content_encoding = header.value;
    if (is("Cache-Control")) options.headers.cache_control = header.value;
    if (header.name.size() > user_header.size() &&
        equals_ignoring_case(header.name.substr(0, user_header.size()), user_header)) {
      std::string name(header.name.substr(user_header.size()));
      std::ranges::transform(name, name.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      });
      options.headers.user[name] = header.value;
    }
    if (is("If-Match")) {
      TRY_ASSIGN(options.conditions.if_match, read_tag_or_any("If-Match", header.value));
    }
    if (is("If-None-Match")) {
      TRY_ASSIGN(options.conditions.if_none_match, read_tag_or_any("If-None-Match", header.value));
    }
  }
  if (options.conditions.if_none_match == "*") {
    options.conditions.if_none_match.clear();
    options.conditions.if_not_exists = true;
  }
  return options;
}

HttpResponse written_answer(const FileMetadata& file, unsigned status) {
  HttpResponse response = json_answer(json_of(file), status);
  response.headers.push_back({"ETag", in_quotes(file.etag())});
  return response;
}

class FileUpload final : public BodySink {
 public:
  FileUpload(const RestContext& context, FilesCall call, std::string authorization,
             FileWriter writer)
      : context_(context),
        call_(std::move(call)),
        authorization_(std::move(authorization)),
        writer_(std::move(writer)) {}

  Status write(ByteView piece) override {
    // A client that is slow fills the writer's buffer less often than a session has to be renewed.
    TRY(call_.files->keep_alive(call_.caller()));
    return writer_.write(piece);
  }

  HttpResponse finish() override {
    if (const Status valid = check_still_valid(context_, authorization_); !valid)
      return v1_error(valid.error());
    const auto written = writer_.close();
    return written ? written_answer(*written, 200) : v1_error(written.error());
  }

 private:
  const RestContext& context_;
  const FilesCall call_;
  const std::string authorization_;
  FileWriter writer_;
};

// Each piece is there when it is written: what came before an error stays.
class FileAppend final : public BodySink {
 public:
  FileAppend(const RestContext& context, FilesCall call, std::string authorization, Bytes path,
             WriteOptions options)
      : context_(context),
        call_(std::move(call)),
        authorization_(std::move(authorization)),
        path_(std::move(path)),
        options_(std::move(options)) {}

  Status write(ByteView piece) override {
    TRY(check_still_valid(context_, authorization_));
    auto appended = call_.files->append(call_.caller(), path_, piece, options_);
    // The condition held when the first piece was written: it cannot be said that nothing was.
    if (!appended && written_ && appended.error().reason == "condition_failed")
      return fs_error::changed_meanwhile("the file");
    TRY(appended);
    written_ = std::move(*appended);
    if (!options_.conditions.if_match.empty()) options_.conditions.if_match = written_->etag();
    return {};
  }

  HttpResponse finish() override {
    if (!written_)
      if (const Status made = write({}); !made) return v1_error(made.error());
    return written_answer(*written_, 200);
  }

 private:
  const RestContext& context_;
  const FilesCall call_;
  const std::string authorization_;
  const Bytes path_;
  WriteOptions options_;
  std::optional<FileMetadata> written_;
};

class DirectoryUpload final : public BodySink {
 public:
  DirectoryUpload(FilesCall call, Bytes path) : call_(std::move(call)), path_(std::move(path)) {}

  Status write(ByteView piece) override {
    if (piece.empty()) return {};
    return Error{Code::invalid, "a path that ends with / is a directory, which has no content",
                 "is_a_directory"};
  }

  HttpResponse finish() override {
    const auto made = call_.files->create_dir(call_.caller(), path_);
    if (!made) return v1_error(made.error());
    const auto found = call_.files->stat(call_.caller(), path_);
    return found ? json_answer(json_of(*found), 200) : v1_error(found.error());
  }

 private:
  const FilesCall call_;
  const Bytes path_;
};

Result<std::unique_ptr<BodySink>> open_file_upload(const RestContext& context,
                                                   const HttpRequest& request) {
  TRY_ASSIGN(FilesCall call, enter_files_to_write(context, request, file_captures));
  TRY(check_query(request, {"append"}));
  TRY_ASSIGN(const bool is_append, query_flag(request, "append"));
  const std::string& path = request.captures.back();
  const bool is_directory = path.empty() || path.ends_with('/');
  TRY(refuse_conditions(request, {"If-Unmodified-Since"}));
  if (is_directory) TRY(refuse_conditions(request, {"If-Match"}));
  if (is_append || is_directory) TRY(refuse_conditions(request, {"If-None-Match"}));
  if (is_directory) return std::make_unique<DirectoryUpload>(std::move(call), path);
  TRY_ASSIGN(WriteOptions options, read_write_options(request));
  std::string authorization(request.header("Authorization"));
  if (is_append)
    return std::make_unique<FileAppend>(context, std::move(call), std::move(authorization), path,
                                        std::move(options));
  TRY_ASSIGN(FileWriter writer, call.files->writer(call.caller(), path, std::move(options)));
  return std::make_unique<FileUpload>(context, std::move(call), std::move(authorization),
                                      std::move(writer));
}

Result<HttpResponse> delete_file(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const FilesCall call, enter_files_to_write(context, request, file_captures));
  TRY(check_query(request, {"recursive"}));
  TRY_ASSIGN(const bool recursive, query_flag(request, "recursive"));
  const std::string& path = request.captures.back();
  const std::string_view if_match = request.header("If-Match");
  TRY(refuse_conditions(request, {"If-None-Match", "If-Unmodified-Since"}));
  if (recursive || path.ends_with('/')) TRY(refuse_conditions(request, {"If-Match"}));
  RemoveOptions options;
  if (!if_match.empty()) {
    TRY_ASSIGN(options.if_match, read_tag_or_any("If-Match", if_match));
  }
  if (recursive)
    TRY(call.files->remove_all(call.caller(), path));
  else
    TRY(call.files->remove(call.caller(), path, options));
  return empty_answer();
}

}  // namespace

void add_file_routes(const RestContext& context, std::vector<Route>& routes) {
  using enum HttpMethod;
  for (const std::string_view pattern : {"/v1/files/{path*}", "/k/{keyspace}/v1/files/{path*}"}) {
    const RouteSpec specs[] = {
        {get, pattern, get_file}, {head, pattern, get_file}, {del, pattern, delete_file}};
    for (const RouteSpec& spec : specs) routes.push_back(make_route(context, spec));
    Route upload;
    upload.method = put;
    upload.pattern = pattern;
    upload.body = Route::Body::streamed;
    upload.body_bytes_max = file_body_bytes_max;
    upload.runs = Route::Runs::worker;
    upload.open = [&context](const HttpRequest& request) {
      return open_file_upload(context, request);
    };
    routes.push_back(std::move(upload));
  }
}

}  // namespace trellis
