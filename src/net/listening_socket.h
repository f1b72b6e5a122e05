// A socket that listens, of TCP or Unix. For net's own files: it names types of Asio.
#pragma once

#include <sys/types.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "net/stream_server.h"

namespace trellis {

class ListeningSocket {
 public:
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;

  ListeningSocket(boost::asio::io_context& io, const StreamListener& options)
      : options_(options), acceptor_(io) {}
  ~ListeningSocket() { close(); }
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  Status open();
  void close();  // and removes the file of a Unix socket

  Acceptor& acceptor() { return acceptor_; }
  uint16_t port() const { return port_; }
  bool has_tls() const { return options_.tls; }
  std::string text() const;  // for messages: "127.0.0.1:6379" or a path

  StreamPeer peer_of(const Endpoint& client) const;
  std::string address_of(const Endpoint& end) const;  // of either end of one of its connections

 private:
  Status open_tcp();
  Status open_unix();

  const StreamListener options_;
  Acceptor acceptor_;
  uint16_t port_ = 0;
  // Of the socket file that we made: another server's in its place is not ours to remove.
  dev_t file_device_ = 0;
  ino_t file_number_ = 0;
};

}  // namespace trellis
