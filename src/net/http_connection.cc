#include "net/http_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "net/ascii.h"
#include "net/would_wait.h"

namespace trellis {
namespace {

// While so much waits to be sent, no further request is parsed.
constexpr size_t output_bytes_max = 256 * 1024;
// What a sink gets at a time, and what is read ahead of it.
constexpr size_t piece_bytes_max = 64 * 1024;
constexpr size_t body_input_bytes_max = 64 * 1024;
// The line before a chunk, or the trailers after the last, must fit so much.
constexpr size_t chunk_line_bytes_max = 16 * 1024;
static_assert(chunk_line_bytes_max < body_input_bytes_max);

// Larger ones are handled by workers, whatever the route says.
constexpr size_t loop_body_bytes_max = 256 * 1024;

bool has_no_body(HttpMethod method, unsigned status) {
  return method == HttpMethod::head || status == 204 || status == 304;
}

unsigned all_methods(const Router& router) {
  unsigned allow = 0;
  for (const Route& route : router.routes()) allow |= 1U << static_cast<unsigned>(route.method);
  return allow;
}

}  // namespace

Result<HttpMetrics> HttpMetrics::make(Registry& registry) {
  const auto requests = [&registry](std::string_view status) {
    return registry.counter("trellis_http_requests_total", "Requests answered.",
                            {{"status", std::string(status)}});
  };
  TRY_ASSIGN(const Counter status_1xx, requests("1xx"));
  TRY_ASSIGN(const Counter status_2xx, requests("2xx"));
  TRY_ASSIGN(const Counter status_3xx, requests("3xx"));
  TRY_ASSIGN(const Counter status_4xx, requests("4xx"));
  TRY_ASSIGN(const Counter status_5xx, requests("5xx"));
  TRY_ASSIGN(const Gauge connections,
             registry.gauge("trellis_http_connections", "Open HTTP connections."));
  TRY_ASSIGN(const Histogram duration_us,
             registry.histogram("trellis_http_request_duration_us",
                                "From the end of a request's header to the end of its response.",
                                doubling_bounds(16, 22)));
  TRY_ASSIGN(const Counter received_bytes,
             registry.counter("trellis_http_received_bytes_total", "Bytes read."));
  TRY_ASSIGN(const Counter sent_bytes,
             registry.counter("trellis_http_sent_bytes_total", "Bytes written."));
  return HttpMetrics{{status_1xx, status_2xx, status_3xx, status_4xx, status_5xx},
                     duration_us,
                     {connections, received_bytes, sent_bytes}};
}

HttpConnection::HttpConnection(ConnectionContext& context, ConnectionDriver& driver,
                               StreamPeer peer)
    : context_(context),
      driver_(driver),
      peer_(std::make_shared<const std::string>(std::move(peer.address))) {
  request_.peer_is_loopback = peer.is_loopback;
  request_.secure = peer.secure;
  now_us_ = context_.clock.monotonic_us();
  quiet_since_us_ = progress_at_us_ = now_us_;
}

HttpConnection::~HttpConnection() { drop_exchange(); }

std::span<char> HttpConnection::input_space() {
  if (state_ == State::over || has_end_) return {};
  return input_.space(state_ == State::body ? body_input_bytes_max
                                            : context_.options.header_bytes_max);
}

void HttpConnection::received(size_t bytes) {
  now_us_ = context_.clock.monotonic_us();
  input_.add(bytes);
  window_bytes_ += bytes;
  if (state_ == State::head && !has_head_begun_) {
    has_head_begun_ = true;
    quiet_since_us_ = now_us_;
  }
  advance();
}

void HttpConnection::received_end() {
  has_end_ = true;
  // Half a connection is enough for the response to what was asked; but of a stream that waits
  // nobody would ever know that its reader is gone.
  if (is_stream_waiting_ && !is_job_running_) end(true);
  advance();
}

void HttpConnection::sent() { advance(); }

void HttpConnection::worked() {
  is_job_running_ = false;
  if (state_ == State::over) return;
  now_us_ = context_.clock.monotonic_us();
  (this->*after_job_)();
  advance();
}

void HttpConnection::woken(uint64_t stream) {
  if (exchange_ == nullptr || stream != stream_) return;
  is_woken_ = true;
  advance();
}

void HttpConnection::refuse() { fail({503, "too many connections: try again soon"}); }

void HttpConnection::stop() {
  is_stopping_ = true;
  if (is_stream_waiting_ && !is_job_running_) stop_stream();
  advance();
}

void HttpConnection::abandon() {
  end(true);  // the output stays: an encrypting write may still read it
}

void HttpConnection::advance() {
  while (step()) {
  }
}

// True if it may be called again at once.
bool HttpConnection::step() {
  switch (state_) {
    case State::head: return take_head();
    case State::body: return take_body();
    case State::working: return false;
    case State::stream: return pull_stream();
    case State::over: return false;
  }
  return false;
}

// --- requests ---

bool HttpConnection::take_head() {
  if (output_.size() >= output_bytes_max) return false;
  // Some clients send an empty line behind a body, so one is skipped, as RFC 9112 asks.
  if (!has_skipped_line_ && input_.data().starts_with("\r\n")) {
    input_.consume(2);
    has_skipped_line_ = true;
    searched_bytes_ = 0;
  }
  // Never looks further than it may: what it says must not depend on how much is there already.
  const ByteView in = input_.data().substr(0, context_.options.header_bytes_max);
  const std::optional<size_t> head_bytes = find_head_end(in, searched_bytes_);
  std::optional<HttpProblem> problem = check_first_line(in);
  if (!problem.has_value() && !head_bytes.has_value()) problem = check_head_size(in);
  if (!problem.has_value() && !head_bytes.has_value()) {
    if (has_end_ || is_stopping_) end(false);
    return false;
  }
  current_ = {.started_us = now_us_};
  if (!problem.has_value()) {
    request_.peer = *peer_;
    problem = parser_.parse_head(in.substr(0, *head_bytes), request_, current_.framing);
    current_.method = request_.method;
  }
  if (problem.has_value()) {
    fail(*problem);
    return false;
  }
  current_.keep_alive = current_.framing.keep_alive;
  return start_request(*head_bytes);
}

// What can be said before the header is complete, so that who does not speak HTTP need not wait for
// the time-out.
std::optional<HttpProblem> HttpConnection::check_first_line(ByteView in) const {
  if (in.empty() || (in == "\r" && !has_skipped_line_)) return std::nullopt;
  const size_t line_end = in.find('\n');
  const bool is_line = line_end == ByteView::npos || (line_end > 0 && in[line_end - 1] == '\r');
  if (is_token_char(in[0]) && is_line) return std::nullopt;
  return HttpProblem{400, "this is not HTTP"};
}

std::optional<HttpProblem> HttpConnection::check_head_size(ByteView in) const {
  if (in.size() < context_.options.header_bytes_max) return std::nullopt;
  if (in.find('\n') == ByteView::npos) return HttpProblem{414, "the request line is too long"};
  return HttpProblem{431, "the header is too long"};
}

bool HttpConnection::start_request(size_t head_bytes) {
  const RequestFraming& framing = current_.framing;
  const Router::Match match =
      context_.router.find(request_.method, request_.path, request_.captures);
  if (match.route == nullptr) return answer_unrouted(match, head_bytes);
  const Route& route = *match.route;
  const size_t body_bytes_max = route.body == Route::Body::none ? 0 : route.body_bytes_max;
  if (framing.content_length > body_bytes_max || (framing.is_chunked && body_bytes_max == 0)) {
    fail({413, "the body is larger than this path takes"});
    return false;
  }
  const bool is_whole = !framing.is_chunked && input_.size() - head_bytes >= framing.content_length;
  if (is_whole && route.runs == Route::Runs::loop && route.body != Route::Body::streamed) {
    return handle_inline(route, head_bytes, framing.content_length);
  }
  begin_exchange(route, head_bytes);
  current_.is_body_done = !framing.has_body();
  if (framing.has_body()) parser_.limit_body(body_bytes_max);
  if (route.body == Route::Body::streamed) {
    state_ = State::body;
    run(&Exchange::open, &HttpConnection::take_opened);
    return true;
  }
  if (!framing.has_body()) return dispatch();
  state_ = State::body;
  send_continue();
  return true;
}

bool HttpConnection::answer_unrouted(const Router::Match& match, size_t head_bytes) {
  const bool is_options = request_.method == HttpMethod::options;
  const unsigned allow = request_.path == "*" ? all_methods(context_.router) : match.allow;
  HttpResponse response;
  if (allow == 0) {
    response = error_response(404, "there is nothing at this path");
  } else if (is_options) {
    response.status = 204;
  } else {
    response = error_response(405, fmt::format("this path takes {}", allow_header(allow)));
  }
  if (allow != 0) response.headers.push_back({"Allow", allow_header(allow)});
  // A body that nobody wants is not read either.
  current_.is_body_done = !current_.framing.has_body();
  input_.consume(head_bytes);
  respond(std::move(response));
  return true;
}

bool HttpConnection::handle_inline(const Route& route, size_t head_bytes, size_t body_bytes) {
  request_.body = input_.data().substr(head_bytes, body_bytes);
  std::optional<HttpResponse> response = call_handler(route, request_);
  request_.body = {};
  current_.is_body_done = true;
  if (response.has_value() && response->status == would_wait_status) {
    return hand_over(route, head_bytes, body_bytes);
  }
  if (response.has_value() && response->stream != nullptr) {
    begin_exchange(route, head_bytes);
    input_.consume(body_bytes);
    exchange_->response = std::move(response);
    return dispatch();
  }
  input_.consume(head_bytes + body_bytes);  // the memory stays until more is read
  if (response.has_value()) {
    respond(std::move(*response));
  } else {
    respond_thrown();
  }
  return true;
}

// To a worker, which may wait.
bool HttpConnection::hand_over(const Route& route, size_t head_bytes, size_t body_bytes) {
  begin_exchange(route, head_bytes);
  const ByteView body = input_.data().substr(0, body_bytes);
  if (!body.empty() && !exchange_->append_body(body, body_bytes)) {
    fail_over_budget();
    return false;
  }
  input_.consume(body_bytes);
  state_ = State::working;
  run(&Exchange::handle, &HttpConnection::take_handled);
  return false;
}

void HttpConnection::begin_exchange(const Route& route, size_t head_bytes) {
  const bool is_loopback = request_.peer_is_loopback;
  const bool secure = request_.secure;
  exchange_ = std::make_shared<Exchange>(context_.budget);
  exchange_->route = &route;
  exchange_->adopt(std::move(request_), input_.data().substr(0, head_bytes), peer_);
  request_ = {};
  request_.peer_is_loopback = is_loopback;
  request_.secure = secure;
  input_.consume(head_bytes);

  ++stream_;
  wake_target_ = driver_.wake_target(stream_);
  exchange_->waker = Waker(wake_target_);
  is_sink_open_ = is_stream_head_sent_ = is_stream_waiting_ = is_woken_ = false;
  piece_.clear();
  window_start_us_ = now_us_;
  window_bytes_ = 0;
}

void HttpConnection::send_continue() {
  const bool has_begun = current_.is_body_done || !input_.empty() || !piece_.empty();
  if (current_.framing.expects_continue && !has_begun) {
    output_.append("HTTP/1.1 100 Continue\r\n\r\n");
  }
}

bool HttpConnection::take_body() {
  const bool is_streamed = exchange_->route->body == Route::Body::streamed;
  bool is_stuck = false;
  while (!current_.is_body_done && !is_stuck) {
    if (is_streamed && piece_.size() >= piece_bytes_max) break;
    BodyStep step;
    // The lines around chunks have a limit, and it must not depend on how much is there already.
    const ByteView in = input_.data().substr(
        0, current_.framing.is_chunked ? chunk_line_bytes_max : body_input_bytes_max);
    if (!in.empty()) step = parser_.parse_body(in);
    is_stuck = step.consumed == 0 && !step.is_done;
    if (is_stuck && !step.problem.has_value() && in.size() == chunk_line_bytes_max) {
      step.problem = HttpProblem{400, "the line before a chunk, or a trailer, is too long"};
    }
    if (step.problem.has_value()) {
      fail(*step.problem);
      return false;
    }
    if (!take_body_piece(step)) return false;
  }
  if (is_stuck && has_end_) {
    end(true);  // what it wanted is not known
    return false;
  }
  if (is_streamed) return feed_sink();
  return current_.is_body_done && dispatch();
}

bool HttpConnection::take_body_piece(const BodyStep& step) {
  const Route& route = *exchange_->route;
  if (route.body == Route::Body::streamed) {
    piece_.append(step.body);
  } else {
    const size_t bytes_max =
        current_.framing.is_chunked ? route.body_bytes_max : current_.framing.content_length;
    if (!step.body.empty() && !exchange_->append_body(step.body, bytes_max)) {
      fail_over_budget();
      return false;
    }
  }
  input_.consume(step.consumed);
  current_.is_body_done = step.is_done;
  return true;
}

// True if there is more to collect for the sink.
bool HttpConnection::feed_sink() {
  if (is_job_running_ || !is_sink_open_) return false;
  if (piece_.empty() && !current_.is_body_done) return false;
  exchange_->piece.swap(piece_);
  piece_.clear();
  exchange_->is_last_piece = current_.is_body_done;
  if (current_.is_body_done) state_ = State::working;
  run(&Exchange::write_piece, &HttpConnection::take_written);
  return true;
}

// The body is complete, or there is none.
bool HttpConnection::dispatch() {
  state_ = State::working;
  // What is large takes long, even if it waits for nobody.
  const bool is_long = exchange_->request.body.size() > loop_body_bytes_max;
  if (exchange_->route->runs == Route::Runs::worker || is_long || exchange_->response.has_value()) {
    run(&Exchange::handle, &HttpConnection::take_handled);
    return false;
  }
  exchange_->response = call_handler(*exchange_->route, exchange_->request);
  exchange_->has_thrown = !exchange_->response.has_value();
  if (exchange_->response.has_value() && exchange_->response->status == would_wait_status) {
    exchange_->response.reset();
    run(&Exchange::handle, &HttpConnection::take_handled);
    return false;
  }
  if (exchange_->response.has_value() && exchange_->response->stream != nullptr) return dispatch();
  take_handled();
  return true;
}

// --- workers ---

void HttpConnection::run(void (Exchange::*job)(), void (HttpConnection::*then)()) {
  ASSERT(!is_job_running_);
  is_job_running_ = true;
  after_job_ = then;
  const auto& lane_of = context_.options.lane;
  driver_.offload(
      [exchange = exchange_, job] {
        if (!exchange->is_abandoned) (exchange.get()->*job)();
      },
      lane_of ? lane_of(exchange_->request) : 0);
}

void HttpConnection::take_opened() {
  if (exchange_->error.has_value()) return fail_with(*exchange_->error);
  if (exchange_->has_thrown || exchange_->sink == nullptr) return respond_thrown();
  is_sink_open_ = true;
  send_continue();
}

void HttpConnection::take_written() {
  if (exchange_->error.has_value()) return fail_with(*exchange_->error);
  if (exchange_->has_thrown) return respond_thrown();
  if (exchange_->is_last_piece) take_handled();
}

void HttpConnection::take_handled() {
  if (exchange_->error.has_value()) return fail_with(*exchange_->error);
  if (exchange_->has_thrown) return respond_thrown();
  HttpResponse& response = *exchange_->response;
  if (exchange_->source == nullptr || has_no_body(current_.method, response.status) ||
      bad_header(response).has_value()) {
    return respond(std::move(response));
  }
  state_ = State::stream;
  take_chunk();
}

void HttpConnection::take_chunk() {
  is_stream_waiting_ = false;
  if (exchange_->error.has_value() || exchange_->has_thrown) {
    if (is_stream_head_sent_) {
      if (exchange_->error.has_value()) {
        log_warn("a response stream broke off",
                 {{"path", path()}, {"error", to_string(*exchange_->error)}});
      }
      return end(true);
    }
    return exchange_->error.has_value() ? fail_with(*exchange_->error) : respond_thrown();
  }
  Chunk chunk = std::move(*exchange_->chunk);
  exchange_->chunk.reset();
  if (!is_stream_head_sent_) send_stream_head(chunk);
  append_stream_bytes(std::move(chunk.bytes));
  if (state_ == State::over) return;
  if (chunk.then == Chunk::Then::end) return end_stream();
  if (chunk.then == Chunk::Then::more) return;
  if (has_end_) return end(true);  // see received_end
  is_stream_partial_ = chunk.then == Chunk::Then::pause;
  if (is_stopping_) return stop_stream();
  is_stream_waiting_ = true;
  wake_at_us_ = now_us_ + chunk.wait_ms * us_per_ms;
}

void HttpConnection::send_stream_head(const Chunk& first) {
  using Kind = BodyFraming::Kind;
  const HttpResponse& response = *exchange_->response;
  if (response.stream_bytes.has_value()) {
    stream_framing_ = {Kind::length, *response.stream_bytes};
  } else if (first.then == Chunk::Then::end) {
    stream_framing_ = {Kind::length, first.bytes.size()};
  } else if (current_.framing.is_http11) {
    stream_framing_ = {Kind::chunked};
  } else {
    stream_framing_ = {Kind::until_close};
    current_.keep_alive = false;
  }
  stream_bytes_left_ = stream_framing_.length;
  send_head(response, stream_framing_);
  is_stream_head_sent_ = true;
}

void HttpConnection::append_stream_bytes(Bytes&& bytes) {
  if (bytes.empty()) return;
  if (stream_framing_.kind == BodyFraming::Kind::chunked) {
    append_chunk(output_, std::move(bytes));
    return;
  }
  if (stream_framing_.kind == BodyFraming::Kind::length) {
    if (bytes.size() > stream_bytes_left_) {
      log_error("a response stream has more bytes than it said", {{"path", path()}});
      return end(true);
    }
    stream_bytes_left_ -= bytes.size();
  }
  output_.append_body(std::move(bytes));
}

void HttpConnection::end_stream() {
  is_stream_waiting_ = false;
  if (stream_framing_.kind == BodyFraming::Kind::chunked) {
    append_last_chunk(output_);
  } else if (stream_bytes_left_ > 0) {
    log_error("a response stream has fewer bytes than it said", {{"path", path()}});
    return end(true);
  }
  finish_request();
}

// Of one that waits: the server stops.
void HttpConnection::stop_stream() {
  if (is_stream_partial_) return end(true);
  end_stream();
}

// Asks for the next piece when the last one is with the kernel.
bool HttpConnection::pull_stream() {
  if (is_job_running_ || !output_.empty()) return false;
  if (is_stream_waiting_ && !is_woken_) return false;
  is_woken_ = false;
  run(&Exchange::pull, &HttpConnection::take_chunk);
  return false;
}

// --- responses ---

void HttpConnection::respond(HttpResponse&& response) {
  if (const std::optional<std::string> why = bad_header(response)) {
    log_error("a response cannot be sent", {{"path", path()}, {"why", *why}});
    response = error_response(500, "the server made a bad response");
  }
  const bool is_bodyless = has_no_body(current_.method, response.status);
  BodyFraming framing{BodyFraming::Kind::length, response.body.size()};
  if (response.status == 204 || response.status == 304) {
    framing = {};
  } else if (is_bodyless && response.stream_bytes.has_value()) {
    framing.length = *response.stream_bytes;
  } else if (is_bodyless && response.stream != nullptr) {
    framing = current_.framing.is_http11 ? BodyFraming{BodyFraming::Kind::chunked} : BodyFraming{};
  }
  if (response.stream != nullptr && exchange_ != nullptr) {
    exchange_->source = std::move(response.stream);  // goes with the exchange, on a worker
  }
  send_head(response, framing);
  if (!is_bodyless) output_.append_body(std::move(response.body));
  finish_request();
}

void HttpConnection::respond_thrown() {
  respond(error_response(500, "the server failed: its log says more"));
}

// Answers and closes: where the next request would start is not known, or not wanted.
void HttpConnection::fail(const HttpProblem& problem, std::vector<HttpHeader> headers) {
  if (state_ == State::over) return;
  if (state_ == State::stream && is_stream_head_sent_) return end(true);
  current_.is_body_done = false;
  HttpResponse response = error_response(problem.status, problem.message);
  for (HttpHeader& header : headers) response.headers.push_back(std::move(header));
  respond(std::move(response));
}

void HttpConnection::fail_over_budget() {
  fail({503, "too many large requests at once: try again soon"}, {{"Retry-After", "1"}});
}

void HttpConnection::fail_with(const Error& error) {
  const HttpServerOptions& options = context_.options;
  HttpResponse response;
  if (options.failure_response) {
    try {
      response = options.failure_response(error, path());
    } catch (const std::exception& thrown) {
      log_error("failure_response threw", {{"what", thrown.what()}});
      response = error_response(500, "the server failed: its log says more");
    }
  } else {
    response = error_response(http_status(error.code), error.message);
    if (error.retry_after_ms > 0) {
      response.headers.push_back(
          {"Retry-After", fmt::format("{}", (error.retry_after_ms + 999) / 1000)});
    }
  }
  response.stream.reset();
  respond(std::move(response));
}

HttpResponse HttpConnection::error_response(unsigned status, std::string_view message) {
  HttpResponse response;
  try {
    if (context_.options.error_response) {
      response = context_.options.error_response(status, message, path());
    }
  } catch (const std::exception& thrown) {
    log_error("error_response threw", {{"what", thrown.what()}});
    response = {};
  }
  response.status = status;
  response.stream.reset();
  if (!context_.options.error_response || bad_header(response).has_value()) {
    response = {};
    response.status = status;
    response.content_type = "text/plain; charset=utf-8";
    response.body = fmt::format("{}\n", message);
  }
  return response;
}

void HttpConnection::send_head(const HttpResponse& response, BodyFraming framing) {
  // Bytes of a body that was not taken would be read as the next request.
  if (!current_.is_body_done || is_stopping_) current_.keep_alive = false;
  current_.status = response.status;
  append_head(output_, response,
              {.framing = framing,
               .is_http11 = current_.framing.is_http11,
               .keep_alive = current_.keep_alive,
               .date = context_.date.at(context_.clock.unix_ms())});
}

void HttpConnection::finish_request() {
  now_us_ = context_.clock.monotonic_us();
  if (context_.metrics != nullptr) {
    const size_t status_class = std::min(current_.status / 100, 5U) - 1;
    context_.metrics->requests[status_class].add();
    context_.metrics->duration_us.observe(now_us_ - current_.started_us);
  }
  if (!current_.keep_alive) return end(false);
  drop_exchange();
  state_ = State::head;
  has_skipped_line_ = false;
  searched_bytes_ = 0;
  has_head_begun_ = !input_.empty();
  quiet_since_us_ = now_us_;
  request_.target = request_.path = request_.query = {};
}

void HttpConnection::end(bool is_broken) {
  state_ = State::over;
  is_broken_ = is_broken_ || is_broken;
  drop_exchange();
}

void HttpConnection::drop_exchange() {
  wake_target_.reset();
  is_stream_waiting_ = false;
  if (exchange_ == nullptr) return;
  if (is_job_running_) exchange_->is_abandoned = true;
  // What a running job holds is not looked at.
  if (is_job_running_ || exchange_->sink != nullptr || exchange_->source != nullptr) {
    driver_.dispose(std::move(exchange_));
  }
  exchange_.reset();
}

std::string_view HttpConnection::path() const {
  return exchange_ != nullptr ? exchange_->request.path : request_.path;
}

// --- time ---

void HttpConnection::tick(size_t unsent_bytes) {
  if (state_ == State::over && is_broken_) return;
  const HttpServerOptions& options = context_.options;
  now_us_ = context_.clock.monotonic_us();
  const auto is_older = [this](uint64_t since_us, uint64_t ms) {
    return now_us_ - since_us > ms * us_per_ms;
  };
  // By what the other side acknowledged: a large socket buffer takes nothing for a long while.
  const uint64_t progress = output_.consumed() - unsent_bytes;
  if (output_.empty() || progress != progress_mark_) {
    progress_mark_ = progress;
    progress_at_us_ = now_us_;
  } else if (is_older(progress_at_us_, options.write_ms)) {
    return end(true);
  }
  if (state_ == State::head && output_.size() < output_bytes_max) {
    if (has_head_begun_ && is_older(quiet_since_us_, options.header_ms)) {
      fail({408, "the header took too long"});
    } else if (!has_head_begun_ && output_.empty() && is_older(quiet_since_us_, options.idle_ms)) {
      end(false);
    }
  } else if (state_ == State::body) {
    const bool is_ours = current_.is_body_done || piece_.size() >= piece_bytes_max;
    if (is_ours || window_bytes_ >= options.body_bytes_min) {
      window_start_us_ = now_us_;
      window_bytes_ = 0;
    } else if (is_older(window_start_us_, exchange_->route->body == Route::Body::streamed
                                              ? options.streamed_body_ms
                                              : options.body_ms)) {
      fail({408, "the body took too long"});
    }
  } else if (is_stream_waiting_ && now_us_ >= wake_at_us_) {
    is_woken_ = true;
  }
  advance();
}

}  // namespace trellis
