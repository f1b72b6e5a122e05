// How the parts of this module make their routes.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "net/http_types.h"
#include "net/router.h"
#include "rest/rest.h"

namespace trellis {

// Of bodies that are small: the config of a keyspace, all of it escaped.
constexpr size_t small_body_bytes_max = 1024 * 1024;

// A handler that may fail; the route answers with the error in the form of its path.
using Handler = Result<HttpResponse> (*)(const RestContext& context, const HttpRequest& request);

struct RouteSpec {
  HttpMethod method;
  std::string_view pattern;
  Handler handler;
  size_t body_bytes_max = 0;  // 0: it takes none
  Route::Runs runs = Route::Runs::worker;
};
Route make_route(const RestContext& context, const RouteSpec& spec);

void add_pd_keyspace_routes(const RestContext& context, std::vector<Route>& routes);
void add_pd_gc_routes(const RestContext& context, std::vector<Route>& routes);
void add_keyspace_routes(const RestContext& context, std::vector<Route>& routes);
void add_log_routes(const RestContext& context, std::vector<Route>& routes);
void add_raw_key_routes(const RestContext& context, std::vector<Route>& routes);
void add_raw_json_routes(const RestContext& context, std::vector<Route>& routes);
void add_raw_stream_routes(const RestContext& context, std::vector<Route>& routes);
void add_file_routes(const RestContext& context, std::vector<Route>& routes);
void add_fs_routes(const RestContext& context, std::vector<Route>& routes);
void add_catalog_open_routes(const RestContext& context, std::vector<Route>& routes);
void add_catalog_routes(const RestContext& context, std::vector<Route>& routes);
void add_range_routes(const RestContext& context, std::vector<Route>& routes);
void add_backup_routes(const RestContext& context, std::vector<Route>& routes);
void add_operator_routes(const RestContext& context, std::vector<Route>& routes);

}  // namespace trellis
