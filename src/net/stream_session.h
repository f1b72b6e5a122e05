// A connection with its socket, on one event loop. For net's own files: it names types of Asio.
#pragma once

#include <atomic>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "net/event_loop.h"
#include "net/stream_server.h"

namespace trellis {

// Of TCP or Unix. Names its executor, for one that could be any costs an allocation or two with
// each operation.
using LoopSocket = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol,
                                                    boost::asio::io_context::executor_type>;

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
  const StreamServerOptions& options;
  Clock& clock;
  ConnectionCount& count;
};

// A loop and what its sessions share.
class SessionLoop final : public StreamLoop {
 public:
  SessionLoop(const SessionServices& shared, const MakeStreamProtocol& make_protocol)
      : services(shared), loop(shared.options.sweep_ms) {
    protocol = make_protocol(*this);
  }

  void at_end_of_turn(std::function<void()> function) override {
    loop.at_end_of_turn(std::move(function));
  }
  std::shared_ptr<LoopPoster> poster() override { return loop.mailbox(); }

  const SessionServices& services;
  std::unique_ptr<StreamProtocol> protocol;  // outlives the connections, which the loop keeps
  EventLoop loop;
  std::atomic<size_t> sessions{0};  // also those that are on their way here
  bool is_stopping = false;         // the loop's
};

struct AcceptedSocket {
  LoopSocket socket;  // of the loop that will serve it
  StreamPeer peer;
  std::shared_ptr<boost::asio::ssl::context> tls;  // none: plain
  bool is_refused = false;                         // is to be told so
};

// Makes a session of a socket that was just counted, and hands it to its loop. Any thread.
void start_session(SessionLoop& loop, AcceptedSocket accepted);

// Hands up to so many of its sessions that can move to another loop, and tells how many. On the
// thread of `from`.
size_t move_sessions(SessionLoop& from, SessionLoop& to, size_t count_max);

}  // namespace trellis
