#include "rest/catalog_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "base/no_wait.h"
#include "catalog/roles.h"
#include "json/json_body.h"
#include "json/json_text.h"
#include "net/ascii.h"
#include "net/would_wait.h"
#include "rest/answers.h"
#include "rest/catalog_answers.h"
#include "rest/catalog_gate.h"
#include "rest/entity_tags.h"
#include "rest/request_reading.h"
#include "rest/routes.h"

namespace trellis {
namespace {

constexpr std::string_view api_prefix = "/api";
constexpr std::string_view keyspace_prefix = "/k/{keyspace}";
constexpr size_t loop_body_bytes_max = 16 * 1024;  // what is larger takes too long there
constexpr JsonLimits body_limits{.depth_max = 64, .values_max = 500'000};

// By CatalogRoute::Under.
constexpr std::string_view prefixes[] = {
    "",
    "/metalakes/{metalake}",
    "/metalakes/{metalake}/catalogs/{catalog}",
    "/metalakes/{metalake}/catalogs/{catalog}/schemas/{schema}",
    "/metalakes/{metalake}/catalogs/{catalog}/schemas/{schema}/tables/{table}",
    "/metalakes/{metalake}/catalogs/{catalog}/schemas/{schema}/models/{model}",
    "/metalakes/{metalake}/objects/{type}/{fullName}",
};

std::string_view noun_of(const CatalogRoute& route) {
  return route.noun.empty() ? catalog_word(route.type).name : route.noun;
}

std::string in_brackets(std::string_view text) {
  return text.empty() ? "" : fmt::format(" [{}]", text);
}

const std::string malformed = "Malformed json request";

// As Gravitino words it.
std::string message_of(const CatalogRequest& request, const Error& error) {
  if (error.reason == bad_body_reason) return malformed + ": " + error.message;
  if (error.message.starts_with(malformed)) return error.message;
  const std::string_view noun = noun_of(request.route);
  const std::string_view operation = request.route.operation;
  if (operation.empty()) return error.message;
  const std::string subject = in_brackets(request.subject);
  if (noun == "metalake") {
    return fmt::format("Failed to operate metalake(s){} operation [{}], reason [{}]", subject,
                       operation, error.message);
  }
  if (noun == "partition") {
    return fmt::format("Failed to operate partition(s){} operation [{}] of table [{}], reason [{}]",
                       subject, operation, request.parent, error.message);
  }
  const bool stands_in_metalake = noun == "user" || noun == "group" || noun == "role" ||
                                  noun == "owner" || noun == "permission";
  const std::string_view above = stands_in_metalake  ? "metalake"
                                 : noun == "catalog" ? "metalake"
                                 : noun == "schema"  ? "catalog"
                                 : noun == "tag" || noun == "policy" || noun == "statistic"
                                     ? "object"
                                     : "schema";
  return fmt::format("Failed to operate {}{}{} operation [{}] under {} [{}], reason [{}]", noun,
                     stands_in_metalake ? "" : "(s)", subject, operation, above, request.parent,
                     error.message);
}

void name_subject(CatalogRequest& request) {
  const CatalogRoute& route = request.route;
  const size_t depth = noun_of(route) == "partition" ? 5 : catalog_depth(route.type);
  const auto& names = request.names;
  if (is_about_object(route)) {
    const bool stands_in_metalake = route.noun == "owner" || route.type == CatalogType::role;
    request.parent = names[stands_in_metalake ? 0 : 2];
    if (route.noun == "owner") request.subject = names[2];
    if (names.size() > 3) request.subject = names[3];  // a tag or policy of it
    return;
  }
  if (names.size() >= depth) request.subject = names[depth - 1];
  if (depth >= 2 && names.size() >= depth - 1) request.parent = names[depth - 2];
}

// Of the catalog that the names lead into; the handler says so if there is none.
Result<ProviderRules> rules_in(const CatalogRequest& request, const std::string& metalake,
                               const std::string& catalog) {
  const auto loaded =
      request.catalog().load(request.call(), {CatalogType::catalog, {metalake, catalog}});
  if (loaded) return provider_rules(loaded->stored.catalog().provider());
  if (loaded.error().reason == would_wait_reason) return loaded.error();
  return ProviderRules();
}

bool stands_in_catalog(const CatalogRoute& route) {
  return route.under >= CatalogRoute::Under::catalog && route.under <= CatalogRoute::Under::model;
}

Status apply_provider_to_names(CatalogRequest& request) {
  if (!stands_in_catalog(request.route) || request.names.size() < 3) return {};
  EntityPath path = request.path();
  const EntityPath given = path;
  TRY(apply_provider(request, path));
  if (path == given) return {};
  request.own_names.assign(request.names.begin(), request.names.end());
  std::ranges::copy(path.names, request.own_names.begin());
  request.names = request.own_names;
  return {};
}

Result<HttpResponse> call_handler_of(const CatalogRoute& route, const RestContext& context,
                                     const HttpRequest& http, size_t keyspace_captures,
                                     std::string& message) {
  const std::span<const std::string> captures(http.captures);
  std::optional<std::string_view> keyspace;
  if (keyspace_captures > 0) keyspace = captures[0];
  auto user = enter_data_as_user(context, http, keyspace);
  if (!user) return std::move(user).error();
  CatalogRequest request{context, http, route, std::move(*user)};
  request.names = captures.subspan(keyspace_captures);
  TRY(apply_provider_to_names(request));
  name_subject(request);
  if (route.method != HttpMethod::get && !route.reads) {  // before the body is looked at
    const DataCall& data = request.user.data;
    TRY(data.tenant->admit(data.caller, Access::write, 0));
  }
  auto checked = check_catalog_access(request);
  Result<HttpResponse> response = !checked   ? Result<HttpResponse>(checked.error())
                                  : *checked ? Result<HttpResponse>(std::move(**checked))
                                             : route.handler(request);
  if (!response) message = message_of(request, response.error());
  return response;
}

HttpResponse answer(const CatalogRoute& route, const RestContext& context, const HttpRequest& http,
                    size_t keyspace_captures) {
  if (NoWait::is_on() && http.body.size() > loop_body_bytes_max)
    return empty_answer(would_wait_status);
  if (!accepted_media_version(http.header("Accept")).has_value())
    return catalog_error(406, "Unsupported version in Accept: v1 and v2 are served");
  std::string message;
  auto response = call_handler_of(route, context, http, keyspace_captures, message);
  if (response) return std::move(*response);
  const Error& error = response.error();
  if (error.reason == would_wait_reason) return empty_answer(would_wait_status);
  return catalog_error(error, message.empty() ? error.message : message);
}

void add_route(const RestContext& context, const CatalogRoute& route, std::vector<Route>& routes) {
  for (const size_t keyspace_captures : {0, 1}) {
    Route added;
    added.method = route.method;
    added.pattern =
        keep_text(fmt::format("{}{}{}{}", keyspace_captures == 0 ? "" : keyspace_prefix, api_prefix,
                              prefixes[static_cast<size_t>(route.under)], route.path));
    // One thing is read or written in no time, and there are most of these. Waiting for a disk, or
    // for other machines, is for workers.
    const bool is_load = route.method == HttpMethod::get && route.operation == "LOAD";
    const MapHandle& map = context.keyspaces.map();
    const bool writes_at_once = map.latched() && map.durability != Durability::always;
    const bool on_loop = is_load || (route.is_one_step && writes_at_once);
    added.runs = on_loop ? Route::Runs::loop : Route::Runs::worker;
    if (route.body_bytes_max > 0) {
      added.body = Route::Body::buffered;
      added.body_bytes_max = route.body_bytes_max;
    }
    added.handle = [&context, &route, keyspace_captures](const HttpRequest& request) {
      return answer(route, context, request, keyspace_captures);
    };
    routes.push_back(std::move(added));
  }
}

}  // namespace

std::string_view keep_text(std::string text) {
  static std::mutex mutex;
  static std::set<std::string> kept;
  const std::lock_guard lock(mutex);
  return *kept.insert(std::move(text)).first;
}

bool is_about_object(const CatalogRoute& route) {
  return route.under == CatalogRoute::Under::object || route.noun == "owner" ||
         route.path.starts_with("/tags/{type}");
}

EntityPath CatalogRequest::path() const {
  EntityPath path{route.type, {}};
  path.names.assign(names.begin(), names.begin() + static_cast<ptrdiff_t>(std::min(
                                                       catalog_depth(route.type), names.size())));
  return path;
}

EntityPath CatalogRequest::parent_path() const {
  const size_t depth = catalog_depth(route.type) - 1;
  EntityPath path{depth == 0 ? CatalogType::metalake : catalog_type_at(route.type, depth), {}};
  path.names.assign(names.begin(), names.begin() + static_cast<ptrdiff_t>(depth));
  return path;
}

Result<json::value> read_catalog_body(const CatalogRequest& request) {
  return parse_json(request.http.body, body_limits);
}

Status apply_provider(const CatalogRequest& request, EntityPath& path) {
  if (!has_odd_names(path)) return {};
  TRY_ASSIGN(const ProviderRules rules, rules_in(request, path.names[0], path.names[1]));
  apply_rules(rules, path);
  return {};
}

Result<NamedBody> read_named_body(const CatalogRequest& request) {
  TRY_ASSIGN(json::value body, read_catalog_body(request));
  const CatalogType type = request.route.type;
  if (!stands_in_catalog(request.route) || !has_odd_names(type, body))
    return NamedBody{std::move(body)};
  TRY_ASSIGN(const ProviderRules rules, rules_in(request, request.names[0], request.names[1]));
  apply_rules(rules, type, body);
  return NamedBody{std::move(body), rules.pattern};
}

Result<bool> catalog_flag(const CatalogRequest& request, std::string_view name) {
  TRY_ASSIGN(const auto given, query_text(request.http, name));
  const std::string_view text = given.has_value() ? *given : std::string_view("false");
  if (equals_ignoring_case(text, "true")) return true;
  if (equals_ignoring_case(text, "false")) return false;
  return bad_query(fmt::format("{} is {}: it must be true or false", name, quote(text)));
}

Result<std::string> read_if_match(const CatalogRequest& request) {
  const std::string_view header = request.http.header("If-Match");
  if (header.empty() || header == "*") return std::string();
  return read_tag("If-Match", header);
}

std::optional<unsigned> accepted_media_version(std::string_view accept) {
  constexpr std::string_view before = "application/vnd.gravitino.v";
  constexpr std::string_view behind = "+json";
  bool is_named = false;
  for (size_t at = accept.find(before); at != std::string_view::npos;
       at = accept.find(before, at + 1)) {
    const std::string_view rest = accept.substr(at + before.size());
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (!rest.substr(digits).starts_with(behind)) continue;
    is_named = true;
    if (rest.substr(0, digits) == "1") return 1;
    if (rest.substr(0, digits) == "2") return 2;
  }
  if (is_named) return std::nullopt;
  return 1;
}

std::optional<CatalogType> catalog_type_named(std::string_view name) {
  for (size_t i = 0; i < std::size(catalog_types); ++i)
    if (equals_ignoring_case(catalog_types[i].name, name)) return static_cast<CatalogType>(i);
  return std::nullopt;
}

Result<EntityPath> object_path(const CatalogRequest& request, size_t at) {
  TRY_ASSIGN(EntityPath path,
             object_named(request.names[0], request.names[at], request.names[at + 1]));
  TRY(apply_provider(request, path));
  return path;
}

void append_object_name(Bytes& out, const EntityPath& path) {
  const auto first = path.names.begin() + (path.names.size() > 1 ? 1 : 0);
  out += "{\"fullName\":";
  append_json_string(out, fmt::format("{}", fmt::join(first, path.names.end(), ".")));
  out += fmt::format(",\"type\":\"{}\"", catalog_word(path.type).name);
}

std::string_view catalog_plural(CatalogType type) {
  constexpr std::string_view plurals[] = {
      "metalakes", "catalogs",  "schemas", "brokers",  "tables", "topics", "filesets", "models",
      "views",     "functions", "tags",    "policies", "users",  "groups", "roles",    "columns"};
  static_assert(std::size(plurals) == std::size(catalog_types));
  return plurals[static_cast<size_t>(type)];
}

HttpResponse catalog_answer(std::string_view members) {
  Bytes body = "{\"code\":0";
  body += members;
  body += '}';
  return text_answer(std::move(body));
}

void add_catalog_routes(const RestContext& context, std::vector<Route>& routes) {
  for (const auto part : {catalog_server_routes(), catalog_entity_routes(),
                          catalog_fileset_routes(), catalog_member_routes(), catalog_feed_routes(),
                          catalog_label_routes(), catalog_user_routes()}) {
    for (const CatalogRoute& route : part) add_route(context, route, routes);
  }
}

}  // namespace trellis
