#include "net/client_connection.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <chrono>
#include <exception>
#include <utility>

namespace trellis {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t input_bytes_max = 64 * 1024;

Error no_connection(const BaseUrl& url, std::string_view why) {
  return {Code::unavailable, fmt::format("cannot reach {}: {}", url.authority(), why)};
}

}  // namespace

ClientConnection::ClientConnection(std::shared_ptr<ssl::context> tls, uint32_t timeout_ms)
    : tls_(std::move(tls)), socket_(io_), timeout_ms_(timeout_ms) {}

ClientConnection::~ClientConnection() {
  error_code ignored;
  socket_.close(ignored);
}

Result<std::unique_ptr<ClientConnection>> ClientConnection::open(const BaseUrl& url,
                                                                 std::shared_ptr<ssl::context> tls,
                                                                 bool verifies,
                                                                 uint32_t timeout_ms) {
  try {
    std::unique_ptr<ClientConnection> connection(new ClientConnection(std::move(tls), timeout_ms));
    TRY(connection->connect(url));
    if (url.secure) TRY(connection->shake_hands(url, verifies));
    connection->start_read();
    return connection;
  } catch (const std::exception& error) {  // no descriptors left
    return no_connection(url, error.what());
  }
}

// False if that took longer than the time-out.
bool ClientConnection::run_until(const std::function<bool()>& is_done) {
  const auto deadline = std::min(
      deadline_, std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms_));
  while (!is_done()) {
    io_.restart();
    if (io_.run_one_until(deadline) == 0 && !is_done()) return false;
  }
  return true;
}

Status ClientConnection::connect(const BaseUrl& url) {
  error_code error;
  asio::ip::basic_resolver<tcp, asio::io_context::executor_type> resolver(io_);
  const auto results = resolver.resolve(url.host, fmt::format("{}", url.port), error);
  if (error) return no_connection(url, error.message());
  bool is_done = false;
  asio::async_connect(socket_, results, [&](const error_code& failed, const tcp::endpoint&) {
    error = failed;
    is_done = true;
  });
  if (!run_until([&is_done] { return is_done; })) {
    error_code ignored;
    socket_.close(ignored);
    run_until([&is_done] { return is_done; });
    return no_connection(url, fmt::format("no answer within {} ms", timeout_ms_));
  }
  if (error) return no_connection(url, error.message());
  socket_.set_option(tcp::no_delay(true), error);
  return {};
}

Status ClientConnection::shake_hands(const BaseUrl& url, bool verifies) {
  stream_.emplace(socket_, *tls_);
  error_code error;
  stream_->set_verify_mode(verifies ? ssl::verify_peer : ssl::verify_none, error);
  if (!error && verifies) {
    stream_->set_verify_callback(ssl::host_name_verification(url.host), error);
  }
  if (error) return no_connection(url, error.message());
  asio::ip::make_address(url.host, error);
  if (error) SSL_set_tlsext_host_name(stream_->native_handle(), url.host.c_str());  // a name
  bool is_done = false;
  stream_->async_handshake(ssl::stream_base::client, [&](const error_code& failed) {
    error = failed;
    is_done = true;
  });
  if (!run_until([&is_done] { return is_done; })) {
    error_code ignored;
    socket_.close(ignored);
    run_until([&is_done] { return is_done; });
    return no_connection(url, fmt::format("no TLS handshake within {} ms", timeout_ms_));
  }
  if (error) return no_connection(url, fmt::format("TLS: {}", error.message()));
  return {};
}

void ClientConnection::set_deadline(uint32_t after_ms) {
  deadline_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(after_ms);
}

void ClientConnection::start_read() {
  const std::span<char> space = input_.space(input_bytes_max);
  if (space.empty()) return;  // must be used first
  is_reading_ = true;
  const auto buffer = asio::buffer(space.data(), space.size());
  const auto done = [this](const error_code& error, size_t bytes) {
    is_reading_ = false;
    input_.add(bytes);
    new_bytes_ += bytes;
    if (error) error_ = error;
  };
  if (stream_.has_value()) {
    stream_->async_read_some(buffer, done);
  } else {
    socket_.async_read_some(buffer, done);
  }
}

void ClientConnection::start_write(ByteView head, ByteView body) {
  to_write_ = {head};
  if (!body.empty()) to_write_.push_back(body);
  is_write_told_ = false;
  write_more();
}

void ClientConnection::write_more() {
  const auto done = [this](const error_code& error, size_t bytes) {
    if (error) {
      // An answer may have come before; reading tells, and fails if none did.
      to_write_.clear();
      is_write_told_ = true;
      return;
    }
    to_write_.front().remove_prefix(bytes);
    if (to_write_.front().empty()) to_write_.erase(to_write_.begin());
    if (!to_write_.empty()) write_more();
  };
  const auto buffer = asio::buffer(to_write_.front().data(), to_write_.front().size());
  if (stream_.has_value()) {
    stream_->async_write_some(buffer, done);
  } else {
    socket_.async_write_some(buffer, done);
  }
}

ClientConnection::Event ClientConnection::wait() {
  if (!is_reading_ && !error_ && new_bytes_ == 0) start_read();
  // Progress of any kind counts, so that a slow but steady transfer never times out.
  while (true) {
    if (new_bytes_ > 0) {
      new_bytes_ = 0;
      return Event::input;
    }
    if (error_) return Event::end;
    if (!is_write_told_ && to_write_.empty()) {
      is_write_told_ = true;
      return Event::written;
    }
    const size_t left = to_write_.empty() ? 0 : to_write_.front().size();
    const size_t parts = to_write_.size();
    const auto has_moved = [&] {
      return new_bytes_ > 0 || error_ || to_write_.size() != parts ||
             (!to_write_.empty() && to_write_.front().size() != left);
    };
    if (!run_until(has_moved)) return Event::timeout;
  }
}

}  // namespace trellis
