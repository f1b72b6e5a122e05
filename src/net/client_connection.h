// The client's socket: writes and reads at the same time, so that an answer that comes before the
// request is complete is seen. For net's own files: it names types of Asio.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "net/input_buffer.h"
#include "net/url.h"

namespace trellis {

class ClientConnection {
 public:
  // `tls` for an https URL.
  static Result<std::unique_ptr<ClientConnection>> open(
      const BaseUrl& url, std::shared_ptr<boost::asio::ssl::context> tls, bool verifies,
      uint32_t timeout_ms);
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  // All that follows, together: wait() gives `timeout` behind it.
  void set_deadline(uint32_t after_ms);

  // The bytes must stay until is_written(). REQUIRES: is_written().
  void start_write(ByteView head, ByteView body);
  bool is_written() const { return to_write_.empty(); }

  enum class Event : uint8_t {
    written,  // all that start_write was given
    input,    // there are new bytes in input()
    end,      // the other side closed, or the connection failed
    timeout,
  };
  Event wait();

  ByteView input() const { return input_.data(); }
  void consume(size_t bytes) { input_.consume(bytes); }
  std::string error_text() const { return error_.message(); }

 private:
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp,
                                                  boost::asio::io_context::executor_type>;

  ClientConnection(std::shared_ptr<boost::asio::ssl::context> tls, uint32_t timeout_ms);
  Status connect(const BaseUrl& url);
  Status shake_hands(const BaseUrl& url, bool verifies);
  bool run_until(const std::function<bool()>& is_done);
  void start_read();
  void write_more();

  boost::asio::io_context io_{1};
  std::shared_ptr<boost::asio::ssl::context> tls_;
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> stream_;
  const uint32_t timeout_ms_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();

  InputBuffer input_;
  bool is_reading_ = false;
  size_t new_bytes_ = 0;
  std::vector<ByteView> to_write_;
  bool is_write_told_ = true;
  boost::system::error_code error_;  // why the connection is at its end
};

}  // namespace trellis
