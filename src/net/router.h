// Finds the handler of a request. Routes are a table that can be read, so that documentation and
// tests are made from the same lines that serve:
//
//   TRY_ASSIGN(Router router, Router::make({
//       {.method = HttpMethod::get, .pattern = "/v1/keyspaces/{name}", .handle = get_keyspace},
//       {.method = HttpMethod::put, .pattern = "/v1/raw/keys/{key*}", .body =
//       Route::Body::buffered,
//        .body_bytes_max = value_bytes_max, .runs = Route::Runs::worker, .handle = put_key},
//   }));
//
// Patterns. The path is split at '/' before anything is decoded, so %2F never separates. A segment
// of a pattern is a literal, compared with the decoded segment of the path; or {name}, which takes
// one segment that is not empty; or, at the end only, {name*}, which takes the rest of the path
// with its slashes and may be empty. "." and ".." are names like any other, empty segments are
// segments, and a trailing slash makes another path.
//
// If several patterns match, a literal wins over {name} and {name} over {name*}, at the first
// segment where they differ. Among patterns that match the path, only those with the request's
// method count. HEAD is answered by the GET route without a body, unless it has a route of its own;
// OPTIONS is answered with Allow, unless it has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http_types.h"

namespace trellis {

struct Route {
  enum class Body : uint8_t {
    none,      // a request with a body is refused with 413
    buffered,  // the handler gets it whole
    streamed,  // `open` gives a sink for it
  };
  enum class Runs : uint8_t {
    loop,    // inline on the event loop: must be quick; see would_wait.h if it would wait
    worker,  // on a worker thread
  };

  HttpMethod method = HttpMethod::get;
  std::string_view pattern = {};  // static text
  Body body = Body::none;
  size_t body_bytes_max = 0;  // of a body that is not `none`; more is refused with 413
  Runs runs = Runs::loop;     // of `handle`; `open` and its sink always run on workers
  // Thread-safe: requests run side by side. An exception becomes a 500.
  std::function<HttpResponse(const HttpRequest&)> handle = {};
  // Instead of `handle`, for a streamed body: called when the header is complete.
  std::function<Result<std::unique_ptr<BodySink>>(const HttpRequest&)> open = {};
};

class Router {
 public:
  // Refuses bad patterns, two routes for the same thing, and routes without their function.
  static Result<Router> make(std::vector<Route> routes);
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router();

  struct Match {
    const Route* route = nullptr;  // none: see `allow`
    unsigned allow = 0;            // bit 1 << method of all that the path has; 0: unknown path
  };
  // Any thread. `captures` gets the decoded captures if there is a route.
  // REQUIRES: `path` is well percent-encoded, see is_percent_encoded().
  Match find(HttpMethod method, std::string_view path, std::vector<std::string>& captures) const;

  // As given to make(), in that order.
  std::span<const Route> routes() const;

 private:
  struct Tree;
  explicit Router(std::unique_ptr<Tree> tree);
  std::unique_ptr<Tree> tree_;
};

// "GET, HEAD, PUT" of the bits of Match::allow; what is answered without a route is added.
std::string allow_header(unsigned allow);

}  // namespace trellis
