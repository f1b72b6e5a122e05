// Raw data, several keys at a time: scans, batches, compare and set.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/utf8.h"
#include "json/json_text.h"
#include "rest/answers.h"
#include "rest/gate.h"
#include "rest/raw_routes.h"
#include "rest/request_reading.h"
#include "rest/routes.h"

namespace trellis {
namespace {

// Two values of the largest size in base64, and some room for keys.
constexpr size_t raw_body_bytes_max = 48 * 1024 * 1024;
constexpr size_t batch_values_max = 6 * raw_batch_operations_max + 2;

// --- scan ---

struct ScanQuery {
  std::string begin;
  std::string end;
  std::string prefix;
  bool reverse = false;
  bool keys_only = false;
  size_t limit = 0;
};

// A cursor is where the next page begins (reverse: ends), in hex, which needs no escapes.
Status apply_cursor(const HttpRequest& request, ScanQuery& query) {
  TRY_ASSIGN(const auto cursor, query_text(request, "cursor"));
  if (!cursor.has_value()) return {};
  auto place = from_hex(*cursor);
  if (!place) return bad_query("cursor is none that a scan gave");
  // It narrows what was asked for and never widens it.
  if (!query.reverse) {
    query.begin = std::max(query.begin, *place);
  } else if (query.end.empty() || *place < query.end) {
    query.end = std::move(*place);
  }
  return {};
}

Result<ScanQuery> read_scan(const HttpRequest& request) {
  TRY(check_query(request, {"prefix", "begin", "end", "reverse", "limit", "keys_only", "cursor"}));
  ScanQuery query;
  TRY_ASSIGN(auto begin, query_text(request, "begin"));
  TRY_ASSIGN(auto end, query_text(request, "end"));
  TRY_ASSIGN(auto prefix, query_text(request, "prefix"));
  query.begin = std::move(begin).value_or("");
  query.end = std::move(end).value_or("");
  query.prefix = std::move(prefix).value_or("");
  TRY_ASSIGN(query.reverse, query_flag(request, "reverse"));
  TRY_ASSIGN(query.keys_only, query_flag(request, "keys_only"));
  TRY_ASSIGN(query.limit, query_limit(request, 100, raw_scan_entries_max));
  TRY(apply_cursor(request, query));
  return query;
}

Result<HttpResponse> scan_keys(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const DataCall call, enter_data(context, request, keyspace_of_path(request, 0)));
  TRY_ASSIGN(const ScanQuery query, read_scan(request));
  Bytes out = "{\"entries\":[";
  bool is_first = true;
  const auto visit = [&](ByteView key, ByteView value, uint64_t expires_at_ms) {
    if (!std::exchange(is_first, false)) out += ',';
    append_json_entry(out, {.key = key,
                            .value = value,
                            .expires_at_ms = expires_at_ms,
                            .has_value = !query.keys_only});
    return Visit::go_on;
  };
  const RawScan scan{.begin = query.begin,
                     .end = query.end,
                     .prefix = query.prefix,
                     .reverse = query.reverse,
                     .limit = query.limit,
                     .keys_only = query.keys_only};
  TRY_ASSIGN(const RawPage page, context.raw.scan(*call.tenant, call.caller, scan, visit));
  out += "],\"next\":";
  if (page.resume.has_value()) {
    fmt::format_to(std::back_inserter(out), "\"{}\"}}", to_hex(*page.resume));
  } else {
    out += "null}";
  }
  return text_answer(std::move(out));
}

// --- batch ---

Result<RawOperation> read_put(const json::value& value, DecodedBytes& decoded) {
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(value, "\"put\""));
  TRY_ASSIGN(const auto key, read_bytes(members, "key", "key_base64", decoded));
  TRY_ASSIGN(const auto bytes, read_bytes(members, "value", "value_base64", decoded));
  TRY_ASSIGN(const auto ttl_ms, members.number("ttl_ms"));
  TRY(members.finish());
  TRY(check_ttl_ms(ttl_ms));
  if (!key.has_value() || !bytes.has_value()) return bad_body("\"put\" needs a key and a value");
  return RawOperation{
      .kind = RawOperation::Kind::put, .key = *key, .value = *bytes, .ttl_ms = ttl_ms.value_or(0)};
}

Result<RawOperation> read_delete(const json::value& value, DecodedBytes& decoded) {
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(value, "\"delete\""));
  TRY_ASSIGN(const auto key, read_bytes(members, "key", "key_base64", decoded));
  TRY(members.finish());
  if (!key.has_value()) return bad_body("\"delete\" needs a key");
  return RawOperation{.kind = RawOperation::Kind::remove, .key = *key};
}

Result<RawOperation> read_operation(const json::value& value, DecodedBytes& decoded) {
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(value, "an operation"));
  const json::value* put = members.find("put");
  const json::value* removal = members.find("delete");
  TRY(members.finish());
  if ((put == nullptr) == (removal == nullptr)) {
    return bad_body("an operation has either \"put\" or \"delete\"");
  }
  return put != nullptr ? read_put(*put, decoded) : read_delete(*removal, decoded);
}

Result<HttpResponse> run_batch(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const DataCall call, enter_data(context, request, keyspace_of_path(request, 0)));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body, {.values_max = batch_values_max}));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  const json::value* list = members.find("operations");
  TRY(members.finish());
  const json::array* array = list != nullptr ? list->if_array() : nullptr;
  if (array == nullptr) return bad_body("\"operations\" must be a list");
  std::vector<RawOperation> operations;
  operations.reserve(array->size());
  DecodedBytes decoded;
  for (const json::value& value : *array) {
    auto operation = read_operation(value, decoded);
    if (!operation) {
      return with_context(fmt::format("operation {}", operations.size()), operation.error());
    }
    operations.push_back(std::move(*operation));
  }
  TRY(context.raw.batch(*call.tenant, call.caller, operations));
  return json_answer(json::object{{"applied", operations.size()}});
}

// --- compare and set ---

struct CasSide {
  std::optional<ByteView> value;  // absent: the key is not there
  uint64_t ttl_ms = 0;
};

// Null, or an object with a value; to be given in any case, because neither is a good guess.
Result<CasSide> read_cas_side(JsonMembers& body, std::string_view name, bool takes_ttl,
                              DecodedBytes& decoded) {
  const json::value* value = body.find(name);
  if (value == nullptr) {
    return bad_body(fmt::format("{} is missing: null, or an object with a value", quote(name)));
  }
  if (value->is_null()) return CasSide();
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(*value, name));
  TRY_ASSIGN(const auto bytes, read_bytes(members, "value", "value_base64", decoded));
  CasSide side{.value = bytes, .ttl_ms = 0};
  if (takes_ttl) {
    TRY_ASSIGN(const auto ttl_ms, members.number("ttl_ms"));
    TRY(check_ttl_ms(ttl_ms));
    side.ttl_ms = ttl_ms.value_or(0);
  }
  TRY(members.finish());
  if (!bytes.has_value()) return bad_body(fmt::format("{} has no value", quote(name)));
  return side;
}

json::value current_json(const std::optional<RawEntry>& current) {
  if (!current.has_value()) return nullptr;
  json::object out;
  if (is_utf8(current->value())) {
    out["value"] = current->value();
  } else {
    out["value_base64"] = base64_encode(current->value());
  }
  if (current->expires_at_ms() != 0) out["expires_at_ms"] = current->expires_at_ms();
  return out;
}

Result<HttpResponse> compare_and_set(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const DataCall call, enter_data(context, request, keyspace_of_path(request, 0)));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  DecodedBytes decoded;
  TRY_ASSIGN(const auto key, read_bytes(members, "key", "key_base64", decoded));
  TRY_ASSIGN(const CasSide expected, read_cas_side(members, "expected", false, decoded));
  TRY_ASSIGN(const CasSide desired, read_cas_side(members, "new", true, decoded));
  TRY(members.finish());
  if (!key.has_value()) return bad_body("\"key\" is missing");
  TRY_ASSIGN(const RawSwap swap,
             context.raw.compare_and_set(*call.tenant, call.caller, *key, expected.value,
                                         desired.value, desired.ttl_ms));
  if (swap.done) return text_answer("{\"done\":true}");
  return v1_error(
      Error{Code::refused, "the key has not the value that was expected", "condition_failed"},
      json::object{{"current", current_json(swap.current)}});
}

}  // namespace

void add_raw_json_routes(const RestContext& context, std::vector<Route>& routes) {
  using enum HttpMethod;
  const RouteSpec specs[] = {
      {get, "/v1/raw/keys", scan_keys},
      {get, "/k/{keyspace}/v1/raw/keys", scan_keys},
      {post, "/v1/raw/batch", run_batch, raw_body_bytes_max},
      {post, "/k/{keyspace}/v1/raw/batch", run_batch, raw_body_bytes_max},
      {post, "/v1/raw/cas", compare_and_set, raw_body_bytes_max},
      {post, "/k/{keyspace}/v1/raw/cas", compare_and_set, raw_body_bytes_max},
  };
  for (const RouteSpec& spec : specs) routes.push_back(make_route(context, spec));
}

}  // namespace trellis
