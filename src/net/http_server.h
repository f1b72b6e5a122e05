// An HTTP/1.1 server: event loops that never block, and workers for what may.
//
//   TRY_ASSIGN(auto server, HttpServer::start(std::move(router),
//                                             {.listeners = {{"127.0.0.1", 8080}}}, clock));
//   server->ports();  // {8080}
//   server->stop();   // graceful
//
// Each loop is one thread. A loop handler runs where its request was parsed, so that a small GET
// costs a read and a write; a worker handler, a sink or a source runs on the worker pool, and only
// its own connection waits for it. Pipelined requests are answered in order.
//
// What cannot be framed beyond doubt is refused, and its connection closed: Content-Length beside
// Transfer-Encoding, two Content-Lengths, codings other than chunked, folded header lines, control
// bytes, no Host or two. A target may be in absolute form; its authority is ignored. Paths are
// bytes: nothing is normalised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/result.h"
#include "net/http_types.h"
#include "net/router.h"
#include "net/stream_server.h"

namespace trellis {

struct HttpServerOptions {
  std::vector<StreamListener> listeners = {};
  unsigned loops = 0;  // 0: as many as the machine has cores
  unsigned workers = 8;
  size_t header_bytes_max = 16 * 1024;  // request line and header; more is 414 or 431
  size_t connections_max = 10'000;      // more are answered with 503
  // Of all request bodies that are held whole, over all connections; more are answered with 503.
  size_t buffered_bytes_max = 256 * 1024 * 1024;

  // A header, or a TLS handshake, must be complete so long after it began.
  uint32_t header_ms = 10'000;
  // How long a connection may stay without a request.
  uint32_t idle_ms = 75'000;
  // Within each such span body_bytes_min of a body must arrive while the server reads. What is
  // streamed comes from programs that may pause, and waits with a connection and a sink, but with
  // no worker: it has more time. And ...
  uint32_t body_ms = 10'000;
  uint32_t streamed_body_ms = 300'000;
  size_t body_bytes_min = 4 * 1024;
  // ... some of a response must be taken while there is one to send.
  uint32_t write_ms = 30'000;
  // How long stop() waits for requests in flight.
  uint32_t stop_ms = 10'000;
  // How exactly the times above are kept.
  uint32_t sweep_ms = 500;

  std::optional<TlsFiles> tls = {};
  // trellis_http_*; none: not counted. Must outlive the server.
  Registry* metrics = nullptr;
  // Makes the body of every error that net itself answers with; none: a line of plain text. The
  // status of what it returns is ignored, its headers are kept. Runs on loops: must not block.
  std::function<HttpResponse(unsigned status, std::string_view message, std::string_view path)>
      error_response = {};
  // Whose request it is, by its header: workers are fair between lanes, and no lane but 0, which is
  // also that of all if there is none, has all of them. Runs on loops: must not block.
  std::function<uint64_t(const HttpRequest& request)> lane = {};
  // Makes the response to an error of a sink or a source; none: error_response with http_status().
  // Likewise runs on loops.
  std::function<HttpResponse(const Error& error, std::string_view path)> failure_response = {};
};

class HttpServer {
 public:
  // Listens when it returns. The clock must outlive the server.
  static Result<std::unique_ptr<HttpServer>> start(Router router, HttpServerOptions options,
                                                   Clock& clock);
  ~HttpServer();  // stops

  std::vector<uint16_t> ports() const;  // of the listeners, in order
  const Router& router() const;

  // Stops accepting, closes idle connections, ends streams that wait, lets requests in flight
  // finish for up to stop_ms, then breaks off what is left and waits for handlers that still run.
  // Any thread but a handler's; the second call waits for the first.
  void stop();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trellis
