// For those who run the server: is it up, does its store answer, what does it do.
#include "codec/system_keys.h"
#include "rest/answers.h"
#include "rest/gate.h"
#include "rest/openapi.h"
#include "rest/request_reading.h"
#include "rest/routes.h"

namespace trellis {
namespace {

// The first three look at no token: whoever asks them must get an answer also if tokens cannot be
// read, and they tell nothing of any tenant.
Result<HttpResponse> get_health(const RestContext&, const HttpRequest&) {
  return text_answer("{\"status\":\"ok\"}");
}

Result<HttpResponse> get_ready(const RestContext& context, const HttpRequest&) {
  Value value;
  TRY(context.keyspaces.map().engine.get(encode(KeyspaceRevisionKey{}), value));
  // It serves reads and deletes, so that it is not to be taken out of service.
  if (const Status room = context.keyspaces.map().engine.room(); !room)
    return json_answer({{"status", "read-only"}, {"message", room.error().message}});
  return text_answer("{\"status\":\"ready\"}");
}

Result<HttpResponse> get_openapi(const RestContext&, const HttpRequest&) {
  return text_answer(Bytes(openapi_text));
}

Result<HttpResponse> get_metrics(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = prometheus_text(context.metrics);
  return response;
}

}  // namespace

void add_operator_routes(const RestContext& context, std::vector<Route>& routes) {
  using enum HttpMethod;
  const RouteSpec specs[] = {
      {get, "/healthz", get_health, 0, Route::Runs::loop},
      {get, "/readyz", get_ready},
      {get, "/openapi.json", get_openapi, 0, Route::Runs::loop},
      {get, "/metrics", get_metrics},
  };
  for (const RouteSpec& spec : specs) routes.push_back(make_route(context, spec));
}

}  // namespace trellis
