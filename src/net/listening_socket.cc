#include "net/listening_socket.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/bytes.h"

namespace trellis {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using LocalProtocol = asio::local::stream_protocol;

std::string to_text(const tcp::endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  return address.is_v6() ? fmt::format("[{}]:{}", address.to_string(), endpoint.port())
                         : fmt::format("{}:{}", address.to_string(), endpoint.port());
}

// REQUIRES: it is one of TCP.
tcp::endpoint tcp_endpoint(const ListeningSocket::Endpoint& endpoint) {
  tcp::endpoint tcp;
  std::memcpy(tcp.data(), endpoint.data(), std::min(endpoint.size(), tcp.capacity()));
  return tcp;
}

// IPv4 clients of a socket for both are seen as what they are.
tcp::endpoint unmapped(const tcp::endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return endpoint;
  return {asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()), endpoint.port()};
}

Error cannot_listen(const std::string& where, std::string_view why) {
  return {Code::unavailable, fmt::format("cannot listen on {}: {}", where, why)};
}

// Who vanished without a word is found out, as by Redis: after five minutes of silence it is asked,
// three times. Sockets that are accepted have the options of the one that listens.
error_code set_options(ListeningSocket::Acceptor& acceptor) {
  using Idle = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  using Interval = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
  using Count = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPCNT>;
  error_code error;
  acceptor.set_option(asio::socket_base::keep_alive(true), error);
  acceptor.set_option(Idle(tcp_keepalive_s), error);
  acceptor.set_option(Interval(tcp_keepalive_s / 3), error);
  acceptor.set_option(Count(3), error);
  acceptor.set_option(tcp::no_delay(true), error);
  acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  return error;
}

error_code listen_tcp(ListeningSocket::Acceptor& acceptor, const tcp::endpoint& endpoint) {
  error_code error;
  if (acceptor.open(endpoint.protocol(), error)) return error;
  if (error = set_options(acceptor); error) return error;
  if (endpoint.address().is_v6() && endpoint.address().is_unspecified()) {
    if (acceptor.set_option(asio::ip::v6_only(false), error)) return error;
  }
  if (acceptor.bind(endpoint, error)) return error;
  acceptor.listen(tcp::acceptor::max_listen_connections, error);
  return error;
}

// Removes a socket file whose server ended without doing so; the file of any other stays.
Status remove_stale_socket(const std::string& path, const sockaddr* address, socklen_t size) {
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    return cannot_listen(path, "the file exists and is no socket");
  }
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int refusal = connect(probe, address, size) == 0 ? 0 : errno;
  close(probe);
  if (refusal == 0 || refusal == EAGAIN) return cannot_listen(path, "another server does");
  if (refusal == ENOENT) return {};
  if (refusal != ECONNREFUSED) return cannot_listen(path, std::strerror(refusal));
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return cannot_listen(path, std::strerror(errno));
  }
  return {};
}

}  // namespace

Status ListeningSocket::open() { return options_.unix_path.empty() ? open_tcp() : open_unix(); }

std::string ListeningSocket::text() const {
  if (!options_.unix_path.empty()) return options_.unix_path;
  return fmt::format("{}:{}", options_.host, port_ != 0 ? port_ : options_.port);
}

Status ListeningSocket::open_tcp() {
  error_code error;
  std::vector<tcp::endpoint> endpoints;
  if (options_.host.empty() || options_.host == "*") {
    // Both kinds of addresses with one socket; a machine without IPv6 has only the other.
    endpoints = {{tcp::v6(), options_.port}, {tcp::v4(), options_.port}};
  } else {
    tcp::resolver resolver(acceptor_.get_executor());
    const auto results = resolver.resolve(options_.host, fmt::format("{}", options_.port),
                                          tcp::resolver::passive, error);
    if (error) return cannot_listen(text(), error.message());
    for (const auto& result : results) endpoints.push_back(result.endpoint());
  }
  error = asio::error::host_not_found;
  for (const tcp::endpoint& endpoint : endpoints) {
    error = listen_tcp(acceptor_, endpoint);
    if (!error) {
      port_ = tcp_endpoint(acceptor_.local_endpoint(error)).port();
      return {};
    }
    error_code ignored;
    acceptor_.close(ignored);
  }
  return cannot_listen(text(), error.message());
}

Status ListeningSocket::open_unix() {
  const std::string& path = options_.unix_path;
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return Error{Code::invalid, fmt::format("the path of a Unix socket has up to {} bytes: {}",
                                            sizeof(sockaddr_un::sun_path) - 1, quote(path))};
  }
  const LocalProtocol::endpoint endpoint(path);
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (error) return cannot_listen(path, error.message());
  // The file is made with the mode of the socket, so nobody can connect before its mode is right.
  if (fchmod(acceptor_.native_handle(), options_.unix_mode) != 0) {
    return cannot_listen(path, std::strerror(errno));
  }
  acceptor_.bind(endpoint, error);
  if (error == asio::error::address_in_use) {
    TRY(remove_stale_socket(path, endpoint.data(), static_cast<socklen_t>(endpoint.size())));
    acceptor_.bind(endpoint, error);
  }
  if (error) return cannot_listen(path, error.message());
  struct stat status {};
  // Again, for the umask took bits away.
  if (chmod(path.c_str(), options_.unix_mode) != 0 || lstat(path.c_str(), &status) != 0) {
    return cannot_listen(path, std::strerror(errno));
  }
  file_device_ = status.st_dev;
  file_number_ = status.st_ino;
  acceptor_.listen(Acceptor::max_listen_connections, error);
  if (error) return cannot_listen(path, error.message());
  return {};
}

void ListeningSocket::close() {
  if (!acceptor_.is_open()) return;
  struct stat status {};
  const char* path = options_.unix_path.c_str();
  if (file_number_ != 0 && lstat(path, &status) == 0 && status.st_dev == file_device_ &&
      status.st_ino == file_number_) {
    unlink(path);
  }
  error_code ignored;
  acceptor_.close(ignored);
}

StreamPeer ListeningSocket::peer_of(const Endpoint& client) const {
  const bool is_loopback =
      !options_.unix_path.empty() || unmapped(tcp_endpoint(client)).address().is_loopback();
  return {.address = address_of(client), .is_loopback = is_loopback, .secure = has_tls()};
}

std::string ListeningSocket::address_of(const Endpoint& end) const {
  if (!options_.unix_path.empty()) return "unix:" + options_.unix_path;  // clients have no names
  return to_text(unmapped(tcp_endpoint(end)));
}

}  // namespace trellis
