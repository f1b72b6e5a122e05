#include "net/stream_session.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <cerrno>
#include <chrono>
#include <exception>
#include <span>
#include <utility>

#include "base/log.h"

namespace trellis {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using TlsStream = asio::ssl::stream<LoopSocket>;

constexpr size_t gathered_views_max = 16;
constexpr int reads_in_a_row_max = 16;
constexpr size_t discarded_bytes_max = 16 * 1024;  // at a time

// All but reading, writing and closing, in which plain and TLS sockets differ.
class Session : public LoopMember,
                public StreamDriver,
                public std::enable_shared_from_this<Session> {
 public:
  Session(SessionLoop& loop, StreamPeer peer, bool is_refused)
      : loop_(&loop), peer_(std::move(peer)), is_refused_(is_refused) {}

  void start();

  void pump() override;
  std::shared_ptr<LoopPoster> poster() override;
  // Hands it to another loop, if it can move now.
  virtual bool move_to(SessionLoop&) { return false; }
  void run(const std::function<void()>& posted);
  // Any thread may ask for the loop; only that loop's is told whether the session is there.
  SessionLoop& loop() const { return *loop_.load(std::memory_order_acquire); }
  bool is_at(const SessionLoop& here) const { return &loop() == &here && !is_moving_; }

  void tick() override;
  void stop() override;
  void abort() override;

 protected:
  enum class Phase : uint8_t { opening, open, closing, closed };

  virtual void open() = 0;         // leads to opened()
  virtual bool read() = 0;         // true: received() or close_now() was called, and more may come
  virtual void write() = 0;        // takes from the output; see has_written()
  virtual void discard() = 0;      // what is read now; leads to close_now
  virtual void begin_close() = 0;  // says that no more will come; leads to close_now
  virtual void close_socket(bool with_reset) = 0;
  virtual size_t unsent_bytes() = 0;

  // Runs an event of the connection, then does what that wants. Whatever is thrown, no memory say,
  // ends this connection only.
  template <class Event>
  void handle(Event&& event);
  void advance();

  void opened();
  void received(size_t bytes);  // 0: the end
  void has_written(size_t bytes);
  void close_now(bool with_reset);
  static std::span<char> discard_space();

  void pump_later();

  std::atomic<SessionLoop*> loop_;
  bool is_moving_ = false;  // to that loop
  StreamPeer peer_;         // until the connection has it
  const bool is_refused_;
  std::unique_ptr<StreamConnection> connection_;  // none before start()
  std::shared_ptr<LoopPoster> poster_;            // none before somebody asked
  Phase phase_ = Phase::opening;
  uint64_t phase_since_us_ = 0;
  bool is_handling_ = false;
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool has_end_ = false;  // of input
  bool pumps_later_ = false;
};

// Goes to the loop that the session had first; if it has moved on, so does what is posted.
class SessionPoster final : public LoopPoster {
 public:
  SessionPoster(SessionLoop& loop, std::weak_ptr<Session> session)
      : loop_(loop), mailbox_(loop.loop.mailbox()), session_(std::move(session)) {}

  void post(std::function<void()> function) override {
    mailbox_->post([&loop = loop_, weak = session_, function = std::move(function)]() mutable {
      deliver(loop, std::move(weak), std::move(function));
    });
  }

 private:
  static void deliver(SessionLoop& here, std::weak_ptr<Session> weak,
                      std::function<void()> function) {
    const std::shared_ptr<Session> session = weak.lock();
    if (session == nullptr) return;
    if (session->is_at(here)) return session->run(function);
    SessionLoop& there = session->loop();
    there.loop.mailbox()->post(
        [&there, weak = std::move(weak), function = std::move(function)]() mutable {
          deliver(there, std::move(weak), std::move(function));
        });
  }

  SessionLoop& loop_;  // only on its thread: the poster may outlive it
  const std::shared_ptr<Mailbox> mailbox_;
  const std::weak_ptr<Session> session_;
};

template <class Event>
void Session::handle(Event&& event) {
  try {
    is_handling_ = true;
    event();
    advance();
    is_handling_ = false;
  } catch (const std::exception& error) {
    log_error("a connection failed", {{"what", error.what()}});
    close_now(true);
  }
}

void Session::start() {
  loop().loop.add(shared_from_this());
  const SessionServices& services = loop().services;
  if (services.options.metrics.has_value()) services.options.metrics->connections.add(1);
  phase_since_us_ = services.clock.monotonic_us();
  handle([this] {
    connection_ = loop().protocol->make_connection(*this, std::move(peer_));
    open();
  });
}

void Session::opened() {
  phase_ = Phase::open;
  if (is_refused_) connection_->refuse();
}

void Session::received(size_t bytes) {
  if (bytes == 0) {
    has_end_ = true;
    return connection_->received_end();
  }
  const auto& metrics = loop().services.options.metrics;
  if (metrics.has_value()) metrics->received_bytes.add(bytes);
  connection_->received(bytes);
}

void Session::has_written(size_t bytes) {
  const auto& metrics = loop().services.options.metrics;
  if (metrics.has_value()) metrics->sent_bytes.add(bytes);
  connection_->output().consume(bytes);
  connection_->sent();
}

// Does what the connection wants now, after every event.
void Session::advance() {
  for (int reads = 0;; ++reads) {
    if (phase_ == Phase::opening || phase_ == Phase::closed) return;
    if (phase_ == Phase::closing) return discard();
    if (!is_writing_ && !connection_->is_broken() && !connection_->output().empty()) write();
    if (phase_ != Phase::open) return;
    if (connection_->is_broken()) return close_now(true);
    if (connection_->is_over()) {
      if (!is_writing_ && connection_->output().empty()) {
        phase_ = Phase::closing;
        phase_since_us_ = loop().services.clock.monotonic_us();
        begin_close();
      }
      return;
    }
    if (is_reading_ || has_end_) return;
    if (reads == reads_in_a_row_max) return pump_later();  // others come first
    if (!read()) return;
  }
}

void Session::pump() {
  if (is_handling_) return;
  const std::shared_ptr<Session> self = shared_from_this();  // it may close
  handle([] {});
}

void Session::pump_later() {
  pumps_later_ = true;  // and stays here until then
  loop().loop.at_end_of_turn([weak = weak_from_this()] {
    const std::shared_ptr<Session> session = weak.lock();
    if (session == nullptr) return;
    session->pumps_later_ = false;
    session->pump();
  });
}

std::shared_ptr<LoopPoster> Session::poster() {
  if (poster_ == nullptr) {
    poster_ = std::make_shared<SessionPoster>(loop(), weak_from_this());
  }
  return poster_;
}

void Session::run(const std::function<void()>& posted) {
  if (phase_ == Phase::closing || phase_ == Phase::closed) return;
  handle(posted);
}

// What is discarded is never looked at, so all sessions of a thread may write to the same place.
std::span<char> Session::discard_space() {
  thread_local std::array<char, discarded_bytes_max> space;
  return space;
}

void Session::close_now(bool with_reset) {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  if (connection_ != nullptr) connection_->abandon();
  close_socket(with_reset);
  const SessionServices& services = loop().services;
  if (services.options.metrics.has_value()) services.options.metrics->connections.add(-1);
  --loop().sessions;
  loop().loop.remove(*this);
  services.count.remove();  // last: the server may end when it is the last
}

void Session::tick() {
  const SessionServices& services = loop().services;
  const uint64_t age_us = services.clock.monotonic_us() - phase_since_us_;
  if (phase_ == Phase::opening) {
    if (age_us > services.options.open_ms * us_per_ms) close_now(false);
  } else if (phase_ == Phase::closing) {
    if (age_us > services.options.linger_ms * us_per_ms) close_now(false);
  } else if (phase_ == Phase::open) {
    handle([this] { connection_->tick(connection_->output().empty() ? 0 : unsent_bytes()); });
  }
}

void Session::stop() {
  if (phase_ == Phase::opening) return close_now(false);
  if (phase_ != Phase::open) return;
  // Who waits for nothing loses nothing, and need not be listened to until it closes too.
  if (connection_->is_idle()) return close_now(false);
  handle([this] { connection_->stop(); });
}

void Session::abort() { close_now(true); }

// Bytes that the kernel took and the other side did not yet.
size_t unsent_bytes_of(int socket) {
  int bytes = 0;
  return ioctl(socket, SIOCOUTQ, &bytes) == 0 ? static_cast<size_t>(bytes) : 0;
}

void reset_at_close(int socket) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

bool must_wait() { return errno == EAGAIN || errno == EWOULDBLOCK; }

// Without Asio, which would call the system twice as often.
class PlainSession final : public Session {
 public:
  PlainSession(SessionLoop& loop, AcceptedSocket accepted)
      : Session(loop, std::move(accepted.peer), accepted.is_refused),
        socket_(accepted.socket.release()) {}
  ~PlainSession() override { close_socket(false); }

  void ready(uint32_t events) override {
    const std::shared_ptr<Session> self = shared_from_this();  // it may close
    if ((events & ~EPOLLOUT) != 0) is_readable_ = true;
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) is_end_near_ = true;
    if (is_writing_ && (events & ~EPOLLIN) != 0) {
      is_writing_ = false;
      loop().loop.change_watch(socket_, read_events, *this);
    }
    handle([] {});
  }

  bool move_to(SessionLoop& to) override {
    if (phase_ != Phase::open || is_writing_ || is_end_near_ || has_end_ || pumps_later_ ||
        !connection_->leave())
      return false;
    std::shared_ptr<Session> self = shared_from_this();
    SessionLoop& from = loop();
    from.loop.end_watch(socket_);
    from.loop.remove(*this);
    --from.sessions;
    ++to.sessions;
    is_moving_ = true;
    loop_.store(&to, std::memory_order_release);  // from here on it is the other thread's
    to.loop.mailbox()->post([this, self = std::move(self)] { arrive(); });
    return true;
  }

  void arrive() {
    is_moving_ = false;
    loop().loop.add(shared_from_this());
    handle([this] {
      connection_->join(*loop().protocol);
      if (!watch()) close_now(true);
    });
    if (loop().is_stopping) stop();
  }

 private:
  static constexpr uint32_t read_events = EPOLLIN | EPOLLRDHUP;

  void open() override {
    if (fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK) != 0 || !watch()) {
      return close_now(true);
    }
    opened();
  }

  bool watch() { return loop().loop.watch(socket_, read_events, *this); }

  bool read() override {
    if (!is_readable_) return false;
    const std::span<char> space = connection_->input_space();
    if (space.empty()) return false;
    const ssize_t bytes = recv(socket_, space.data(), space.size(), 0);
    // So little is all there is; what comes later is told. The end is seen only by reading on.
    if (bytes < static_cast<ssize_t>(space.size()) && !is_end_near_) is_readable_ = false;
    if (bytes < 0 && must_wait()) {
      is_readable_ = false;
      return false;
    }
    if (bytes < 0 && errno == EINTR) return is_readable_ = true;
    if (bytes < 0) {
      close_now(false);
    } else {
      received(static_cast<size_t>(bytes));
    }
    return true;
  }

  // At once, for most responses fit the kernel's buffer; waits only if that is full.
  void write() override {
    while (phase_ == Phase::open && !connection_->is_broken() && !connection_->output().empty()) {
      std::array<ByteView, gathered_views_max> views;
      std::array<iovec, gathered_views_max> vectors;
      const size_t count = connection_->output().peek(views);
      for (size_t i = 0; i < count; ++i)
        vectors[i] = {const_cast<char*>(views[i].data()), views[i].size()};
      msghdr message{};
      message.msg_iov = vectors.data();
      message.msg_iovlen = count;
      // One is sent without a vector to copy in: by far the most are one.
      const ssize_t bytes = count == 1
                                ? send(socket_, views[0].data(), views[0].size(), MSG_NOSIGNAL)
                                : sendmsg(socket_, &message, MSG_NOSIGNAL);
      if (bytes < 0 && must_wait()) {
        is_writing_ = true;
        return loop().loop.change_watch(socket_, read_events | EPOLLOUT, *this);
      }
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0) return close_now(false);
      has_written(static_cast<size_t>(bytes));
    }
  }

  void begin_close() override {
    if (shutdown(socket_, SHUT_WR) != 0) return close_now(false);
    discard();
  }

  void discard() override {
    const std::span<char> space = discard_space();
    for (int reads = 0; is_readable_ && reads < reads_in_a_row_max; ++reads) {
      const ssize_t bytes = recv(socket_, space.data(), space.size(), 0);
      if (bytes < 0 && must_wait()) {
        is_readable_ = false;
      } else if (bytes == 0 || (bytes < 0 && errno != EINTR)) {
        return close_now(false);
      }
    }
    if (!is_readable_) return;
    pump_later();
  }

  void close_socket(bool with_reset) override {
    if (socket_ < 0) return;
    if (with_reset) reset_at_close(socket_);
    ::close(std::exchange(socket_, -1));
  }
  size_t unsent_bytes() override { return unsent_bytes_of(socket_); }

  int socket_;
  bool is_readable_ = false;
  bool is_end_near_ = false;  // the other side sends no more
};

class TlsSession final : public Session {
 public:
  TlsSession(SessionLoop& loop, AcceptedSocket accepted)
      : Session(loop, std::move(accepted.peer), accepted.is_refused),
        context_(std::move(accepted.tls)),
        stream_(std::move(accepted.socket), *context_) {}

 private:
  std::shared_ptr<TlsSession> self() {
    return std::static_pointer_cast<TlsSession>(shared_from_this());
  }

  void open() override {
    stream_.async_handshake(TlsStream::server, [self = self()](const error_code& error) {
      if (error) return self->close_now(false);
      if (self->phase_ == Phase::opening) self->handle([&self] { self->opened(); });
    });
  }

  bool read() override {
    const std::span<char> space = connection_->input_space();
    if (!space.empty()) read_to(space);
    return false;
  }

  void discard() override {
    if (!is_reading_) read_to(discard_space());
  }

  void read_to(std::span<char> space) {
    is_reading_ = true;
    stream_.async_read_some(
        asio::buffer(space.data(), space.size()),
        [self = self()](const error_code& error, size_t bytes) { self->has_read(error, bytes); });
  }

  void has_read(const error_code& error, size_t bytes) {
    is_reading_ = false;
    // Who closes without saying so in TLS is as gone as who does.
    const bool is_end = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
    if (phase_ == Phase::closed) return;
    if (phase_ == Phase::closing) return error ? close_now(false) : pump();
    if (error && !is_end) return close_now(false);
    handle([this, is_end, bytes] { received(is_end ? 0 : bytes); });
  }

  void write() override {
    std::array<ByteView, 1> view;
    if (connection_->output().peek(view) == 0) return;
    is_writing_ = true;
    stream_.async_write_some(asio::buffer(view[0].data(), view[0].size()),
                             [self = self()](const error_code& error, size_t bytes) {
                               self->is_writing_ = false;
                               if (error) return self->close_now(false);
                               if (self->phase_ != Phase::open) return;
                               self->handle([&self, bytes] { self->has_written(bytes); });
                             });
  }

  void begin_close() override {
    stream_.async_shutdown([self = self()](const error_code&) { self->close_now(false); });
  }

  void close_socket(bool with_reset) override {
    error_code ignored;
    if (with_reset) reset_at_close(stream_.next_layer().native_handle());
    stream_.next_layer().close(ignored);
  }
  size_t unsent_bytes() override { return unsent_bytes_of(stream_.next_layer().native_handle()); }

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
  ++loop.sessions;
  loop.loop.mailbox()->post([session = std::move(session)] { session->start(); });
}

size_t move_sessions(SessionLoop& from, SessionLoop& to, size_t count_max) {
  if (count_max == 0 || from.is_stopping) return 0;
  size_t count = 0;
  from.loop.visit([&](LoopMember& member) {
    if (static_cast<Session&>(member).move_to(to)) ++count;
    return count < count_max;
  });
  return count;
}

}  // namespace trellis
