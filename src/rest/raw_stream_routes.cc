// Raw data, all of it: export and import as JSON lines, in bounded memory.
#include <fmt/format.h>

#include <algorithm>

#include "codec/counter_value.h"
#include "codec/tenant_keys.h"
#include "json/json_text.h"
#include "range/embedded_ranges.h"
#include "range/key_borders.h"
#include "rest/answers.h"
#include "rest/gate.h"
#include "rest/raw_routes.h"
#include "rest/request_reading.h"
#include "rest/routes.h"

namespace trellis {
namespace {

constexpr size_t export_page_entries = 1'000;

constexpr size_t import_body_bytes_max = size_t{1} << 50;  // whatever a disk can hold
// A value of the largest size in base64, and its key.
constexpr size_t import_line_bytes_max = 24 * 1024 * 1024;
// Of one transaction. No more keys than raw locks one by one: others keep writing meanwhile.
constexpr size_t import_batch_operations = 48;
constexpr size_t import_batch_bytes = 1024 * 1024;
// How much is read behind a bad line before the connection is broken off. Many clients look for the
// answer only when they have sent all.
constexpr size_t import_swallowed_bytes_max = 16 * 1024 * 1024;

// --- export ---

class RawExport final : public BodySource {
 public:
  struct Which {
    Bytes prefix;
    Bytes begin;
    Bytes end;
  };
  RawExport(const RestContext& context, DataCall call, std::string authorization, Which which)
      : context_(context),
        call_(std::move(call)),
        authorization_(std::move(authorization)),
        which_(std::move(which)) {}

  Result<Chunk> next() override {
    TRY(check_still_valid(context_, authorization_));
    Chunk chunk;
    const auto visit = [&](ByteView key, ByteView value, uint64_t expires_at_ms) {
      append_json_entry(chunk.bytes, {.key = key, .value = value, .expires_at_ms = expires_at_ms});
      chunk.bytes += '\n';
      return Visit::go_on;
    };
    const RawScan scan{.begin = which_.begin,
                       .end = which_.end,
                       .prefix = which_.prefix,
                       .limit = export_page_entries};
    auto page = context_.raw.scan(*call_.tenant, call_.caller, scan, visit);
    if (!page && has_begun_ && page.error().reason == "rate_exceeded") {
      const uint64_t wait_ms = std::min<uint64_t>(page.error().retry_after_ms, 60'000);
      return Chunk{
          .bytes = {}, .then = Chunk::Then::pause, .wait_ms = static_cast<uint32_t>(wait_ms)};
    }
    if (!page) return std::move(page).error();
    has_begun_ = true;
    if (!page->resume.has_value()) return chunk;
    which_.begin = std::move(*page->resume);
    chunk.then = Chunk::Then::more;
    return chunk;
  }

 private:
  const RestContext& context_;
  const DataCall call_;
  const std::string authorization_;
  Which which_;  // and is not sent yet
  bool has_begun_ = false;
};

HttpResponse export_answer(const RestContext& context, const HttpRequest& request, DataCall call,
                           RawExport::Which which) {
  HttpResponse response;
  response.content_type = "application/x-ndjson";
  response.stream = std::make_unique<RawExport>(
      context, std::move(call), std::string(request.header("Authorization")), std::move(which));
  return response;
}

Result<HttpResponse> export_entries(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(DataCall call, enter_data(context, request, keyspace_of_path(request, 0)));
  TRY(check_query(request, {"prefix"}));
  TRY_ASSIGN(auto prefix, query_text(request, "prefix"));
  return export_answer(context, request, std::move(call),
                       {.prefix = std::move(prefix).value_or(""), .begin = {}, .end = {}});
}

// A part of it. In a body: keys may be longer than a target.
Result<HttpResponse> export_part(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(DataCall call, enter_data(context, request, keyspace_of_path(request, 0)));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  DecodedBytes decoded;
  TRY_ASSIGN(const auto prefix, read_bytes(members, "prefix", "prefix_base64", decoded));
  TRY_ASSIGN(const auto begin, read_bytes(members, "begin", "begin_base64", decoded));
  TRY_ASSIGN(const auto end, read_bytes(members, "end", "end_base64", decoded));
  TRY(members.finish());
  return export_answer(context, request, std::move(call),
                       {.prefix = Bytes(prefix.value_or(ByteView())),
                        .begin = Bytes(begin.value_or(ByteView())),
                        .end = Bytes(end.value_or(ByteView()))});
}

// Where to cut an export, for a client that asks for several parts at once: borders of ranges, as
// keys of the caller's keyspace. It learns nothing of what lies beside it.
Result<HttpResponse> list_parts(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const DataCall call, enter_data(context, request, keyspace_of_path(request, 0)));
  TRY(check_query(request, {"prefix"}));
  TRY_ASSIGN(const auto prefix, query_text(request, "prefix"));
  TRY(call.tenant->admit(call.caller, Access::read));
  const KeyspaceId id = call.tenant->id();
  auto [begin, end] = keyspace_interval(KeyMode::raw, id);
  const size_t prefix_bytes = begin.size();
  std::string keys = "null";
  if (prefix.has_value()) {
    begin.append(*prefix);
    end = prefix_end(begin);
  } else {
    Value counter;
    TRY(call.tenant->map().engine.get(encode(CounterKey{id, Model::raw, CounterName::keys, 0}),
                                      counter));
    const auto count = counter.found() ? decode_counter_value(counter.bytes()) : 0;
    keys = std::to_string(std::max<int64_t>(count.value_or(0), 0));
  }
  Bytes out = "{\"borders\":[";
  for (const Bytes& border : key_borders(context.ranges.keeper().accounting(), begin, end)) {
    if (out.back() == '}') out += ',';
    append_json_entry(out, {.key = ByteView(border).substr(prefix_bytes),
                            .value = {},
                            .expires_at_ms = 0,
                            .has_value = false});
  }
  out += "],\"keys\":" + keys + "}";
  return text_answer(std::move(out));
}

// --- import ---

struct ImportEntry {
  ByteView key;
  ByteView value;
  uint64_t expires_at_ms = 0;  // 0: never
};

// The limits of raw, so that the line with what is over one can be named.
Status check_entry(const ImportEntry& entry) {
  if (entry.key.empty()) return Error{Code::invalid, "the key is empty", "empty_key"};
  if (entry.key.size() > raw_key_bytes_max) {
    return Error{Code::too_large, fmt::format("a key has at most {} bytes", raw_key_bytes_max),
                 "key_too_large"};
  }
  if (entry.value.size() > raw_value_bytes_max) {
    return Error{Code::too_large, fmt::format("a value has at most {} bytes", raw_value_bytes_max),
                 "value_too_large"};
  }
  if (entry.expires_at_ms > raw_expires_at_ms_max) {
    return Error{Code::invalid, fmt::format("expires_at_ms is at most {}", raw_expires_at_ms_max),
                 "ttl_too_large"};
  }
  return {};
}

Result<ImportEntry> read_entry(const json::value& line, DecodedBytes& decoded) {
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(line, "the line"));
  TRY_ASSIGN(const auto key, read_bytes(members, "key", "key_base64", decoded));
  TRY_ASSIGN(const auto value, read_bytes(members, "value", "value_base64", decoded));
  TRY_ASSIGN(const auto expires_at_ms, members.number("expires_at_ms"));
  TRY(members.finish());
  if (!key.has_value() || !value.has_value()) return bad_body("it needs a key and a value");
  const ImportEntry entry{.key = *key, .value = *value, .expires_at_ms = expires_at_ms.value_or(0)};
  TRY(check_entry(entry));
  return entry;
}

class RawImport final : public BodySink {
 public:
  RawImport(const RestContext& context, DataCall call, std::string authorization)
      : context_(context), call_(std::move(call)), authorization_(std::move(authorization)) {}

  Status write(ByteView piece) override {
    if (failed_.has_value()) return swallow(piece);
    for (;;) {
      const size_t end = piece.find('\n');
      if (end == ByteView::npos) break;
      if (Status taken = take_line(piece.substr(0, end)); !taken) return fail(taken.error());
      piece.remove_prefix(end + 1);
    }
    if (begun_.size() + piece.size() > import_line_bytes_max) return fail(line_too_long());
    begun_.append(piece);
    return {};
  }

  HttpResponse finish() override {
    Status taken;
    if (!failed_.has_value()) taken = take_line({});
    if (!failed_.has_value() && taken) taken = flush();
    if (!taken) discard(fail(taken.error()));
    if (!failed_.has_value()) return json_answer(json::object{{"imported", imported_}});
    return v1_error(*failed_, json::object{{"line", failed_line_},
                                           {"imported", imported_},
                                           {"resume_line", stored_line_ + 1}});
  }

 private:
  // The bytes of the operation are its own, those of the body are gone when it is applied.
  struct Waiting {
    Bytes key;
    Bytes value;
    uint64_t expires_at_ms;
  };

  static Error line_too_long() {
    return {Code::too_large, fmt::format("a line has at most {} bytes", import_line_bytes_max),
            "line_too_large"};
  }

  // The end of a line, whose beginning may have come in earlier pieces.
  Status take_line(ByteView end) {
    ++line_;
    if (begun_.size() + end.size() > import_line_bytes_max) return line_too_long();
    ByteView line = end;
    if (!begun_.empty()) line = begun_.append(end);
    if (line.find_first_not_of(" \t\r") != ByteView::npos) TRY(take_entry(line));
    if (waiting_.empty()) stored_line_ = line_;
    begun_.clear();
    return {};
  }

  Status take_entry(ByteView line) {
    TRY_ASSIGN(const json::value parsed, parse_json(line, {.depth_max = 2, .values_max = 8}));
    DecodedBytes decoded;
    TRY_ASSIGN(const ImportEntry entry, read_entry(parsed, decoded));
    // Expired since it was exported: nobody would see it.
    if (entry.expires_at_ms != 0 && entry.expires_at_ms <= context_.clock.unix_ms()) return {};
    const size_t bytes = entry.key.size() + entry.value.size();
    if (waiting_bytes_ + bytes > import_batch_bytes) {
      TRY(flush());
      stored_line_ = line_ - 1;
    }
    waiting_.push_back({Bytes(entry.key), Bytes(entry.value), entry.expires_at_ms});
    waiting_bytes_ += bytes;
    if (waiting_.size() < import_batch_operations && waiting_bytes_ < import_batch_bytes) return {};
    return flush();
  }

  // One transaction: all that waits or nothing.
  Status flush() {
    if (waiting_.empty()) return {};
    TRY(check_still_valid(context_, authorization_));
    const uint64_t now_ms = context_.clock.unix_ms();
    std::vector<RawOperation> operations;
    for (const Waiting& entry : waiting_) {
      // What expired while it waited here lives for a moment more.
      const uint64_t ttl_ms = entry.expires_at_ms == 0       ? 0
                              : entry.expires_at_ms > now_ms ? entry.expires_at_ms - now_ms
                                                             : 1;
      operations.push_back({.kind = RawOperation::Kind::put,
                            .key = entry.key,
                            .value = entry.value,
                            .ttl_ms = ttl_ms});
    }
    // Over its rate it ends too: waiting here would keep a worker from everybody else. The client
    // waits, and goes on behind what is stored.
    if (Status applied = apply(operations); !applied) {
      is_refused_ = true;
      return applied;
    }
    imported_ += operations.size();
    waiting_.clear();
    waiting_bytes_ = 0;
    return {};
  }

  Status apply(std::span<const RawOperation> operations) {
    // Alone, because a batch has less room than the largest value needs.
    if (operations.size() == 1) {
      const RawOperation& one = operations[0];
      return context_.raw.put(*call_.tenant, call_.caller, one.key, one.value,
                              {.ttl_ms = one.ttl_ms});
    }
    return context_.raw.batch(*call_.tenant, call_.caller, operations);
  }

  // What came before a bad line is stored; of a batch that was refused its first line is the one
  // to go on with.
  Status fail(const Error& error) {
    if (!is_refused_ && flush()) stored_line_ = line_ - 1;
    failed_line_ = is_refused_ ? stored_line_ + 1 : line_;
    failed_ = error;
    failed_->message = fmt::format("line {}: {}; {} entries before it were imported and stay",
                                   failed_line_, error.message, imported_);
    begun_ = {};
    waiting_ = {};
    return {};
  }

  Status swallow(ByteView piece) {
    swallowed_bytes_ += piece.size();
    if (swallowed_bytes_ > import_swallowed_bytes_max) return *failed_;
    return {};
  }

  const RestContext& context_;
  const DataCall call_;
  const std::string authorization_;
  Bytes begun_;  // of a line whose end has not come
  uint64_t line_ = 0;
  uint64_t stored_line_ = 0;  // all up to this one are stored, or need not be
  uint64_t failed_line_ = 0;
  bool is_refused_ = false;  // a batch was
  std::vector<Waiting> waiting_;
  size_t waiting_bytes_ = 0;
  uint64_t imported_ = 0;
  std::optional<Error> failed_;
  size_t swallowed_bytes_ = 0;
};

Result<std::unique_ptr<BodySink>> open_import(const RestContext& context,
                                              const HttpRequest& request) {
  TRY_ASSIGN(DataCall call, enter_data(context, request, keyspace_of_path(request, 0)));
  TRY(check_query(request, {}));
  // Said now, not after the first batch.
  TRY_ASSIGN(const Keyspace keyspace, call.tenant->keyspace());
  TRY(check_access(call.caller, Access::write, keyspace.state, keyspace.name));
  return std::make_unique<RawImport>(context, std::move(call),
                                     std::string(request.header("Authorization")));
}

Route import_route(const RestContext& context, std::string_view pattern) {
  Route route;
  route.method = HttpMethod::post;
  route.pattern = pattern;
  route.body = Route::Body::streamed;
  route.body_bytes_max = import_body_bytes_max;
  route.runs = Route::Runs::worker;
  route.open = [&context](const HttpRequest& request) { return open_import(context, request); };
  return route;
}

}  // namespace

void add_raw_stream_routes(const RestContext& context, std::vector<Route>& routes) {
  using enum HttpMethod;
  const RouteSpec specs[] = {
      {get, "/v1/raw/export", export_entries},
      {get, "/k/{keyspace}/v1/raw/export", export_entries},
      {post, "/v1/raw/export", export_part, small_body_bytes_max},
      {post, "/k/{keyspace}/v1/raw/export", export_part, small_body_bytes_max},
      {get, "/v1/raw/parts", list_parts},
      {get, "/k/{keyspace}/v1/raw/parts", list_parts},
  };
  for (const RouteSpec& spec : specs) routes.push_back(make_route(context, spec));
  routes.push_back(import_route(context, "/v1/raw/import"));
  routes.push_back(import_route(context, "/k/{keyspace}/v1/raw/import"));
}

}  // namespace trellis
