#include "rest/rest.h"

#include "base/no_wait.h"
#include "net/would_wait.h"
#include "rest/answers.h"
#include "rest/routes.h"

namespace trellis {

Route make_route(const RestContext& context, const RouteSpec& spec) {
  Route route;
  route.method = spec.method;
  route.pattern = spec.pattern;
  route.runs = spec.runs;
  if (spec.body_bytes_max > 0) {
    route.body = Route::Body::buffered;
    route.body_bytes_max = spec.body_bytes_max;
  }
  route.handle = [&context, handler = spec.handler,
                  pattern = spec.pattern](const HttpRequest& request) {
    Result<HttpResponse> response = handler(context, request);
    if (response) return std::move(*response);
    if (response.error().reason == would_wait_reason) return empty_answer(would_wait_status);
    return failure_response(response.error(), pattern);
  };
  return route;
}

std::vector<Route> make_routes(const RestContext& context) {
  std::vector<Route> routes;
  add_pd_keyspace_routes(context, routes);
  add_pd_gc_routes(context, routes);
  add_keyspace_routes(context, routes);
  add_log_routes(context, routes);
  add_raw_key_routes(context, routes);
  add_raw_json_routes(context, routes);
  add_raw_stream_routes(context, routes);
  add_file_routes(context, routes);
  add_fs_routes(context, routes);
  add_catalog_open_routes(context, routes);
  add_catalog_routes(context, routes);
  add_range_routes(context, routes);
  add_backup_routes(context, routes);
  add_operator_routes(context, routes);
  return routes;
}

}  // namespace trellis
