#include "net/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <latch>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "net/http_session.h"
#include "net/tls_context.h"

namespace trellis {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Connections over the limit are told so, but not any number of them at once.
constexpr size_t refused_max = 64;
constexpr size_t header_bytes_least = 256;
constexpr auto accept_pause = std::chrono::milliseconds(100);

std::string to_text(const tcp::endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  return address.is_v6() ? fmt::format("[{}]:{}", address.to_string(), endpoint.port())
                         : fmt::format("{}:{}", address.to_string(), endpoint.port());
}

// IPv4 clients of a socket for both are seen as what they are.
tcp::endpoint unmapped(const tcp::endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return endpoint;
  return {asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()), endpoint.port()};
}

Error cannot_listen(const HttpListener& listener, const error_code& error) {
  return {Code::unavailable,
          fmt::format("cannot listen on {}:{}: {}", listener.host, listener.port, error.message())};
}

Status listen(tcp::acceptor& acceptor, const tcp::endpoint& endpoint, error_code& error) {
  const auto failed = [&error] { return Error{Code::unavailable, error.message()}; };
  if (acceptor.open(endpoint.protocol(), error)) return failed();
  if (acceptor.set_option(tcp::acceptor::reuse_address(true), error)) return failed();
  if (endpoint.address().is_v6() && endpoint.address().is_unspecified()) {
    if (acceptor.set_option(asio::ip::v6_only(false), error)) return failed();
  }
  if (acceptor.bind(endpoint, error)) return failed();
  if (acceptor.listen(tcp::acceptor::max_listen_connections, error)) return failed();
  return {};
}

}  // namespace

struct HttpServer::Impl {
  // A listening socket. Its events run on the first loop.
  struct Listener {
    Listener(Impl& impl, bool with_tls)
        : server(impl),
          acceptor(impl.loops.front()->loop.io()),
          pause(impl.loops.front()->loop.io()),
          has_tls(with_tls) {}

    Status open(const HttpListener& options);
    void accept();
    void accepted(SessionLoop& loop, LoopSocket socket);
    void close();

    Impl& server;
    tcp::acceptor acceptor;
    asio::steady_timer pause;
    tcp::endpoint peer;  // of the connection that is being accepted
    const bool has_tls;
    uint16_t port = 0;
  };

  Impl(Router&& routes, HttpServerOptions&& given, Clock& time)
      : router(std::move(routes)),
        options(std::move(given)),
        clock(time),
        budget(options.buffered_bytes_max),
        workers(std::max(options.workers, 1U)),
        services{options, clock, workers, count, nullptr} {}

  Status start();
  void stop();
  SessionLoop& next_loop() { return *loops[next_loop_index++ % loops.size()]; }
  // Runs it on each loop's own thread, and waits.
  void on_each_loop(const std::function<void(SessionLoop&)>& function);

  const Router router;
  const HttpServerOptions options;
  Clock& clock;
  BodyBudget budget;
  std::optional<HttpMetrics> metrics;
  ConnectionCount count;
  WorkerPool workers;
  SessionServices services;
  std::unique_ptr<TlsContext> tls;  // the first loop's
  std::vector<std::unique_ptr<SessionLoop>> loops;
  std::vector<std::unique_ptr<Listener>> listeners;
  size_t next_loop_index = 0;  // the first loop's
  std::mutex stopping;
  bool is_stopped = false;
};

Status HttpServer::Impl::Listener::open(const HttpListener& options) {
  error_code error;
  std::vector<tcp::endpoint> endpoints;
  if (options.host.empty() || options.host == "*") {
    // Both kinds of addresses with one socket; a machine without IPv6 has only the other.
    endpoints = {{tcp::v6(), options.port}, {tcp::v4(), options.port}};
  } else {
    tcp::resolver resolver(acceptor.get_executor());
    const auto results = resolver.resolve(options.host, fmt::format("{}", options.port),
                                          tcp::resolver::passive, error);
    if (error) return cannot_listen(options, error);
    for (const auto& result : results) endpoints.push_back(result.endpoint());
  }
  error = asio::error::host_not_found;
  for (const tcp::endpoint& endpoint : endpoints) {
    if (listen(acceptor, endpoint, error).has_value()) {
      port = acceptor.local_endpoint(error).port();
      return {};
    }
    error_code ignored;
    acceptor.close(ignored);
  }
  return cannot_listen(options, error);
}

void HttpServer::Impl::Listener::accept() {
  SessionLoop& loop = server.next_loop();
  acceptor.async_accept(
      loop.loop.io(), peer, [this, &loop](const error_code& error, LoopSocket socket) {
        if (!acceptor.is_open()) return;
        try {
          if (!error) accepted(loop, std::move(socket));
        } catch (const std::exception& failure) {  // no memory, say: the next one may have it
          log_error("cannot take a connection", {{"port", port}, {"what", failure.what()}});
          server.count.remove();
        }
        if (!error || error == asio::error::connection_aborted) return accept();
        // Out of descriptors, most likely: that passes, and trying at once would only spin.
        log_warn("cannot accept a connection", {{"port", port}, {"error", error.message()}});
        pause.expires_after(accept_pause);
        pause.async_wait([this](const error_code& cancelled) {
          if (!cancelled && acceptor.is_open()) accept();
        });
      });
}

void HttpServer::Impl::Listener::accepted(SessionLoop& loop, LoopSocket socket) {
  const size_t connections = server.count.add();
  const size_t connections_max = server.options.connections_max;
  const bool is_over = connections > connections_max;
  error_code ignored;
  // A refusal over TLS would cost a handshake.
  if (is_over && (has_tls || connections > connections_max + refused_max)) {
    socket.close(ignored);
    server.count.remove();
    return;
  }
  socket.set_option(tcp::no_delay(true), ignored);
  const tcp::endpoint from = unmapped(peer);
  AcceptedSocket session{
      .socket = std::move(socket),
      .peer = {to_text(from), from.address().is_loopback(), has_tls},
      .tls = has_tls ? server.tls->current() : nullptr,
      .refusal = std::nullopt,
  };
  if (is_over) session.refusal = HttpProblem{503, "too many connections: try again soon"};
  start_session(loop, std::move(session));
}

void HttpServer::Impl::Listener::close() {
  error_code ignored;
  acceptor.close(ignored);
  pause.cancel();
}

Status HttpServer::Impl::start() {
  if (options.listeners.empty()) return Error{Code::invalid, "no address to listen on"};
  if (options.header_bytes_max < header_bytes_least) {
    return Error{Code::invalid, fmt::format("header_bytes_max is under {}", header_bytes_least)};
  }
  if (options.tls.has_value()) {
    TRY_ASSIGN(tls, TlsContext::load(*options.tls, clock));
  }
  if (options.metrics != nullptr) {
    TRY_ASSIGN(metrics, HttpMetrics::make(*options.metrics));
    services.metrics = &*metrics;
  }
  const unsigned loop_count =
      options.loops > 0 ? options.loops : std::max(std::thread::hardware_concurrency(), 1U);
  for (unsigned i = 0; i < loop_count; ++i) {
    loops.push_back(std::make_unique<SessionLoop>(
        options.sweep_ms, ConnectionContext{router, options, clock, budget, services.metrics},
        services));
  }
  for (const HttpListener& listener : options.listeners) {
    if (listener.tls && tls == nullptr) {
      return Error{Code::invalid, "a listener with TLS needs a certificate and its key"};
    }
    listeners.push_back(std::make_unique<Listener>(*this, listener.tls));
    TRY(listeners.back()->open(listener));
  }
  for (const std::unique_ptr<Listener>& listener : listeners) listener->accept();
  for (const std::unique_ptr<SessionLoop>& loop : loops) loop->loop.start();
  return {};
}

void HttpServer::Impl::on_each_loop(const std::function<void(SessionLoop&)>& function) {
  std::latch done(static_cast<ptrdiff_t>(loops.size()));
  for (const std::unique_ptr<SessionLoop>& loop : loops) {
    loop->loop.mailbox()->post([&] {
      function(*loop);
      done.count_down();
    });
  }
  done.wait();
}

void HttpServer::Impl::stop() {
  const std::lock_guard lock(stopping);
  if (std::exchange(is_stopped, true)) return;
  // First the listeners, so that every connection that will ever be is there for the next step.
  on_each_loop([this](SessionLoop& loop) {
    if (&loop != loops.front().get()) return;
    for (const std::unique_ptr<Listener>& listener : listeners) listener->close();
  });
  on_each_loop([](SessionLoop& loop) { loop.loop.for_each(&LoopMember::stop); });
  if (!count.wait_for_none(options.stop_ms)) {
    log_warn("requests did not finish in time and are broken off",
             {{"connections", count.value()}, {"stop_ms", options.stop_ms}});
    on_each_loop([](SessionLoop& loop) { loop.loop.for_each(&LoopMember::abort); });
  }
  workers.stop();
  for (const std::unique_ptr<SessionLoop>& loop : loops) loop->loop.finish();
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::start(Router router, HttpServerOptions options,
                                                      Clock& clock) {
  auto impl = std::make_unique<Impl>(std::move(router), std::move(options), clock);
  try {
    TRY(impl->start());
  } catch (const std::exception& error) {  // no threads or descriptors left
    return Error{Code::unavailable, fmt::format("cannot start the HTTP server: {}", error.what())};
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

std::vector<uint16_t> HttpServer::ports() const {
  std::vector<uint16_t> ports;
  for (const auto& listener : impl_->listeners) ports.push_back(listener->port);
  return ports;
}

const Router& HttpServer::router() const { return impl_->router; }

void HttpServer::stop() { impl_->stop(); }

}  // namespace trellis
