#include "net/stream_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <latch>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "net/listening_socket.h"
#include "net/loop_balance.h"
#include "net/stream_session.h"
#include "net/tls_context.h"

namespace trellis {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Connections over the limit are told so, but not any number of them at once.
constexpr size_t refused_max = 64;
constexpr auto accept_pause = std::chrono::milliseconds(100);

}  // namespace

struct StreamServer::Impl {
  // A listening socket. Its events run on the first loop.
  struct Listener {
    Listener(Impl& impl, const StreamListener& options)
        : server(impl),
          socket(impl.loops.front()->loop.io(), options),
          pause(impl.loops.front()->loop.io()) {}

    void accept();
    void accepted(SessionLoop& loop, LoopSocket client);
    void close();

    Impl& server;
    ListeningSocket socket;
    asio::steady_timer pause;
    ListeningSocket::Endpoint peer;  // of the connection that is being accepted
  };

  Impl(StreamServerOptions&& given, Clock& time)
      : options(std::move(given)), clock(time), services{options, clock, count} {}

  Status start(const MakeStreamProtocol& make_protocol);
  void stop();
  // Of those that are to have connections, if these can move to others later.
  SessionLoop& next_loop(bool can_move) {
    return *loops[next_loop_index++ % (can_move ? balance->used() : loops.size())];
  }
  void take_load(size_t index, const LoopLoad& load);
  // Runs it on each loop's own thread, and waits.
  void on_each_loop(const std::function<void(SessionLoop&)>& function);

  const StreamServerOptions options;
  Clock& clock;
  ConnectionCount count;
  const SessionServices services;
  std::unique_ptr<TlsContext> tls;  // the first loop's
  std::vector<std::unique_ptr<SessionLoop>> loops;
  std::unique_ptr<LoopBalance> balance;
  std::vector<std::unique_ptr<Listener>> listeners;
  size_t next_loop_index = 0;  // the first loop's
  std::mutex stopping;
  bool is_stopped = false;
};

void StreamServer::Impl::Listener::accept() {
  const bool can_move = !socket.has_tls() && server.loops.front()->protocol->lets_move();
  SessionLoop& loop = server.next_loop(can_move);
  socket.acceptor().async_accept(
      loop.loop.io(), peer, [this, &loop](const error_code& error, LoopSocket client) {
        if (!socket.acceptor().is_open()) return;
        try {
          if (!error) accepted(loop, std::move(client));
        } catch (const std::exception& failure) {  // no memory, say: the next one may have it
          log_error("cannot take a connection", {{"at", socket.text()}, {"what", failure.what()}});
          server.count.remove();
        }
        if (!error || error == asio::error::connection_aborted) return accept();
        // Out of descriptors, most likely: that passes, and trying at once would only spin.
        log_warn("cannot accept a connection", {{"at", socket.text()}, {"error", error.message()}});
        pause.expires_after(accept_pause);
        pause.async_wait([this](const error_code& cancelled) {
          if (!cancelled && socket.acceptor().is_open()) accept();
        });
      });
}

void StreamServer::Impl::Listener::accepted(SessionLoop& loop, LoopSocket client) {
  const size_t connections = server.count.add();
  const size_t connections_max = server.options.connections_max;
  const bool is_over = connections > connections_max;
  error_code ignored;
  // A refusal over TLS would cost a handshake.
  if (is_over && (socket.has_tls() || connections > connections_max + refused_max)) {
    client.close(ignored);
    server.count.remove();
    return;
  }
  StreamPeer from = socket.peer_of(peer);
  from.local_address = socket.address_of(client.local_endpoint(ignored));
  start_session(loop, {.socket = std::move(client),
                       .peer = std::move(from),
                       .tls = socket.has_tls() ? server.tls->current() : nullptr,
                       .is_refused = is_over});
}

void StreamServer::Impl::Listener::close() {
  socket.close();
  pause.cancel();
}

Status StreamServer::Impl::start(const MakeStreamProtocol& make_protocol) {
  if (options.listeners.empty()) return Error{Code::invalid, "no address to listen on"};
  if (options.tls.has_value()) {
    TRY_ASSIGN(tls, TlsContext::load(*options.tls, options.alpn, clock));
  }
  const unsigned loop_count =
      options.loops > 0 ? options.loops : std::max(std::thread::hardware_concurrency(), 1U);
  for (unsigned i = 0; i < loop_count; ++i) {
    loops.push_back(std::make_unique<SessionLoop>(services, make_protocol));
    if (loop_count > 1 && loops.back()->protocol->lets_move())
      loops.back()->loop.on_load([this, i](const LoopLoad& load) { take_load(i, load); });
  }
  balance = std::make_unique<LoopBalance>(
      loop_count, options.idle_cores ? options.idle_cores : make_idle_cores(), clock);
  for (const StreamListener& listener : options.listeners) {
    if (listener.tls && tls == nullptr) {
      return Error{Code::invalid, "a listener with TLS needs a certificate and its key"};
    }
    listeners.push_back(std::make_unique<Listener>(*this, listener));
    TRY(listeners.back()->socket.open());
  }
  for (const std::unique_ptr<Listener>& listener : listeners) listener->accept();
  for (const std::unique_ptr<SessionLoop>& loop : loops) loop->loop.start();
  return {};
}

// On that loop's thread. What it has too many of goes to who has the fewest.
void StreamServer::Impl::take_load(size_t index, const LoopLoad& load) {
  const size_t used = balance->take(index, load);
  SessionLoop& here = *loops[index];
  const size_t share = (count.value() + used - 1) / used;
  const auto over_share = [share](size_t sessions) { return sessions - std::min(share, sessions); };
  const auto below_share = [share](size_t sessions) { return share - std::min(share, sessions); };
  size_t excess = index < used ? over_share(here.sessions) : here.sessions.load();
  for (size_t i = 0; i < used && excess > 0; ++i)
    if (i != index)
      excess -= move_sessions(here, *loops[i], std::min(excess, below_share(loops[i]->sessions)));
}

void StreamServer::Impl::on_each_loop(const std::function<void(SessionLoop&)>& function) {
  std::latch done(static_cast<ptrdiff_t>(loops.size()));
  for (const std::unique_ptr<SessionLoop>& loop : loops) {
    loop->loop.mailbox()->post([&] {
      function(*loop);
      done.count_down();
    });
  }
  done.wait();
}

void StreamServer::Impl::stop() {
  const std::lock_guard lock(stopping);
  if (std::exchange(is_stopped, true)) return;
  // First the listeners, so that every connection that will ever be is there for the next step.
  on_each_loop([this](SessionLoop& loop) {
    if (&loop != loops.front().get()) return;
    for (const std::unique_ptr<Listener>& listener : listeners) listener->close();
  });
  on_each_loop([](SessionLoop& loop) {
    loop.is_stopping = true;
    loop.loop.for_each(&LoopMember::stop);
  });
  if (!count.wait_for_none(options.stop_ms)) {
    log_warn("connections did not finish in time and are broken off",
             {{"connections", count.value()}, {"stop_ms", options.stop_ms}});
    on_each_loop([](SessionLoop& loop) { loop.loop.for_each(&LoopMember::abort); });
  }
  for (const std::unique_ptr<SessionLoop>& loop : loops) loop->loop.finish();
}

StreamServer::StreamServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StreamServer::~StreamServer() { stop(); }

Result<std::unique_ptr<StreamServer>> StreamServer::start(const MakeStreamProtocol& make_protocol,
                                                          StreamServerOptions options,
                                                          Clock& clock) {
  auto impl = std::make_unique<Impl>(std::move(options), clock);
  try {
    TRY(impl->start(make_protocol));
  } catch (const std::exception& error) {  // no threads or descriptors left
    return Error{Code::unavailable, fmt::format("cannot start the server: {}", error.what())};
  }
  return std::unique_ptr<StreamServer>(new StreamServer(std::move(impl)));
}

std::vector<uint16_t> StreamServer::ports() const {
  std::vector<uint16_t> ports;
  for (const auto& listener : impl_->listeners) ports.push_back(listener->socket.port());
  return ports;
}

void StreamServer::stop() { impl_->stop(); }

}  // namespace trellis
