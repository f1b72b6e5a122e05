// The protocol without a socket: every byte and every moment is the test's.
#include "net/http_connection.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/no_wait.h"
#include "base/random.h"
#include "net/would_wait.h"
#include "support/http_fuzz_driver.h"
#include "support/http_fuzz_inputs.h"
#include "support/http_hello.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

// Gives its pieces in turn; `wait` pieces wait.
class ListSource final : public BodySource {
 public:
  explicit ListSource(std::vector<Result<Chunk>> chunks, Waker* waker = nullptr)
      : chunks_(std::move(chunks)), waker_(waker) {}
  void on_start(Waker waker) override {
    if (waker_ != nullptr) *waker_ = std::move(waker);
  }
  Result<Chunk> next() override {
    return at_ < chunks_.size() ? std::move(chunks_[at_++]) : Chunk{};
  }

 private:
  std::vector<Result<Chunk>> chunks_;
  Waker* waker_;
  size_t at_ = 0;
};

struct SinkLog {
  std::string written;
  size_t pieces = 0;
  bool has_finished = false;
  bool is_destroyed = false;
  std::optional<Error> error;
};

class LogSink final : public BodySink {
 public:
  explicit LogSink(SinkLog& log) : log_(log) {}
  ~LogSink() override { log_.is_destroyed = true; }
  Status write(ByteView piece) override {
    ++log_.pieces;
    log_.written.append(piece);
    if (log_.error.has_value()) return *log_.error;
    return {};
  }
  HttpResponse finish() override {
    log_.has_finished = true;
    return text(fmt::format("{} bytes", log_.written.size()));
  }

 private:
  SinkLog& log_;
};

class HttpConnectionTest : public ::testing::Test {
 protected:
  using Method = HttpMethod;

  HttpConnectionTest() { options_.header_bytes_max = 4096; }

  std::vector<Route> routes() {
    const auto echo = [](const HttpRequest& request) {
      return text(
          fmt::format("{}:{}", request.captures.empty() ? "" : request.captures[0], request.body));
    };
    std::vector<Route> table;
    table.push_back({.method = Method::get, .pattern = "/hello", .handle = [](const HttpRequest&) {
                       return text("hello");
                     }});
    table.push_back({.method = Method::get,
                     .pattern = "/worker",
                     .runs = Route::Runs::worker,
                     .handle = [](const HttpRequest&) { return text("worker"); }});
    table.push_back({.method = Method::get, .pattern = "/any", .handle = [this](const auto& r) {
                       return any_(r);
                     }});
    table.push_back({.method = Method::put,
                     .pattern = "/echo/{key*}",
                     .body = Route::Body::buffered,
                     .body_bytes_max = 100'000,
                     .handle = echo});
    table.push_back({.method = Method::put,
                     .pattern = "/any/{key*}",
                     .body = Route::Body::buffered,
                     .body_bytes_max = 1'000'000,
                     .handle = [this](const HttpRequest& request) { return any_(request); }});
    table.push_back({.method = Method::post,
                     .pattern = "/worker-echo",
                     .body = Route::Body::buffered,
                     .body_bytes_max = 100'000,
                     .runs = Route::Runs::worker,
                     .handle = echo});
    table.push_back({.method = Method::put,
                     .pattern = "/sink",
                     .body = Route::Body::streamed,
                     .body_bytes_max = 1'000'000,
                     .open = [this](const HttpRequest&) -> Result<std::unique_ptr<BodySink>> {
                       if (open_error_.has_value()) return *open_error_;
                       return std::make_unique<LogSink>(sink_);
                     }});
    return table;
  }

  ConnectionContext& context() {
    if (!router_.has_value()) router_.emplace(Router::make(routes()).value());
    if (!budget_.has_value()) budget_.emplace(options_.buffered_bytes_max);
    if (!context_.has_value())
      context_.emplace(ConnectionContext{*router_, options_, clock_, *budget_});
    return *context_;
  }

  // What a fresh connection says to these bytes, fed at once.
  Bytes say(ByteView bytes) {
    ManualConnection connection(context());
    connection.feed(bytes);
    is_closed_ = connection.is_closed();
    return connection.output();
  }

  static std::string status_of(ByteView output) {
    return output.size() < 12 ? std::string(output) : std::string(output.substr(9, 3));
  }
  static size_t count(ByteView text, std::string_view part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != ByteView::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

  HttpServerOptions options_;
  FakeClock clock_{1'700'000'000'000};
  std::optional<Router> router_;
  std::optional<BodyBudget> budget_;
  std::optional<ConnectionContext> context_;
  std::function<HttpResponse(const HttpRequest&)> any_;
  SinkLog sink_;
  std::optional<Error> open_error_;
  bool is_closed_ = false;
};

TEST_F(HttpConnectionTest, AnswersWithLengthAndDate) {
  EXPECT_EQ(say(get_hello),
            "HTTP/1.1 200 OK\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\n"
            "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_FALSE(is_closed_);
}

TEST_F(HttpConnectionTest, KeepsOrClosesAsVersionAndHeaderSay) {
  EXPECT_EQ(count(say("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
                  "\r\nConnection: close\r\n"),
            1U);
  EXPECT_TRUE(is_closed_);
  EXPECT_EQ(count(say("GET /hello HTTP/1.0\r\n\r\n"), "\r\nConnection: close\r\n"), 1U);
  EXPECT_TRUE(is_closed_);
  EXPECT_EQ(count(say("GET /hello HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
                  "\r\nConnection: keep-alive\r\n"),
            1U);
  EXPECT_FALSE(is_closed_);
}

TEST_F(HttpConnectionTest, HeadHasTheHeaderOnly) {
  const Bytes output = say("HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(count(output, "Content-Length: 5\r\n"), 1U);
  EXPECT_TRUE(output.ends_with("\r\n\r\n"));
  EXPECT_FALSE(is_closed_);
  EXPECT_EQ(status_of(say("HEAD /none HTTP/1.1\r\nHost: a\r\n\r\n")), "404");
  any_ = [](const HttpRequest&) {
    HttpResponse response = text("");
    response.stream = std::make_unique<ListSource>(std::vector<Result<Chunk>>{});
    return response;
  };
  const Bytes streamed = say("HEAD /any HTTP/1.1\r\nHost: a\r\n\r\n" + Bytes(get_hello));
  EXPECT_EQ(count(streamed, "Transfer-Encoding: chunked\r\n"), 1U);
  EXPECT_EQ(count(streamed, "hello"), 1U);
}

TEST_F(HttpConnectionTest, NoContentHasNoLength) {
  any_ = [](const HttpRequest&) {
    HttpResponse response;
    response.status = 204;
    response.body = "ignored";
    return response;
  };
  const Bytes output = say("GET /any HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(count(output, "Content-Length"), 0U);
  EXPECT_EQ(count(output, "ignored"), 0U);
}

TEST_F(HttpConnectionTest, UnknownPathsAndMethods) {
  EXPECT_EQ(status_of(say("GET /none HTTP/1.1\r\nHost: a\r\n\r\n")), "404");
  EXPECT_FALSE(is_closed_);
  const Bytes wrong = say("DELETE /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(status_of(wrong), "405");
  EXPECT_EQ(count(wrong, "\r\nAllow: GET, HEAD, OPTIONS\r\n"), 1U);
  EXPECT_FALSE(is_closed_);
  const Bytes options = say("OPTIONS /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(status_of(options), "204");
  EXPECT_EQ(count(options, "\r\nAllow: GET, HEAD, OPTIONS\r\n"), 1U);
  EXPECT_EQ(status_of(say("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")), "204");
  // Nobody wants the body, so it is not read, and what follows is not a request.
  say("POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_TRUE(is_closed_);
}

TEST_F(HttpConnectionTest, PipelinedRequestsAreAnsweredInOrder) {
  const Bytes output =
      say("PUT /echo/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nA"
          "GET /worker HTTP/1.1\r\nHost: a\r\n\r\n"
          "PUT /echo/2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nB\r\n0\r\n\r\n"
          "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  const size_t first = output.find("1:A");
  const size_t second = output.find("worker");
  const size_t third = output.find("2:B");
  const size_t fourth = output.find("hello");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_LT(third, fourth);
  EXPECT_NE(fourth, Bytes::npos);
}

TEST_F(HttpConnectionTest, ARunningWorkerHoldsBackLaterRequests) {
  ManualConnection connection(context(), false);
  connection.feed("GET /worker HTTP/1.1\r\nHost: a\r\n\r\n" + Bytes(get_hello));
  EXPECT_EQ(connection.output(), "");
  connection.run_jobs();
  EXPECT_EQ(count(connection.output(), "HTTP/1.1 200"), 2U);
  EXPECT_LT(connection.output().find("worker"), connection.output().find("hello"));
}

TEST_F(HttpConnectionTest, WhatWouldWaitOnTheLoopRunsOnAWorker) {
  size_t on_loop = 0;
  any_ = [&](const HttpRequest& request) {
    if (!NoWait::is_on())
      return text(fmt::format("{}: {} bytes", request.captures[0], request.body.size()));
    ++on_loop;
    HttpResponse response;
    response.status = would_wait_status;
    return response;
  };
  // Of a body that comes with its header, one that does not, and none.
  for (const size_t bytes : {3, 50'000, 0}) {
    SCOPED_TRACE(bytes);
    on_loop = 0;
    ManualConnection connection(context(), false);
    connection.feed(fmt::format("PUT /any/k HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}{}",
                                bytes, Bytes(bytes, 'x'), get_hello));
    EXPECT_EQ(on_loop, 1U);
    EXPECT_EQ(connection.output(), "");
    connection.run_jobs();
    const Bytes& output = connection.output();
    EXPECT_EQ(count(output, "HTTP/1.1 200"), 2U);
    EXPECT_LT(output.find(fmt::format("k: {} bytes", bytes)), output.find("hello"));
    EXPECT_FALSE(connection.is_closed());
  }
}

TEST_F(HttpConnectionTest, LargeBodiesAreHandledByWorkers) {
  bool on_loop = false;
  any_ = [&](const HttpRequest& request) {
    on_loop = NoWait::is_on();
    return text(fmt::format("{} bytes", request.body.size()));
  };
  for (const size_t bytes : {200'000, 300'000}) {
    const Bytes output =
        say(fmt::format("PUT /any/k HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}", bytes,
                        Bytes(bytes, 'x')));
    EXPECT_EQ(count(output, fmt::format("{} bytes", bytes)), 1U);
    EXPECT_EQ(on_loop, bytes == 200'000);
  }
}

TEST_F(HttpConnectionTest, StopsParsingWhileNothingIsSent) {
  any_ = [](const HttpRequest&) { return text(std::string(10'000, 'x')); };
  ManualConnection connection(context());
  connection.takes_output = false;
  size_t fed = 0;
  const Bytes request = "GET /any HTTP/1.1\r\nHost: a\r\n\r\n";
  while (fed < 10'000 && !connection.connection().input_space().empty()) {
    connection.feed(request);
    ++fed;
  }
  EXPECT_LT(fed, 1000U);
  EXPECT_LT(connection.connection().output().size(), 300'000U);
  connection.takes_output = true;
  connection.settle();
  const size_t answered = count(connection.output(), "HTTP/1.1 200");
  EXPECT_GE(answered, fed - 1);
  EXPECT_LE(answered, fed);
}

TEST_F(HttpConnectionTest, OneEmptyLineBeforeARequestIsSkipped) {
  EXPECT_EQ(status_of(say("\r\n" + Bytes(get_hello))), "200");
  EXPECT_EQ(status_of(say("\r\n\r\n" + Bytes(get_hello))), "400");
  EXPECT_TRUE(is_closed_);
}

TEST_F(HttpConnectionTest, AbsoluteTargetsAreTaken) {
  EXPECT_EQ(status_of(say("GET http://b.example/hello HTTP/1.1\r\nHost: a\r\n\r\n")), "200");
  EXPECT_EQ(status_of(say("GET HTTPS://b.example:443/hello?x=1 HTTP/1.1\r\nHost: a\r\n\r\n")),
            "200");
  EXPECT_EQ(status_of(say("GET http://b.example HTTP/1.1\r\nHost: a\r\n\r\n")), "404");
}

class HostileInputTest : public HttpConnectionTest,
                         public ::testing::WithParamInterface<HostileInput> {};

TEST_P(HostileInputTest, IsRefusedHoweverItIsSplit) {
  const ByteView bytes = GetParam().bytes;
  EXPECT_EQ(status_of(say(bytes)), GetParam().status);
  EXPECT_TRUE(is_closed_);
  ManualConnection slow(context());
  for (const char& byte : bytes) slow.feed({&byte, 1});
  EXPECT_EQ(status_of(slow.output()), GetParam().status);
  EXPECT_EQ(count(slow.output(), "HTTP/1.1 "), 1U);
  EXPECT_TRUE(slow.is_closed());
  // What comes behind is not taken for a request.
  EXPECT_EQ(count(say(Bytes(bytes) + Bytes(get_hello)), "HTTP/1.1 "), 1U);
}

INSTANTIATE_TEST_SUITE_P(All, HostileInputTest, ::testing::ValuesIn(hostile_inputs));

TEST_F(HttpConnectionTest, EndlessLinesAndHeadersAreRefusedAtTheLimit) {
  EXPECT_EQ(status_of(say("GET /" + Bytes(5000, 'a'))), "414");
  EXPECT_EQ(status_of(say("GET /hello HTTP/1.1\r\nHost: a\r\nX: " + Bytes(5000, 'a'))), "431");
  Bytes many = "GET /hello HTTP/1.1\r\nHost: a\r\n";
  while (many.size() < 5000) many += "X: y\r\n";
  EXPECT_EQ(status_of(say(many)), "431");
  EXPECT_TRUE(is_closed_);
  // Exactly at the limit is not over it.
  Bytes full = "GET /hello HTTP/1.1\r\nHost: a\r\nX: ";
  full.append(4096 - 4 - full.size(), 'a').append("\r\n\r\n");
  EXPECT_EQ(status_of(say(full)), "200");
  EXPECT_EQ(status_of(say(full.insert(full.size() - 4, "a"))), "431");
}

TEST_F(HttpConnectionTest, ChunkLinesAndTrailersHaveALimit) {
  const Bytes head = "PUT /echo/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(status_of(say(head + "5;a=" + Bytes(20'000, 'a'))), "400");
  EXPECT_EQ(status_of(say(head + "5;a=" + Bytes(20'000, 'a') + "\r\nhello\r\n0\r\n\r\n")), "400");
  EXPECT_EQ(status_of(say(head + "0\r\nA: " + Bytes(20'000, 'a'))), "400");
  EXPECT_EQ(status_of(say(head + "5;a=" + Bytes(10'000, 'a') + "\r\nhello\r\n0\r\nA: b\r\n\r\n")),
            "200");
  EXPECT_FALSE(is_closed_);
}

TEST_F(HttpConnectionTest, TrailersAreNotHeaders) {
  any_ = [](const HttpRequest&) { return text("unused"); };
  const Bytes output =
      say("PUT /echo/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
          "1\r\nA\r\n0\r\nHost: b\r\nAuthorization: c\r\n\r\n" +
          Bytes(get_hello));
  EXPECT_EQ(count(output, "HTTP/1.1 200"), 2U);
}

TEST_F(HttpConnectionTest, ContinueIsSentOnlyWhenTheBodyIsWanted) {
  ManualConnection wanted(context());
  wanted.feed(
      "PUT /echo/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(wanted.output(), "HTTP/1.1 100 Continue\r\n\r\n");
  wanted.feed("ok");
  EXPECT_EQ(count(wanted.output(), "x:ok"), 1U);

  ManualConnection streamed(context(), false);
  streamed.feed(
      "PUT /sink HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(streamed.output(), "");  // not before the sink is open
  streamed.run_jobs();
  EXPECT_EQ(streamed.output(), "HTTP/1.1 100 Continue\r\n\r\n");

  const std::string_view expect = "Host: a\r\nExpect: 100-continue\r\n";
  EXPECT_EQ(
      status_of(say(fmt::format("PUT /none HTTP/1.1\r\n{}Content-Length: 2\r\n\r\n", expect))),
      "404");
  EXPECT_TRUE(is_closed_);
  EXPECT_EQ(status_of(say(
                fmt::format("PUT /echo/ HTTP/1.1\r\n{}Content-Length: 200000\r\n\r\n", expect))),
            "413");
  EXPECT_TRUE(is_closed_);
  // The body is there already.
  EXPECT_EQ(
      status_of(say(fmt::format("PUT /echo/ HTTP/1.1\r\n{}Content-Length: 2\r\n\r\nok", expect))),
      "200");
}

TEST_F(HttpConnectionTest, BufferedBodiesHaveABudget) {
  options_.buffered_bytes_max = 60'000;
  ManualConnection first(context());
  const Bytes head = "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n";
  first.feed(head + Bytes(40'000, 'x'));
  EXPECT_GT(budget_->used_bytes(), 0U);
  ManualConnection second(context());
  second.feed(head + Bytes(49'000, 'x'));
  EXPECT_EQ(status_of(second.output()), "503");
  EXPECT_EQ(count(second.output(), "\r\nRetry-After: 1\r\n"), 1U);
  EXPECT_TRUE(second.is_closed());
  first.feed(Bytes(10'000, 'x'));
  EXPECT_EQ(status_of(first.output()), "200");
  EXPECT_EQ(budget_->used_bytes(), 0U);
}

TEST_F(HttpConnectionTest, ThrowingHandlersGive500) {
  any_ = [](const HttpRequest&) -> HttpResponse { throw std::bad_alloc(); };
  EXPECT_EQ(count(say("GET /any HTTP/1.1\r\nHost: a\r\n\r\n" + Bytes(get_hello)), "HTTP/1.1 500"),
            1U);
  EXPECT_FALSE(is_closed_);
  any_ = [](const HttpRequest&) -> HttpResponse { throw 1; };
  EXPECT_EQ(status_of(say("GET /any HTTP/1.1\r\nHost: a\r\n\r\n")), "500");
}

TEST_F(HttpConnectionTest, HeadersThatHttpDoesNotAllowGive500) {
  for (const HttpHeader& header : std::vector<HttpHeader>{{"X", "a\r\nY: b"},
                                                          {"X Y", "a"},
                                                          {"", "a"},
                                                          {"Content-Length", "1"},
                                                          {"connection", "close"},
                                                          {"Content-Type", "b"}}) {
    any_ = [&header](const HttpRequest&) {
      HttpResponse response = text("a");
      response.headers.push_back(header);
      return response;
    };
    EXPECT_EQ(status_of(say("GET /any HTTP/1.1\r\nHost: a\r\n\r\n")), "500") << header.name;
  }
}

TEST_F(HttpConnectionTest, TheApplicationMakesTheErrors) {
  options_.error_response = [](unsigned status, std::string_view message, std::string_view path) {
    HttpResponse response;
    response.content_type = "application/json";
    response.body = fmt::format("{{{} {} {}}}", status, message, path);
    response.headers.push_back({"X-Error", "1"});
    return response;
  };
  const Bytes output = say("GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(count(output, "{404 there is nothing at this path /none}"), 1U);
  EXPECT_EQ(count(output, "X-Error: 1\r\n"), 1U);
  options_.failure_response = [](const Error& error, std::string_view path) {
    HttpResponse response = text(fmt::format("{} {}", error.message, path));
    response.status = 418;
    return response;
  };
  open_error_ = Error{Code::denied, "no"};
  EXPECT_TRUE(
      say("PUT /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx").ends_with("no /sink"));
}

TEST_F(HttpConnectionTest, RequestsAreWholeForTheirHandlers) {
  std::string seen;
  any_ = [&seen](const HttpRequest& request) {
    seen = fmt::format("{}|{}|{}|{}|{}|{}", request.target, request.path, request.query,
                       request.header("x-one"), request.header("X-None"), request.peer);
    return text("");
  };
  say("GET /any?a=1&b=%20 HTTP/1.1\r\nHost: a\r\nX-One:  v \r\nx-one: w\r\n\r\n");
  EXPECT_EQ(seen, "/any?a=1&b=%20|/any|a=1&b=%20|v||192.0.2.1:4711");
}

TEST_F(HttpConnectionTest, WorkersSeeWhatTheConnectionHasForgotten) {
  ManualConnection connection(context(), false);
  connection.feed("POST /worker-echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
  connection.feed(Bytes(3000, 'G'));  // other bytes where the request was
  connection.run_job();
  EXPECT_EQ(count(connection.output(), ":abc"), 1U);
}

// --- streams ---

Chunk more(std::string_view bytes) { return {Bytes(bytes), Chunk::Then::more}; }
Chunk wait(std::string_view bytes) { return {Bytes(bytes), Chunk::Then::wait, 1000}; }
Chunk pause(std::string_view bytes) { return {Bytes(bytes), Chunk::Then::pause, 1000}; }
Chunk last(std::string_view bytes) { return {Bytes(bytes), Chunk::Then::end}; }

class HttpStreamTest : public HttpConnectionTest {
 protected:
  void stream(std::vector<Result<Chunk>> chunks, std::optional<uint64_t> bytes = {}) {
    any_ = [this, chunks = std::move(chunks), bytes](const HttpRequest&) {
      HttpResponse response = text("");
      response.stream = std::make_unique<ListSource>(chunks, &waker_);
      response.stream_bytes = bytes;
      return response;
    };
  }
  const Bytes get_any = "GET /any HTTP/1.1\r\nHost: a\r\n\r\n";
  Waker waker_;
};

TEST_F(HttpStreamTest, IsSentInChunks) {
  stream({more("hello "), more(""), more("world"), last("!")});
  const Bytes output = say(get_any + Bytes(get_hello));
  EXPECT_EQ(count(output,
                  "Transfer-Encoding: chunked\r\n\r\n6\r\nhello \r\n5\r\nworld\r\n1\r\n!"
                  "\r\n0\r\n\r\nHTTP/1.1 200 OK"),
            1U);
  EXPECT_FALSE(is_closed_);
}

TEST_F(HttpStreamTest, OfOnePieceHasALength) {
  stream({last("all")});
  EXPECT_TRUE(say(get_any).ends_with("Content-Length: 3\r\n\r\nall"));
}

TEST_F(HttpStreamTest, OfKnownLengthHasALength) {
  stream({more("he"), last("llo")}, 5);
  EXPECT_TRUE(say(get_any).ends_with("Content-Length: 5\r\n\r\nhello"));
  EXPECT_FALSE(is_closed_);
  for (const uint64_t wrong : {4, 6}) {
    context_.reset();
    stream({more("he"), last("llo")}, wrong);
    ManualConnection connection(context());
    connection.feed(get_any);
    EXPECT_TRUE(connection.connection().is_broken()) << wrong;
  }
}

TEST_F(HttpStreamTest, ToHttp10EndsWithTheConnection) {
  stream({more("a"), last("b")});
  const Bytes output = say("GET /any HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(count(output, "chunked"), 0U);
  EXPECT_TRUE(output.ends_with("Connection: close\r\n\r\nab"));
  EXPECT_TRUE(is_closed_);
}

TEST_F(HttpStreamTest, AnEarlyErrorIsAResponseALateOneABreak) {
  stream({Error{Code::not_found, "gone"}});
  EXPECT_EQ(status_of(say(get_any)), "404");
  EXPECT_FALSE(is_closed_);
  stream({more("a"), Error{Code::corrupt, "bad"}});
  ManualConnection connection(context());
  connection.feed(get_any);
  EXPECT_TRUE(connection.connection().is_broken());
  EXPECT_FALSE(connection.output().ends_with("0\r\n\r\n"));
}

TEST_F(HttpStreamTest, IsAskedOnlyWhenAllIsTaken) {
  stream({more("a"), more("b"), last("c")});
  ManualConnection connection(context());
  connection.takes_output = false;
  connection.feed(get_any);
  connection.run_jobs();
  const size_t held = connection.connection().output().size();
  connection.run_jobs();
  connection.tick();
  EXPECT_EQ(connection.connection().output().size(), held);
  connection.takes_output = true;
  connection.settle();
  EXPECT_TRUE(connection.output().ends_with("0\r\n\r\n"));
}

TEST_F(HttpStreamTest, WaitsUntilWokenOrTimeHasPassed) {
  stream({wait("a"), wait("b"), wait("c"), last("d")});
  ManualConnection connection(context());
  connection.feed(get_any);
  EXPECT_TRUE(connection.output().ends_with("1\r\na\r\n"));
  waker_.wake();
  EXPECT_TRUE(connection.output().ends_with("1\r\nb\r\n"));
  clock_.advance_ms(999);
  connection.tick();
  EXPECT_TRUE(connection.output().ends_with("1\r\nb\r\n"));
  clock_.advance_ms(1);
  connection.tick();
  EXPECT_TRUE(connection.output().ends_with("1\r\nc\r\n"));
  waker_.wake();
  EXPECT_TRUE(connection.output().ends_with("1\r\nd\r\n0\r\n\r\n"));
  waker_.wake();  // the stream is gone
  connection.feed(get_hello);
  EXPECT_TRUE(connection.output().ends_with("hello"));
}

TEST_F(HttpStreamTest, AWakeWhileItMakesAPieceIsKept) {
  any_ = [](const HttpRequest&) {
    class Source final : public BodySource {
     public:
      void on_start(Waker waker) override { waker_ = std::move(waker); }
      Result<Chunk> next() override {
        if (++calls_ == 1) {
          waker_.wake();
          return wait("a");
        }
        return last("b");
      }
      Waker waker_;
      int calls_ = 0;
    };
    HttpResponse response = text("");
    response.stream = std::make_unique<Source>();
    return response;
  };
  EXPECT_TRUE(say(get_any).ends_with("1\r\nb\r\n0\r\n\r\n"));
}

TEST_F(HttpStreamTest, EndsWhenItsReaderLeavesOrTheServerStops) {
  stream({wait("a"), last("b")});
  ManualConnection gone(context());
  gone.feed(get_any);
  gone.feed_end();
  EXPECT_TRUE(gone.connection().is_broken());
  EXPECT_EQ(gone.disposed(), 1U);

  ManualConnection stopped(context());
  stopped.feed(get_any);
  stopped.connection().stop();
  stopped.settle();
  EXPECT_TRUE(stopped.output().ends_with("1\r\na\r\n0\r\n\r\n"));
  EXPECT_TRUE(stopped.is_closed());
  EXPECT_FALSE(stopped.connection().is_broken());
  EXPECT_EQ(stopped.disposed(), 1U);
}

TEST_F(HttpStreamTest, APausedOneIsBrokenOffWhenTheServerStops) {
  stream({pause("a"), last("b")});
  ManualConnection stopped(context());
  stopped.feed(get_any);
  stopped.connection().stop();
  stopped.settle();
  EXPECT_TRUE(stopped.output().ends_with("1\r\na\r\n"));
  EXPECT_TRUE(stopped.connection().is_broken());
  EXPECT_EQ(stopped.disposed(), 1U);
}

TEST_F(HttpConnectionTest, SinksGetTheWholeBodyInPieces) {
  const Bytes body = Random(7).bytes(300'000);
  ManualConnection connection(context());
  connection.feed(fmt::format("PUT /sink HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}",
                              body.size(), body));
  EXPECT_EQ(sink_.written, body);
  EXPECT_TRUE(sink_.has_finished);
  EXPECT_TRUE(sink_.is_destroyed);
  EXPECT_TRUE(connection.output().ends_with("300000 bytes"));
  EXPECT_FALSE(connection.is_closed());

  sink_ = {};
  connection.feed("PUT /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 100; ++i) connection.feed("a\r\n0123456789\r\n");
  connection.feed("0\r\n\r\n");
  EXPECT_EQ(sink_.written.size(), 1000U);
  EXPECT_TRUE(sink_.has_finished);
}

TEST_F(HttpConnectionTest, ABusySinkHoldsTheClientBack) {
  ManualConnection connection(context(), false);
  connection.feed("PUT /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n");
  size_t fed = 0;
  while (!connection.connection().input_space().empty() && fed < 900'000) {
    const std::span<char> space = connection.connection().input_space();
    connection.connection().received(space.size());
    fed += space.size();
  }
  EXPECT_LT(fed, 300'000U);  // what is read ahead while nobody takes it
  clock_.advance_ms(60'000);
  connection.tick();
  EXPECT_FALSE(connection.is_closed());  // not the client's fault
}

TEST_F(HttpConnectionTest, ASinkThatFailsAnswersAndCloses) {
  sink_.error = Error{Code::too_large, "full"};
  EXPECT_EQ(status_of(say("PUT /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")), "413");
  EXPECT_TRUE(is_closed_);
  EXPECT_TRUE(sink_.is_destroyed);
  EXPECT_FALSE(sink_.has_finished);
  open_error_ = Error{Code::unavailable, "later", {}, 1500};
  const Bytes output = say("PUT /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(status_of(output), "503");
  EXPECT_EQ(count(output, "Retry-After: 2\r\n"), 1U);
}

TEST_F(HttpConnectionTest, ABodyThatBreaksOffIsNotFinished) {
  ManualConnection connection(context());
  connection.feed("PUT /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
  connection.feed_end();
  EXPECT_TRUE(connection.connection().is_broken());
  EXPECT_TRUE(sink_.is_destroyed);
  EXPECT_FALSE(sink_.has_finished);
}

TEST_F(HttpConnectionTest, HalfAConnectionIsEnoughForAnAnswer) {
  ManualConnection connection(context(), false);
  connection.feed("GET /worker HTTP/1.1\r\nHost: a\r\n\r\n");
  connection.feed_end();
  EXPECT_FALSE(connection.is_closed());
  connection.run_jobs();
  EXPECT_TRUE(connection.output().ends_with("worker"));
  EXPECT_TRUE(connection.is_closed());
}

// --- time ---

TEST_F(HttpConnectionTest, AnIdleConnectionIsClosed) {
  ManualConnection connection(context());
  connection.feed(get_hello);
  clock_.advance_ms(options_.idle_ms);
  connection.tick();
  EXPECT_FALSE(connection.is_closed());
  clock_.advance_ms(1);
  connection.tick();
  EXPECT_TRUE(connection.is_closed());
  EXPECT_FALSE(connection.connection().is_broken());
}

TEST_F(HttpConnectionTest, ASlowHeaderIsRefusedHoweverItDrips) {
  ManualConnection connection(context());
  for (const char& byte : get_hello.substr(0, 12)) {
    connection.feed({&byte, 1});
    clock_.advance_ms(1000);
    connection.tick();
  }
  EXPECT_EQ(status_of(connection.output()), "408");
  EXPECT_TRUE(connection.is_closed());
}

TEST_F(HttpConnectionTest, ASlowBodyIsRefusedASteadyOneIsNot) {
  options_.body_ms = 1000;
  options_.body_bytes_min = 100;
  const std::string_view head = "PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n";
  ManualConnection slow(context());
  slow.feed(head);
  for (int i = 0; i < 15; ++i) {
    slow.feed("x");
    clock_.advance_ms(100);
    slow.tick();
  }
  EXPECT_EQ(status_of(slow.output()), "408");
  EXPECT_TRUE(slow.is_closed());

  ManualConnection steady(context());
  steady.feed(head);
  for (int i = 0; i < 20; ++i) {
    steady.feed(Bytes(100, 'x'));
    clock_.advance_ms(900);
    steady.tick();
  }
  EXPECT_EQ(status_of(steady.output()), "200");
}

TEST_F(HttpConnectionTest, AStreamedBodyMayPauseForLonger) {
  options_.body_ms = 1000;
  options_.streamed_body_ms = 60'000;
  options_.body_bytes_min = 100;
  ManualConnection connection(context());
  connection.feed("PUT /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n");
  for (int i = 0; i < 10; ++i) {
    connection.feed(Bytes(100, 'x'));
    clock_.advance_ms(59'000);
    connection.tick();
  }
  EXPECT_EQ(connection.output(), "");
  EXPECT_FALSE(connection.is_closed());

  for (int i = 0; i < 13; ++i) {  // a drip is no progress
    connection.feed("x");
    clock_.advance_ms(5'000);
    connection.tick();
  }
  EXPECT_EQ(status_of(connection.output()), "408");
  EXPECT_TRUE(connection.is_closed());
  EXPECT_FALSE(sink_.has_finished);
  EXPECT_TRUE(sink_.is_destroyed);
}

TEST_F(HttpConnectionTest, AResponseThatNobodyTakesIsBrokenOff) {
  ManualConnection connection(context());
  connection.takes_output = false;
  connection.feed(get_hello);
  connection.tick();
  clock_.advance_ms(options_.write_ms + 1);
  connection.tick();
  EXPECT_TRUE(connection.connection().is_broken());
}

TEST_F(HttpConnectionTest, StopFinishesWhatIsAsked) {
  ManualConnection idle(context());
  idle.connection().stop();
  EXPECT_TRUE(idle.is_closed());

  ManualConnection busy(context(), false);
  busy.feed("GET /worker HTTP/1.1\r\nHost: a\r\n\r\n" + Bytes(get_hello));
  busy.connection().stop();
  EXPECT_FALSE(busy.is_closed());
  busy.run_jobs();
  EXPECT_EQ(count(busy.output(), "Connection: close\r\n"), 1U);
  EXPECT_TRUE(busy.output().ends_with("worker"));
  EXPECT_TRUE(busy.is_closed());
}

// --- splits ---

Bytes random_request(Random& random, std::string& expected) {
  const Bytes body = random.bytes(random.below(random.one_in(10) ? 50'000 : 20));
  const uint64_t key = random.below(1000);
  switch (random.below(4)) {
    case 0: expected = "hello"; return Bytes(get_hello);
    case 1: expected = "worker"; return "GET /worker HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
    case 2:
      expected = fmt::format("{}:{}", key, body);
      return fmt::format("PUT /echo/{} HTTP/1.1\r\nHost: a\r\ncontent-length: {}\r\n\r\n{}", key,
                         body.size(), body);
    default: {
      expected = fmt::format(":{}", body);
      Bytes out = "POST /worker-echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n";
      for (size_t at = 0; at < body.size();) {
        const size_t size = std::min<size_t>(body.size() - at, 1 + random.below(5000));
        out += fmt::format("{:X}{}\r\n{}\r\n", size, random.one_in(5) ? ";a=b" : "",
                           ByteView(body).substr(at, size));
        at += size;
      }
      return out + (random.one_in(3) ? "0\r\nT: x\r\n\r\n" : "0\r\n\r\n");
    }
  }
}

TEST_F(HttpConnectionTest, EveryRequestGetsItsAnswerHoweverTheBytesAreSplit) {
  Random random(test_seed(11));
  for (uint64_t round = 0; round < test_rounds(200); ++round) {
    Bytes input;
    std::vector<std::string> bodies;
    for (uint64_t i = 0, requests = 1 + random.below(20); i < requests; ++i) {
      input += random_request(random, bodies.emplace_back());
    }
    ManualConnection connection(context(), random.one_in(2));
    for (ByteView rest = input; !rest.empty();) {
      const size_t size = std::min<size_t>(
          rest.size(), 1 + random.below(random.one_in(3) ? 20'000 : 1 + random.below(50)));
      connection.feed(rest.substr(0, size));
      rest.remove_prefix(size);
      if (random.one_in(3)) connection.run_job();
    }
    connection.run_jobs();
    Bytes expected;
    for (const std::string& body : bodies) {
      expected += fmt::format(
          "HTTP/1.1 200 OK\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\nContent-Type: text/plain\r\n"
          "Content-Length: {}\r\n\r\n{}",
          body.size(), body);
    }
    ASSERT_EQ(connection.output(), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace trellis
