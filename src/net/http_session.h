// A connection with its socket, on one event loop. For net's own files: it names types of Asio.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "net/event_loop.h"
#include "net/http_connection.h"
#include "net/http_exchange.h"
#include "net/http_server.h"
#include "net/router.h"
#include "net/worker_pool.h"

namespace trellis {

// Names its executor, for one that could be any costs an allocation or two with each operation.
using LoopSocket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

// Open connections, counted by all loops.
class ConnectionCount {
 public:
  size_t add() { return ++count_; }  // gives how many there are now
  void remove();
  size_t value() const { return count_; }
  // Until there are none; false if it took longer.
  bool wait_for_none(uint32_t timeout_ms);

 private:
  std::atomic<size_t> count_{0};
  std::mutex mutex_;
  std::condition_variable none_left_;
};

// What the sessions of a server share. Outlives them.
struct SessionServices {
  const HttpServerOptions& options;
  Clock& clock;
  WorkerPool& workers;
  ConnectionCount& count;
  const HttpMetrics* metrics;
};

// A loop and what its connections share.
struct SessionLoop {
  SessionLoop(uint32_t sweep_ms, ConnectionContext shared, const SessionServices& server)
      : loop(sweep_ms), context(shared), services(server) {}

  EventLoop loop;
  ConnectionContext context;
  const SessionServices& services;
};

struct AcceptedSocket {
  LoopSocket socket;  // of the loop that will serve it
  HttpPeer peer;
  std::shared_ptr<boost::asio::ssl::context> tls;  // none: plain
  std::optional<HttpProblem> refusal;              // to be answered with this
};

// Makes a session of a socket that was just counted, and hands it to its loop. Any thread.
void start_session(SessionLoop& loop, AcceptedSocket accepted);

}  // namespace trellis
