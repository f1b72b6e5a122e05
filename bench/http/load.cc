#include "load.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include "child_process.h"
#include "measure.h"

namespace trellis {

namespace {

constexpr int silence_ms_max = 10'000;
constexpr size_t head_piece_bytes = 1024;
constexpr size_t head_bytes_max = 16 * 1024;
constexpr size_t buffer_bytes = 256 * 1024;

double now_s() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void wrong(std::string_view what, std::string_view head) {
  give_up(fmt::format("a wrong answer: {}; its header is\n{}", what, head));
}

int connect_to(uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    give_up(fmt::format("connect to port {}: {}", port, std::strerror(errno)));
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

size_t content_length(std::string_view head) {
  constexpr std::string_view name = "\r\nContent-Length: ";
  const size_t at = head.find(name);
  if (at == std::string_view::npos) return 0;
  return std::strtoull(head.data() + at + name.size(), nullptr, 10);
}

}  // namespace

class Load::Connection {
 public:
  Connection(uint16_t port, const Workload& workload, size_t first)
      : socket_(connect_to(port)),
        workload_(workload),
        first_line_(fmt::format("HTTP/1.1 {} ", workload.status)),
        asked_(first),
        answered_(first) {}
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_; }
  bool is_idle() const { return asked_ == answered_; }
  bool has_unsent() const { return sent_bytes_ < unsent_.size(); }

  void ask() { unsent_ += workload_.requests[asked_++ % workload_.requests.size()]; }

  // What the kernel takes of it now.
  void send() {
    while (has_unsent()) {
      const ssize_t bytes = ::send(socket_, unsent_.data() + sent_bytes_,
                                   unsent_.size() - sent_bytes_, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (bytes < 0) give_up(fmt::format("send: {}", std::strerror(errno)));
      sent_bytes_ += static_cast<size_t>(bytes);
    }
    unsent_.clear();
    sent_bytes_ = 0;
  }

  // How many answers were completed.
  size_t receive(std::vector<char>& buffer) {
    const ssize_t bytes = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    if (bytes < 0) give_up(fmt::format("recv: {}", std::strerror(errno)));
    if (bytes == 0) give_up("the server closed a connection");
    const uint64_t before = answered_;
    std::string_view in(buffer.data(), static_cast<size_t>(bytes));
    while (!in.empty()) in_body_ ? take_body(in) : take_head(in);
    return answered_ - before;
  }

 private:
  std::string_view body() const { return workload_.bodies[answered_ % workload_.bodies.size()]; }

  void take_head(std::string_view& in) {
    const size_t before = head_.size();
    head_.append(in.substr(0, head_piece_bytes));
    const size_t end = head_.find("\r\n\r\n", before - std::min<size_t>(before, 3));
    if (end == std::string::npos) {
      if (head_.size() > head_bytes_max) wrong("no end of the header", head_);
      in.remove_prefix(head_.size() - before);
      return;
    }
    head_.resize(end + 4);
    in.remove_prefix(head_.size() - before);
    if (is_idle()) wrong("nobody asked", head_);
    if (!head_.starts_with(first_line_)) wrong("another status", head_);
    if (content_length(head_) != body().size()) wrong("another length", head_);
    in_body_ = true;
    body_bytes_ = 0;
    if (body().empty()) end_answer();
  }

  void take_body(std::string_view& in) {
    const std::string_view piece = in.substr(0, body().size() - body_bytes_);
    if (piece != body().substr(body_bytes_, piece.size())) wrong("another body", head_);
    in.remove_prefix(piece.size());
    body_bytes_ += piece.size();
    if (body_bytes_ == body().size()) end_answer();
  }

  void end_answer() {
    in_body_ = false;
    head_.clear();
    answered_++;
  }

  const int socket_;
  const Workload& workload_;
  const std::string first_line_;
  uint64_t asked_;
  uint64_t answered_;
  std::string unsent_;
  size_t sent_bytes_ = 0;
  std::string head_;
  bool in_body_ = false;
  size_t body_bytes_ = 0;  // of the body that is coming
};

Load::Load(uint16_t port, const Workload& workload, const LoadOptions& options)
    : options_(options), buffer_(buffer_bytes), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  for (size_t i = 0; i < options.connections; i++) {
    connections_.push_back(std::make_unique<Connection>(port, workload, i));
    epoll_event event{.events = EPOLLIN, .data = {.ptr = connections_.back().get()}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_.back()->socket(), &event);
  }
}

Load::~Load() { ::close(epoll_); }

LoadFigures Load::run(double seconds) { return run(seconds, std::numeric_limits<uint64_t>::max()); }

LoadFigures Load::run_requests(uint64_t requests) {
  return run(std::numeric_limits<double>::infinity(), requests);
}

LoadFigures Load::run(double seconds, uint64_t requests) {
  LoadFigures figures;
  const double cpu_us = process_cpu_us(::getpid());
  const double begin_s = now_s();
  uint64_t asked = 0;
  bool is_over = false;
  size_t busy = 0;
  const auto ask = [&](Connection& connection, size_t count) {
    for (; count > 0 && !is_over && asked < requests; count--, asked++) connection.ask();
  };
  // Only a connection whose requests the kernel did not take is waited for to become writable.
  const auto send = [&](Connection& connection, bool was_blocked) {
    connection.send();
    if (connection.has_unsent() == was_blocked) return;
    const uint32_t events = connection.has_unsent() ? EPOLLIN | EPOLLOUT : EPOLLIN;
    epoll_event event{.events = events, .data = {.ptr = &connection}};
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.socket(), &event);
  };
  for (const auto& connection : connections_) {
    ask(*connection, options_.depth);
    if (!connection->is_idle()) busy++;
    send(*connection, false);
  }
  std::array<epoll_event, 64> events;
  while (busy > 0) {
    const int count = ::epoll_wait(epoll_, events.data(), events.size(), silence_ms_max);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) give_up("the server does not answer");
    is_over = is_over || now_s() - begin_s >= seconds;
    for (const epoll_event& event : std::span(events.data(), static_cast<size_t>(count))) {
      auto& connection = *static_cast<Connection*>(event.data.ptr);
      const bool was_blocked = connection.has_unsent();
      if ((event.events & ~uint32_t{EPOLLOUT}) != 0) {
        const size_t answers = connection.receive(buffer_);
        figures.requests += answers;
        ask(connection, answers);
      }
      send(connection, was_blocked);
      if (connection.is_idle()) busy--;
    }
  }
  figures.seconds = now_s() - begin_s;
  figures.own_cpu_us = process_cpu_us(::getpid()) - cpu_us;
  return figures;
}

}  // namespace trellis
