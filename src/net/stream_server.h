// A server of byte streams for any protocol: sockets, TLS, event loops, limits, a graceful stop.
//
//   TRY_ASSIGN(auto server, StreamServer::start(
//       [](StreamLoop& loop) { return std::make_unique<EchoProtocol>(loop); },
//       {.listeners = {{"127.0.0.1", 6379}}}, clock));
//   server->ports();  // {6379}
//   server->stop();   // graceful
//
// Each loop is one thread, with a protocol object of its own. Sockets are dealt to the loops in
// turn: all that a loop's protocol and its connections are told, they are told on its thread, so
// they need no locks among each other and must not block. They stay there, unless the protocol lets
// them move: then only as many loops have connections as are needed (net/loop_balance.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/result.h"
#include "net/loop_poster.h"
#include "net/output_queue.h"

namespace trellis {

class StreamProtocol;

// The protocol's side of one connection. After each event there may be output, and input_space()
// may have opened or closed. An exception of an event breaks off this connection only.
class StreamConnection {
 public:
  virtual ~StreamConnection() = default;

  // Where to read to; empty: not now, which is how a slow reader is kept from filling the memory.
  // Stays where it is until the next call, which does not come while a read is pending.
  virtual std::span<char> input_space() = 0;
  virtual void received(size_t bytes) = 0;  // they are in the input space
  // No more will come, and input_space() is not asked again; output may still be taken.
  virtual void received_end() = 0;

  // What is to be sent. Only the server consumes.
  virtual OutputQueue& output() = 0;
  virtual void sent() = 0;  // some of the output is with the kernel

  // There are too many connections: says so, and is over. Comes before any input.
  virtual void refuse() = 0;
  // The server stops: finishes what is there, and is over.
  virtual void stop() = 0;
  // The last event: the socket is closed. Leaves its output alone, which an encrypting write may
  // still read. Soon after the connection is destroyed.
  virtual void abandon() = 0;
  // Now and then, for time-outs. `unsent_bytes`: what was consumed and the other side has not
  // taken yet; 0 while there is no output.
  virtual void tick(size_t unsent_bytes) = 0;

  // Nothing is asked and nothing to be sent: a stop closes it at once.
  virtual bool is_idle() const = 0;
  // To be closed when its output is sent.
  virtual bool is_over() const = 0;
  // To be closed now and with a reset: the other side must not take what it got for all there is.
  virtual bool is_broken() const = 0;

  // Another loop is to serve it: leaves its protocol, the next event is join(), on the other loop's
  // thread. False, where something is under way or it does not move at all: it stays.
  virtual bool leave() { return false; }
  virtual void join(StreamProtocol&) {}
};

// What a connection may ask of the server. Lives as long as the connection.
class StreamDriver {
 public:
  virtual ~StreamDriver() = default;
  // Loop's thread. Sends the output that was made outside of the connection's own events, and reads
  // on. Within such an event it does nothing, for each ends that way anyway. When it returns, the
  // connection may have been told abandon() and be gone.
  virtual void pump() = 0;
  // Loop's thread. What is posted runs as an event of the connection, unless that is over by then.
  virtual std::shared_ptr<LoopPoster> poster() = 0;
};

// A loop as its protocol sees it. Outlives the protocol.
class StreamLoop {
 public:
  virtual ~StreamLoop() = default;
  // Loop's thread. Runs it once, after all connections that are ready at this moment were given
  // their input: the commands of many can be run together. What is asked for by one that runs is
  // run at the end of the next turn.
  virtual void at_end_of_turn(std::function<void()> function) = 0;
  // Any thread.
  virtual std::shared_ptr<LoopPoster> poster() = 0;
};

struct StreamPeer {
  std::string address;             // "127.0.0.1:51234", "[::1]:51234", "unix:/run/trellis.sock"
  bool is_loopback = false;        // of this machine; so is everybody at a Unix socket
  bool secure = false;             // over TLS
  std::string local_address = {};  // what it came to, likewise
};

// What one loop keeps for a protocol: the state that its connections share.
class StreamProtocol {
 public:
  virtual ~StreamProtocol() = default;  // when the loop's thread and its connections are gone
  virtual std::unique_ptr<StreamConnection> make_connection(StreamDriver& driver,
                                                            StreamPeer peer) = 0;
  // Whether its connections may leave for another loop's.
  virtual bool lets_move() const { return false; }
};

// Called once for each loop, by start(), before the loop runs.
using MakeStreamProtocol = std::function<std::unique_ptr<StreamProtocol>(StreamLoop& loop)>;

// When a silent TCP connection is asked whether it is still there.
inline constexpr int tcp_keepalive_s = 300;

struct StreamListener {
  std::string host = {};  // an address or a name; "" for all addresses of the machine
  uint16_t port = 0;      // 0: any free one, see ports()
  bool tls = false;       // needs certificate files
  // Not empty: a Unix socket of this path, and no host and port. A socket file that nobody listens
  // on is replaced, any other file is an error. Removed by stop().
  std::string unix_path = {};
  uint32_t unix_mode = 0600;  // of the socket file: who may write to it may connect
};

// PEM files: the certificate with its chain, and its key. When they change they are loaded again
// within a second of the next connection; while they do not load, the old ones stay.
struct TlsFiles {
  std::string cert;
  std::string key;
};

struct StreamMetrics {
  Gauge connections;
  Counter received_bytes;
  Counter sent_bytes;
};

struct StreamServerOptions {
  std::vector<StreamListener> listeners = {};
  unsigned loops = 0;               // 0: as many as the machine has cores
  size_t connections_max = 10'000;  // more are refused, or closed at once

  // A TLS handshake must be complete so long after it began.
  uint32_t open_ms = 10'000;
  // How long a connection that was closed is still listened to. Closing with unread input would
  // reset it, and the other side could lose the last output before reading it.
  uint32_t linger_ms = 2'000;
  // How long stop() waits for connections to finish.
  uint32_t stop_ms = 10'000;
  // How exactly the times above are kept, and how often connections are told tick().
  uint32_t sweep_ms = 500;

  std::optional<TlsFiles> tls = {};
  std::string alpn = {};  // the protocol's name in TLS, up to 255 bytes; "": it has none
  // How many cores nobody used since it was last asked; empty: as the system says.
  std::function<double()> idle_cores = {};
  std::optional<StreamMetrics> metrics = {};  // their registry must outlive the server
};

class StreamServer {
 public:
  // Listens when it returns. The clock must outlive the server.
  static Result<std::unique_ptr<StreamServer>> start(const MakeStreamProtocol& make_protocol,
                                                     StreamServerOptions options, Clock& clock);
  ~StreamServer();  // stops

  std::vector<uint16_t> ports() const;  // of the listeners, in order; 0 for a Unix socket

  // Stops accepting, closes idle connections, lets the others finish for up to stop_ms, breaks off
  // what is left and ends the loops. Any thread but a loop's; the second call waits for the first.
  void stop();

 private:
  struct Impl;
  explicit StreamServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trellis
