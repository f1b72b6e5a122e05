// The server itself, as Gravitino's clients ask about it before anything else: the version, which
// must not be older than theirs, health, and who they are.
#include <fmt/format.h>

#include "json/json_text.h"
#include "rest/answers.h"
#include "rest/catalog_answers.h"
#include "rest/catalog_routes.h"
#include "rest/openapi.h"
#include "rest/routes.h"

namespace trellis {
namespace {

// Needs no token: it is the first thing that clients ask for.
Result<HttpResponse> get_catalog_version(const RestContext& context, const HttpRequest&) {
  Bytes members = ",\"version\":{\"version\":";
  append_json_string(members, context.options.catalog_version);
  members += ",\"compileDate\":\"unknown\",\"gitCommit\":\"trellis\"}";
  return catalog_answer(members);
}

// What Gravitino's web pages want to know.
Result<HttpResponse> get_configs(const RestContext& context, const HttpRequest&) {
  return text_answer(fmt::format(
      "{{\"gravitino.authenticators\":[\"simple\"],\"gravitino.authorization.enable\":{}}}",
      context.options.catalog_authorization));
}

Result<HttpResponse> get_catalog_openapi(const RestContext&, const HttpRequest&) {
  return text_answer(Bytes(catalog_openapi_text));
}

Result<HttpResponse> get_liveness(const RestContext&, const HttpRequest&) {
  return catalog_answer(
      R"(,"status":"up","checks":[{"name":"httpServer","status":"up","details":{}}])");
}

// Whether the store answers.
Result<HttpResponse> get_readiness(const RestContext& context, const HttpRequest&) {
  const auto keyspace = context.keyspaces.load(default_keyspace);
  const std::string_view status = keyspace ? "up" : "down";
  HttpResponse response = catalog_answer(
      fmt::format(",\"status\":\"{0}\",\"checks\":[{{\"name\":\"httpServer\",\"status\":\"up\","
                  "\"details\":{{}}}},{{\"name\":\"entityStore\",\"status\":\"{0}\","
                  "\"details\":{{}}}}]",
                  status));
  if (!keyspace) response.status = 503;
  return response;
}

Result<HttpResponse> get_me(CatalogRequest& request) {
  Bytes members = ",\"principal\":";
  append_json_string(members, request.user.user);
  members += ",\"serviceAdmin\":false";
  return catalog_answer(members);
}

constexpr CatalogRoute server_routes[] = {
    {HttpMethod::get, CatalogRoute::Under::api, "/authn/me", CatalogType::user, "", get_me},
};

}  // namespace

std::span<const CatalogRoute> catalog_server_routes() { return server_routes; }

void add_catalog_open_routes(const RestContext& context, std::vector<Route>& routes) {
  const auto add = [&](std::string_view pattern, std::string_view of_keyspace, Handler handler) {
    for (const std::string_view one : {pattern, of_keyspace})
      routes.push_back(make_route(context, {HttpMethod::get, one, handler, 0, Route::Runs::loop}));
  };
  add("/api/version", "/k/{keyspace}/api/version", get_catalog_version);
  add("/api/health/live", "/k/{keyspace}/api/health/live", get_liveness);
  add("/api/openapi.json", "/k/{keyspace}/api/openapi.json", get_catalog_openapi);
  add("/configs", "/k/{keyspace}/configs", get_configs);
  for (const std::string_view pattern : {"/api/health", "/k/{keyspace}/api/health",
                                         "/api/health/ready", "/k/{keyspace}/api/health/ready"})
    routes.push_back(make_route(context, {HttpMethod::get, pattern, get_readiness}));
}

}  // namespace trellis
