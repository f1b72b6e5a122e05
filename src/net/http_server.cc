#include "net/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "net/http_connection.h"
#include "net/http_exchange.h"
#include "net/wake_target.h"
#include "net/worker_pool.h"

namespace trellis {
namespace {

constexpr size_t header_bytes_least = 256;

// Leads from a Waker to its stream, if that is still there.
class StreamWaker final : public WakeTarget, public std::enable_shared_from_this<StreamWaker> {
 public:
  StreamWaker(std::shared_ptr<LoopPoster> poster, HttpConnection& connection, uint64_t stream)
      : poster_(std::move(poster)), connection_(connection), stream_(stream) {}

  void wake() override {
    if (is_posted_.exchange(true)) return;
    poster_->post([self = shared_from_this()] {
      self->is_posted_ = false;  // before the stream looks: what is told later is posted again
      self->connection_.woken(self->stream_);
    });
  }

 private:
  const std::shared_ptr<LoopPoster> poster_;
  HttpConnection& connection_;  // there whenever the poster runs something
  const uint64_t stream_;
  std::atomic<bool> is_posted_{false};
};

class HttpDriver final : public ConnectionDriver {
 public:
  HttpDriver(StreamDriver& stream, WorkerPool& workers, HttpConnection& connection)
      : stream_(stream), workers_(workers), connection_(connection) {}

  void offload(std::function<void()> job, uint64_t lane) override {
    auto run = [this, poster = stream_.poster(), job = std::move(job)]() mutable {
      job();
      job = nullptr;
      poster->post([this] { connection_.worked(); });  // only if we are still there
    };
    workers_.submit(std::move(run), lane);
  }

  void dispose(std::shared_ptr<Exchange> exchange) override {
    workers_.submit([exchange = std::move(exchange)]() mutable { exchange.reset(); });
  }

  std::shared_ptr<WakeTarget> wake_target(uint64_t stream) override {
    return std::make_shared<StreamWaker>(stream_.poster(), connection_, stream);
  }

 private:
  StreamDriver& stream_;
  WorkerPool& workers_;
  HttpConnection& connection_;
};

// A base, so that it outlives the connection, which may use it to its end.
struct HttpDriverHolder {
  HttpDriver driver;
};

class DrivenHttpConnection final : private HttpDriverHolder, public HttpConnection {
 public:
  DrivenHttpConnection(ConnectionContext& context, StreamDriver& stream, WorkerPool& workers,
                       StreamPeer peer)
      : HttpDriverHolder{{stream, workers, *this}},
        HttpConnection(context, driver, std::move(peer)) {}
};

class HttpProtocol final : public StreamProtocol {
 public:
  HttpProtocol(ConnectionContext context, WorkerPool& workers)
      : context_(std::move(context)), workers_(workers) {}

  std::unique_ptr<StreamConnection> make_connection(StreamDriver& driver,
                                                    StreamPeer peer) override {
    return std::make_unique<DrivenHttpConnection>(context_, driver, workers_, std::move(peer));
  }

 private:
  ConnectionContext context_;
  WorkerPool& workers_;
};

}  // namespace

struct HttpServer::Impl {
  Impl(Router&& routes, HttpServerOptions&& given, Clock& time)
      : router(std::move(routes)),
        options(std::move(given)),
        clock(time),
        budget(options.buffered_bytes_max),
        workers(std::max(options.workers, 1U)) {}

  Status start();
  void stop();

  const Router router;
  const HttpServerOptions options;
  Clock& clock;
  BodyBudget budget;
  std::optional<HttpMetrics> metrics;
  WorkerPool workers;
  std::unique_ptr<StreamServer> streams;
};

Status HttpServer::Impl::start() {
  if (options.header_bytes_max < header_bytes_least) {
    return Error{Code::invalid, fmt::format("header_bytes_max is under {}", header_bytes_least)};
  }
  StreamServerOptions stream_options{
      .listeners = options.listeners,
      .loops = options.loops,
      .connections_max = options.connections_max,
      .open_ms = options.header_ms,
      .stop_ms = options.stop_ms,
      .sweep_ms = options.sweep_ms,
      .tls = options.tls,
      .alpn = "http/1.1",
  };
  if (options.metrics != nullptr) {
    TRY_ASSIGN(metrics, HttpMetrics::make(*options.metrics));
    stream_options.metrics = metrics->streams;
  }
  const auto make_protocol = [this](StreamLoop&) {
    return std::make_unique<HttpProtocol>(
        ConnectionContext{router, options, clock, budget, metrics ? &*metrics : nullptr}, workers);
  };
  TRY_ASSIGN(streams, StreamServer::start(make_protocol, std::move(stream_options), clock));
  return {};
}

void HttpServer::Impl::stop() {
  streams->stop();
  workers.stop();  // waits for handlers whose connections were broken off
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::start(Router router, HttpServerOptions options,
                                                      Clock& clock) {
  std::unique_ptr<Impl> impl;
  try {
    impl = std::make_unique<Impl>(std::move(router), std::move(options), clock);
  } catch (const std::exception& error) {  // no threads left
    return Error{Code::unavailable, fmt::format("cannot start the HTTP server: {}", error.what())};
  }
  TRY(impl->start());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

std::vector<uint16_t> HttpServer::ports() const { return impl_->streams->ports(); }

const Router& HttpServer::router() const { return impl_->router; }

void HttpServer::stop() { impl_->stop(); }

}  // namespace trellis
