// Raw data, one key at a time. These are the requests that there are most of: they run on the event
// loop, and take care to copy and allocate little.
#include <fmt/format.h>

#include <algorithm>

#include "net/ascii.h"
#include "rest/answers.h"
#include "rest/entity_tags.h"
#include "rest/gate.h"
#include "rest/raw_routes.h"
#include "rest/request_reading.h"
#include "rest/routes.h"

namespace trellis {
namespace {

constexpr std::string_view bytes_type = "application/octet-stream";
constexpr size_t key_captures = 1;

// Of a request that writes.
Result<RawCondition> read_condition(const HttpRequest& request) {
  const std::string_view if_match = request.header("If-Match");
  const std::string_view if_none_match = request.header("If-None-Match");
  if (if_match.empty() && if_none_match.empty()) {
    // What an empty one should have said was lost: to write all the same is no good guess.
    const auto is_condition = [](const HttpHeaderView& header) {
      return equals_ignoring_case(header.name, "If-Match") ||
             equals_ignoring_case(header.name, "If-None-Match");
    };
    if (!std::ranges::any_of(request.headers, is_condition)) return RawCondition();
    return bad_condition("If-Match or If-None-Match is empty");
  }
  if (!if_match.empty() && !if_none_match.empty()) {
    return bad_condition("If-Match and If-None-Match cannot both be asked for");
  }
  if (if_none_match == "*") return RawCondition::must_be_absent();
  if (!if_none_match.empty()) return bad_condition("If-None-Match must be * for a write");
  if (if_match == "*") return RawCondition::must_exist();
  TRY_ASSIGN(std::string tag, read_tag("If-Match", if_match));
  return RawCondition::must_equal(std::move(tag));
}

Result<HttpResponse> get_key(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const DataCall call,
             enter_data(context, request, keyspace_of_path(request, key_captures)));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const std::optional<RawEntry> entry,
             context.raw.get(*call.tenant, call.caller, request.captures.back()));
  if (!entry.has_value()) return Error{Code::not_found, "there is no such key", "key_not_found"};
  std::string tag = '"' + raw_tag(entry->value()) + '"';
  const std::string_view if_none_match = request.header("If-None-Match");
  HttpResponse response;
  if (!if_none_match.empty() && names_tag(if_none_match, tag, TagMatch::weak)) {
    response.status = 304;
  } else if (request.method == HttpMethod::head) {
    response.stream_bytes = entry->value().size();
  } else {
    response.body = entry->value();
  }
  if (response.status != 304) response.content_type = bytes_type;
  response.headers.push_back({"ETag", std::move(tag)});
  if (entry->expires_at_ms() != 0) {
    response.headers.push_back(
        {"X-Trellis-Expires-At", fmt::format_int(entry->expires_at_ms()).str()});
  }
  return response;
}

Result<HttpResponse> put_key(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const DataCall call,
             enter_data(context, request, keyspace_of_path(request, key_captures)));
  RawPut options;
  if (!request.query.empty()) {
    TRY(check_query(request, {"ttl_ms"}));
    TRY_ASSIGN(const auto ttl_ms, query_number(request, "ttl_ms"));
    // Not "none": whoever sends it empty meant to set one.
    if (!ttl_ms.has_value()) return bad_query("ttl_ms is empty");
    TRY(check_ttl_ms(ttl_ms));
    options.ttl_ms = *ttl_ms;
  }
  TRY_ASSIGN(options.condition, read_condition(request));
  TRY(context.raw.put(*call.tenant, call.caller, request.captures.back(), request.body, options));
  return empty_answer();
}

Result<HttpResponse> delete_key(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const DataCall call,
             enter_data(context, request, keyspace_of_path(request, key_captures)));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const RawCondition condition, read_condition(request));
  TRY(context.raw.remove(*call.tenant, call.caller, request.captures.back(), condition));
  return empty_answer();
}

}  // namespace

void add_raw_key_routes(const RestContext& context, std::vector<Route>& routes) {
  using enum HttpMethod;
  // Waiting for a disk is for workers.
  const auto writes = context.keyspaces.map().durability == Durability::always ? Route::Runs::worker
                                                                               : Route::Runs::loop;
  for (const std::string_view pattern :
       {"/v1/raw/keys/{key*}", "/k/{keyspace}/v1/raw/keys/{key*}"}) {
    const RouteSpec specs[] = {
        {get, pattern, get_key, 0, Route::Runs::loop},
        {head, pattern, get_key, 0, Route::Runs::loop},
        {put, pattern, put_key, raw_value_bytes_max, writes},
        {del, pattern, delete_key, 0, writes},
    };
    for (const RouteSpec& spec : specs) routes.push_back(make_route(context, spec));
  }
}

}  // namespace trellis
