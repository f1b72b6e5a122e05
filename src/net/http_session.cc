#include "net/http_session.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <chrono>
#include <exception>
#include <span>
#include <type_traits>
#include <utility>

#include "base/log.h"
#include "net/wake_target.h"

namespace trellis {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using TlsStream = asio::ssl::stream<LoopSocket>;

constexpr size_t gathered_views_max = 16;
constexpr size_t discarded_bytes_max = 16 * 1024;  // at a time
// How long a closed connection is listened to. Closing with unread input would reset it, and the
// other side could lose the response before reading it.
constexpr uint64_t linger_us = 2'000'000;

class Session;

class StreamWaker final : public WakeTarget, public std::enable_shared_from_this<StreamWaker> {
 public:
  StreamWaker(std::shared_ptr<Mailbox> mailbox, std::weak_ptr<Session> session, uint64_t stream)
      : mailbox_(std::move(mailbox)), session_(std::move(session)), stream_(stream) {}
  void wake() override;

 private:
  const std::shared_ptr<Mailbox> mailbox_;
  const std::weak_ptr<Session> session_;
  const uint64_t stream_;
  std::atomic<bool> is_posted_{false};
};

// All but reading, writing and closing, in which plain and TLS sockets differ.
class Session : public LoopMember,
                public ConnectionDriver,
                public std::enable_shared_from_this<Session> {
 public:
  Session(SessionLoop& loop, HttpPeer peer, std::optional<HttpProblem> refusal)
      : loop_(loop), refusal_(refusal), connection_(loop.context, *this, std::move(peer)) {}

  void start();

  void offload(std::function<void()> job) override;
  void dispose(std::shared_ptr<Exchange> exchange) override;
  std::shared_ptr<WakeTarget> wake_target(uint64_t stream) override;
  void woken(uint64_t stream);

  void tick() override;
  void stop() override;
  void abort() override;

 protected:
  enum class Phase : uint8_t { opening, open, closing, closed };

  virtual void open() = 0;                       // leads to opened()
  virtual void read(std::span<char> space) = 0;  // leads to has_read()
  virtual void write() = 0;                      // takes from the output; see has_written()
  virtual void begin_close() = 0;  // says that no more will come; leads to has_read or close_now
  virtual void close_socket(bool with_reset) = 0;
  virtual size_t unsent_bytes() = 0;

  void opened();
  void has_read(const error_code& error, size_t bytes);
  void has_written(size_t bytes);
  void pump();
  void close_now(bool with_reset);
  std::span<char> discard_space();

  // Runs an event of the connection. Whatever is thrown, no memory say, ends this connection only.
  template <class Event>
  void guard(Event&& event);

  SessionLoop& loop_;
  const std::optional<HttpProblem> refusal_;
  HttpConnection connection_;
  Phase phase_ = Phase::opening;
  uint64_t phase_since_us_ = 0;
  bool is_reading_ = false;
  bool is_writing_ = false;
};

void StreamWaker::wake() {
  if (is_posted_.exchange(true)) return;
  mailbox_->post([self = shared_from_this()] {
    self->is_posted_ = false;  // before the stream looks: what is told later is posted again
    if (const std::shared_ptr<Session> session = self->session_.lock()) {
      session->woken(self->stream_);
    }
  });
}

template <class Event>
void Session::guard(Event&& event) {
  try {
    event();
  } catch (const std::exception& error) {
    log_error("a connection failed", {{"what", error.what()}});
    close_now(true);
  }
}

void Session::start() {
  loop_.loop.add(shared_from_this());
  if (loop_.services.metrics != nullptr) loop_.services.metrics->connections.add(1);
  phase_since_us_ = loop_.services.clock.monotonic_us();
  guard([this] { open(); });
}

void Session::opened() {
  if (phase_ != Phase::opening) return;
  phase_ = Phase::open;
  guard([this] {
    if (refusal_.has_value()) connection_.refuse(*refusal_);
    pump();
  });
}

void Session::has_read(const error_code& error, size_t bytes) {
  is_reading_ = false;
  if (phase_ == Phase::closed) return;
  if (phase_ == Phase::closing) {
    if (error) return close_now(false);
    return guard([this] { pump(); });
  }
  if (error && error != asio::error::eof) return close_now(false);
  guard([this, error, bytes] {
    if (error) {
      connection_.received_end();
    } else {
      if (loop_.services.metrics != nullptr) loop_.services.metrics->received_bytes.add(bytes);
      connection_.received(bytes);
    }
    pump();
  });
}

void Session::has_written(size_t bytes) {
  if (loop_.services.metrics != nullptr) loop_.services.metrics->sent_bytes.add(bytes);
  connection_.output().consume(bytes);
  connection_.sent();
}

// Does what the connection wants now, after every event.
void Session::pump() {
  if (phase_ == Phase::closed) return;
  if (phase_ == Phase::closing) {
    if (!is_reading_) {
      is_reading_ = true;
      read(discard_space());
    }
    return;
  }
  if (!is_writing_ && !connection_.is_broken() && !connection_.output().empty()) write();
  if (phase_ != Phase::open) return;
  if (connection_.is_broken()) return close_now(true);
  if (connection_.is_over()) {
    if (!is_writing_ && connection_.output().empty()) {
      phase_ = Phase::closing;
      phase_since_us_ = loop_.services.clock.monotonic_us();
      begin_close();
    }
    return;
  }
  if (is_reading_) return;
  const std::span<char> space = connection_.input_space();
  if (space.empty()) return;
  is_reading_ = true;
  read(space);
}

// What is discarded is never looked at, so all sessions of a thread may write to the same place.
std::span<char> Session::discard_space() {
  thread_local std::array<char, discarded_bytes_max> space;
  return space;
}

void Session::close_now(bool with_reset) {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  connection_.abandon();
  close_socket(with_reset);
  const SessionServices& services = loop_.services;
  if (services.metrics != nullptr) services.metrics->connections.add(-1);
  loop_.loop.remove(*this);
  services.count.remove();  // last: the server may end when it is the last
}

void Session::offload(std::function<void()> job) {
  loop_.services.workers.submit(
      [mailbox = loop_.loop.mailbox(), weak = weak_from_this(), job = std::move(job)]() mutable {
        job();
        job = nullptr;
        mailbox->post([weak = std::move(weak)] {
          const std::shared_ptr<Session> session = weak.lock();
          if (session == nullptr || session->phase_ != Phase::open) return;
          session->guard([&session] {
            session->connection_.worked();
            session->pump();
          });
        });
      });
}

void Session::dispose(std::shared_ptr<Exchange> exchange) {
  loop_.services.workers.submit([exchange = std::move(exchange)]() mutable { exchange.reset(); });
}

std::shared_ptr<WakeTarget> Session::wake_target(uint64_t stream) {
  return std::make_shared<StreamWaker>(loop_.loop.mailbox(), weak_from_this(), stream);
}

void Session::woken(uint64_t stream) {
  if (phase_ != Phase::open) return;
  guard([this, stream] {
    connection_.woken(stream);
    pump();
  });
}

void Session::tick() {
  const uint64_t age_us = loop_.services.clock.monotonic_us() - phase_since_us_;
  if (phase_ == Phase::opening) {
    if (age_us > loop_.services.options.header_ms * 1000ULL) close_now(false);
  } else if (phase_ == Phase::closing) {
    if (age_us > linger_us) close_now(false);
  } else if (phase_ == Phase::open) {
    guard([this] {
      connection_.tick(connection_.output().empty() ? 0 : unsent_bytes());
      pump();
    });
  }
}

void Session::stop() {
  if (phase_ == Phase::opening) return close_now(false);
  if (phase_ != Phase::open) return;
  // Who waits for nothing loses nothing, and need not be listened to until it closes too.
  if (connection_.is_idle()) return close_now(false);
  guard([this] {
    connection_.stop();
    pump();
  });
}

void Session::abort() { close_now(true); }

// Bytes that the kernel took and the other side did not yet.
size_t unsent_bytes_of(LoopSocket& socket) {
  int bytes = 0;
  return ioctl(socket.native_handle(), SIOCOUTQ, &bytes) == 0 ? static_cast<size_t>(bytes) : 0;
}

void close_socket_of(LoopSocket& socket, bool with_reset) {
  error_code ignored;
  if (with_reset) socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

class PlainSession final : public Session {
 public:
  PlainSession(SessionLoop& loop, AcceptedSocket accepted)
      : Session(loop, std::move(accepted.peer), accepted.refusal),
        socket_(std::move(accepted.socket)) {}

 private:
  std::shared_ptr<PlainSession> self() {
    return std::static_pointer_cast<PlainSession>(shared_from_this());
  }

  void open() override {
    error_code error;
    socket_.non_blocking(true, error);
    opened();
  }

  void read(std::span<char> space) override {
    socket_.async_read_some(
        asio::buffer(space.data(), space.size()),
        [self = self()](const error_code& error, size_t bytes) { self->has_read(error, bytes); });
  }

  // At once, for most responses fit the kernel's buffer; waits only if that is full.
  void write() override {
    while (phase_ == Phase::open && !connection_.is_broken() && !connection_.output().empty()) {
      std::array<ByteView, gathered_views_max> views;
      std::array<asio::const_buffer, gathered_views_max> buffers;
      const size_t count = connection_.output().peek(views);
      for (size_t i = 0; i < count; ++i) buffers[i] = {views[i].data(), views[i].size()};
      error_code error;
      const size_t bytes = socket_.write_some(std::span(buffers.data(), count), error);
      if (error == asio::error::would_block || error == asio::error::try_again) {
        is_writing_ = true;
        socket_.async_wait(tcp::socket::wait_write, [self = self()](const error_code& failed) {
          self->is_writing_ = false;
          if (failed) return self->close_now(false);
          self->guard([&self] { self->pump(); });
        });
        return;
      }
      if (error) return close_now(false);
      has_written(bytes);
    }
  }

  void begin_close() override {
    error_code error;
    socket_.shutdown(tcp::socket::shutdown_send, error);
    if (error) return close_now(false);
    pump();  // a read may be pending; what it brings is discarded
  }

  void close_socket(bool with_reset) override { close_socket_of(socket_, with_reset); }
  size_t unsent_bytes() override { return unsent_bytes_of(socket_); }

  LoopSocket socket_;
};

class TlsSession final : public Session {
 public:
  TlsSession(SessionLoop& loop, AcceptedSocket accepted)
      : Session(loop, std::move(accepted.peer), accepted.refusal),
        context_(std::move(accepted.tls)),
        stream_(std::move(accepted.socket), *context_) {}

 private:
  std::shared_ptr<TlsSession> self() {
    return std::static_pointer_cast<TlsSession>(shared_from_this());
  }

  void open() override {
    stream_.async_handshake(TlsStream::server, [self = self()](const error_code& error) {
      if (error) return self->close_now(false);
      self->opened();
    });
  }

  void read(std::span<char> space) override {
    stream_.async_read_some(asio::buffer(space.data(), space.size()),
                            [self = self()](const error_code& error, size_t bytes) {
                              // Who closes without saying so in TLS is as gone as who does.
                              const bool is_end = error == asio::ssl::error::stream_truncated;
                              self->has_read(is_end ? asio::error::eof : error, bytes);
                            });
  }

  void write() override {
    std::array<ByteView, 1> view;
    if (connection_.output().peek(view) == 0) return;
    is_writing_ = true;
    stream_.async_write_some(asio::buffer(view[0].data(), view[0].size()),
                             [self = self()](const error_code& error, size_t bytes) {
                               self->is_writing_ = false;
                               if (error) return self->close_now(false);
                               if (self->phase_ != Phase::open) return;
                               self->guard([&self, bytes] {
                                 self->has_written(bytes);
                                 self->pump();
                               });
                             });
  }

  void begin_close() override {
    stream_.async_shutdown([self = self()](const error_code&) { self->close_now(false); });
  }

  void close_socket(bool with_reset) override { close_socket_of(stream_.next_layer(), with_reset); }
  size_t unsent_bytes() override { return unsent_bytes_of(stream_.next_layer()); }

  const std::shared_ptr<asio::ssl::context> context_;
  TlsStream stream_;
};

}  // namespace

void ConnectionCount::remove() {
  if (--count_ > 0) return;
  const std::lock_guard lock(mutex_);
  none_left_.notify_all();
}

bool ConnectionCount::wait_for_none(uint32_t timeout_ms) {
  std::unique_lock lock(mutex_);
  return none_left_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                             [this] { return count_ == 0; });
}

void start_session(SessionLoop& loop, AcceptedSocket accepted) {
  std::shared_ptr<Session> session;
  if (accepted.tls != nullptr) {
    session = std::make_shared<TlsSession>(loop, std::move(accepted));
  } else {
    session = std::make_shared<PlainSession>(loop, std::move(accepted));
  }
  loop.loop.mailbox()->post([session = std::move(session)] { session->start(); });
}

}  // namespace trellis
