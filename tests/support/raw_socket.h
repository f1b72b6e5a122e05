// A plain TCP or Unix client for tests that must control every byte. Waits for events, never for
// time; a wait of 30 s is a failure.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace trellis {

class RawSocket {
 public:
  explicit RawSocket(uint16_t port, int receive_buffer_bytes = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer_bytes > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof(int));
    }
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(address);
  }
  explicit RawSocket(const std::string& unix_path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    unix_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    connect(address);
  }
  ~RawSocket() { close(); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  bool is_connected() const { return is_connected_; }

  // False if the other side is gone.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // What fits at once; 0 if nothing does.
  size_t send_some(std::string_view bytes) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent > 0 ? static_cast<size_t>(sent) : 0;
  }

  void wait_until_writable() {
    pollfd waiting{.fd = fd_, .events = POLLOUT, .revents = 0};
    ::poll(&waiting, 1, 30'000);
  }

  void end_of_requests() { ::shutdown(fd_, SHUT_WR); }

  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  // "" at the end, or when the connection was reset; then was_reset().
  std::string receive(size_t bytes_max = 64 * 1024) {
    if (!pending_.empty()) return std::exchange(pending_, {});
    return receive_new(bytes_max);
  }

  bool was_reset() const { return was_reset_; }

  std::string receive_all() {
    std::string all;
    for (std::string part = receive(); !part.empty(); part = receive()) all += part;
    return all;
  }

  // Up to and with the text; all there was, if it does not come.
  std::string receive_until(std::string_view text) {
    std::string all = std::exchange(pending_, {});
    size_t found = all.find(text);
    while (found == std::string::npos) {
      const std::string part = receive_new(64 * 1024);
      if (part.empty()) return all;
      all += part;
      found = all.find(text);
    }
    pending_ = all.substr(found + text.size());
    return all.substr(0, found + text.size());
  }

  // One response with a Content-Length, header and body together.
  std::string receive_response() {
    std::string response = receive_until("\r\n\r\n");
    constexpr std::string_view name = "Content-Length: ";
    const size_t at = response.find(name);
    if (at == std::string::npos) return response;
    size_t length = 0;
    std::from_chars(response.data() + at + name.size(), response.data() + response.size(), length);
    std::string body = std::exchange(pending_, {});
    while (body.size() < length) {
      const std::string part = receive_new(length - body.size());
      if (part.empty()) break;
      body += part;
    }
    if (body.size() > length) {
      pending_ = body.substr(length);
      body.resize(length);
    }
    return response + body;
  }

 private:
  template <class Address>
  void connect(const Address& address) {
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    is_connected_ =
        ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }

  std::string receive_new(size_t bytes_max) {
    std::string part(bytes_max, '\0');
    const ssize_t got = ::recv(fd_, part.data(), part.size(), 0);
    was_reset_ = got < 0;
    part.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return part;
  }

  int fd_;
  bool is_connected_ = false;
  bool was_reset_ = false;
  std::string pending_;
};

}  // namespace trellis
