// One HTTP/1 connection without its socket: bytes go in, bytes come out, and events in between move
// it on. Whoever owns the socket (stream_server.h), or a test that has none, drives it:
//
//   read into input_space(), tell received(); at the end of input tell received_end()
//   write from output(), tell sent()
//   run what it offloads elsewhere, then tell worked()
//   tick() now and then, for time-outs
//
// After each of these there may be output, and input_space() may have opened or closed. When
// is_over() and the output is empty, the connection is to be closed; if is_broken(), at once and
// with a reset, for the other side must not take what it got for a whole response.
//
// One thread. Parses a request only when its whole header is there, answers in order, and holds a
// bounded amount: it stops taking input while a response cannot be sent or a sink is busy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/metrics.h"
#include "net/http_exchange.h"
#include "net/http_output.h"
#include "net/http_parser.h"
#include "net/http_server.h"
#include "net/input_buffer.h"
#include "net/stream_server.h"

namespace trellis {

struct HttpMetrics {
  std::array<Counter, 5> requests;  // 1xx to 5xx
  Histogram duration_us;
  StreamMetrics streams;

  static Result<HttpMetrics> make(Registry& registry);
};

// What all connections of one loop share.
struct ConnectionContext {
  const Router& router;
  const HttpServerOptions& options;
  Clock& clock;
  BodyBudget& budget;
  const HttpMetrics* metrics = nullptr;  // none: nothing is counted
  DateText date = {};
};

// What a connection asks of its surroundings.
class ConnectionDriver {
 public:
  virtual ~ConnectionDriver() = default;
  // Runs the job on a worker, then tells worked(), unless the connection is gone by then.
  virtual void offload(std::function<void()> job, uint64_t lane) = 0;
  // Lets a worker drop it, for that may take long.
  virtual void dispose(std::shared_ptr<Exchange> exchange) = 0;
  // wake() leads to woken(stream) on the connection's thread.
  virtual std::shared_ptr<WakeTarget> wake_target(uint64_t stream) = 0;
};

class HttpConnection : public StreamConnection {
 public:
  HttpConnection(ConnectionContext& context, ConnectionDriver& driver, StreamPeer peer);
  ~HttpConnection() override;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  std::span<char> input_space() override;
  void received(size_t bytes) override;
  void received_end() override;

  OutputQueue& output() override { return output_; }
  void sent() override;

  void worked();
  void woken(uint64_t stream);

  void refuse() override;
  void stop() override;  // also ends a stream that waits
  void abandon() override;

  void tick(size_t unsent_bytes) override;

  bool is_idle() const override {
    return state_ == State::head && input_.empty() && output_.empty();
  }
  bool is_over() const override { return state_ == State::over; }
  bool is_broken() const override { return is_broken_; }

 private:
  enum class State : uint8_t {
    head,     // waits for a request
    body,     // takes its body
    working,  // waits for a worker's response
    stream,   // sends a stream
    over,
  };
  struct RequestState {  // of the request in hand
    RequestFraming framing = {};
    HttpMethod method = HttpMethod::get;
    bool keep_alive = true;
    bool is_body_done = false;  // all of its bytes were taken off the input
    uint64_t started_us = 0;
    unsigned status = 0;
  };

  void advance();
  bool step();

  // state head
  bool take_head();
  std::optional<HttpProblem> check_first_line(ByteView in) const;
  std::optional<HttpProblem> check_head_size(ByteView in) const;
  bool start_request(size_t head_bytes);
  bool answer_unrouted(const Router::Match& match, size_t head_bytes);
  bool handle_inline(const Route& route, size_t head_bytes, size_t body_bytes);
  bool hand_over(const Route& route, size_t head_bytes, size_t body_bytes);
  void begin_exchange(const Route& route, size_t head_bytes);

  // state body
  bool take_body();
  bool take_body_piece(const BodyStep& step);
  void send_continue();
  bool feed_sink();
  bool dispatch();

  // state working and stream
  void run(void (Exchange::*job)(), void (HttpConnection::*then)());
  void take_opened();
  void take_written();
  void take_handled();
  void take_chunk();
  void send_stream_head(const Chunk& first);
  void append_stream_bytes(Bytes&& bytes);
  void end_stream();
  void stop_stream();
  bool pull_stream();

  // Responses
  void respond(HttpResponse&& response);
  void respond_thrown();
  void fail(const HttpProblem& problem, std::vector<HttpHeader> headers = {});
  void fail_over_budget();
  void fail_with(const Error& error);
  HttpResponse error_response(unsigned status, std::string_view message);
  void send_head(const HttpResponse& response, BodyFraming framing);
  void finish_request();
  void end(bool is_broken);
  void drop_exchange();
  std::string_view path() const;

  ConnectionContext& context_;
  ConnectionDriver& driver_;
  std::shared_ptr<const std::string> peer_;

  State state_ = State::head;
  bool is_broken_ = false;
  bool is_stopping_ = false;
  bool has_end_ = false;  // of input
  bool is_job_running_ = false;
  bool has_skipped_line_ = false;  // the one empty line that may come before a request

  InputBuffer input_;
  size_t searched_bytes_ = 0;  // of the input, for the end of a header
  RequestParser parser_;
  HttpRequest request_;  // keeps its memory from request to request
  RequestState current_;
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<WakeTarget> wake_target_;  // of the exchange; Wakers hold it weakly
  void (HttpConnection::*after_job_)() = nullptr;

  // A streamed request body
  bool is_sink_open_ = false;
  Bytes piece_;  // collected while the sink is busy

  // A streamed response
  uint64_t stream_ = 0;  // numbers them, so that a late wake does not meet another
  BodyFraming stream_framing_;
  bool is_stream_head_sent_ = false;
  uint64_t stream_bytes_left_ = 0;
  bool is_stream_waiting_ = false;
  bool is_stream_partial_ = false;  // and cannot end where it waits
  bool is_woken_ = false;
  uint64_t wake_at_us_ = 0;

  OutputQueue output_;

  // For time-outs
  uint64_t now_us_ = 0;          // at the last event
  uint64_t quiet_since_us_ = 0;  // no request since; or the header in hand began
  bool has_head_begun_ = false;
  uint64_t window_start_us_ = 0;
  uint64_t window_bytes_ = 0;
  uint64_t progress_mark_ = 0;
  uint64_t progress_at_us_ = 0;
};

}  // namespace trellis
