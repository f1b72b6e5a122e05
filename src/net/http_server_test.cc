// The whole server, through sockets.
#include "net/http_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "net/http_client.h"
#include "support/http_fuzz_inputs.h"
#include "support/http_hello.h"
#include "support/raw_socket.h"
#include "support/signal.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

uint64_t stream_bytes() { return test_scale() == "quick" ? uint64_t{64} << 20 : uint64_t{1} << 30; }
// What the kernel may hold on both sides, with room: far less than what is streamed.
constexpr uint64_t ahead_bytes_max = 48 << 20;

class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() {
    options_.listeners = {{"127.0.0.1", 0}};
    options_.loops = 2;
    options_.workers = 4;
    options_.sweep_ms = 10;
    options_.metrics = &registry_;
    add({.method = HttpMethod::get, .pattern = "/hello", .handle = [](const HttpRequest&) {
           return text("hello");
         }});
    add({.method = HttpMethod::put,
         .pattern = "/echo/{key*}",
         .body = Route::Body::buffered,
         .body_bytes_max = 100'000,
         .handle = [](const HttpRequest& request) { return text(request.body); }});
  }

  void add(Route route) { routes_.push_back(std::move(route)); }

  void start() {
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::start(Router::make(std::move(routes_)).value(), std::move(options_), clock_);
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(*server);
    port_ = server_->ports().at(0);
  }

  void expect_serving() {
    RawSocket socket(port_);
    socket.send(get_hello);
    EXPECT_TRUE(socket.receive_response().ends_with("hello"));
  }

  Registry registry_;
  SystemClock clock_;
  HttpServerOptions options_;
  std::vector<Route> routes_;
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
};

TEST_F(HttpServerTest, KeepsConnectionsAndCounts) {
  start();
  {
    RawSocket socket(port_);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(socket.send(get_hello));
      ASSERT_TRUE(socket.receive_response().ends_with("hello"));
    }
    socket.send("GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(socket.receive_all().starts_with("HTTP/1.1 404"));
  }
  server_->stop();
  const std::string page = prometheus_text(registry_);
  EXPECT_NE(page.find("trellis_http_requests_total{status=\"2xx\"} 100\n"), std::string::npos);
  EXPECT_NE(page.find("trellis_http_requests_total{status=\"4xx\"} 1\n"), std::string::npos);
  EXPECT_NE(page.find("trellis_http_connections 0\n"), std::string::npos);
  EXPECT_NE(page.find("trellis_http_request_duration_us_count 101\n"), std::string::npos);
}

TEST_F(HttpServerTest, SaysWhoAsks) {
  std::string peer;
  bool is_loopback = false;
  add({.method = HttpMethod::get, .pattern = "/peer", .handle = [&](const HttpRequest& request) {
         peer = request.peer;
         is_loopback = request.peer_is_loopback;
         EXPECT_FALSE(request.secure);
         return text("");
       }});
  start();
  RawSocket socket(port_);
  socket.send("GET /peer HTTP/1.1\r\nHost: a\r\n\r\n");
  socket.receive_response();
  EXPECT_TRUE(peer.starts_with("127.0.0.1:")) << peer;
  EXPECT_TRUE(is_loopback);
}

TEST_F(HttpServerTest, PipelinedLoopAndWorkerRequestsKeepTheirOrder) {
  const auto echo = [](const HttpRequest& request) { return text(request.captures[0]); };
  add({.method = HttpMethod::get, .pattern = "/loop/{n}", .handle = echo});
  add({.method = HttpMethod::get,
       .pattern = "/worker/{n}",
       .runs = Route::Runs::worker,
       .handle = echo});
  start();
  constexpr int requests = 1000;
  RawSocket socket(port_);
  std::thread sender([&socket] {
    std::string all;
    for (int i = 0; i < requests; ++i) {
      all +=
          fmt::format("GET /{}/{} HTTP/1.1\r\nHost: a\r\n\r\n", i % 3 == 0 ? "worker" : "loop", i);
    }
    socket.send(all);
  });
  for (int i = 0; i < requests; ++i) {
    const std::string response = socket.receive_response();
    ASSERT_TRUE(response.ends_with(fmt::format("\r\n\r\n{}", i))) << response;
  }
  sender.join();
}

TEST_F(HttpServerTest, ManyClientsAtOnce) {
  add({.method = HttpMethod::get,
       .pattern = "/worker/{n}",
       .runs = Route::Runs::worker,
       .handle = [](const HttpRequest& request) { return text(request.captures[0]); }});
  start();
  std::vector<std::thread> clients;
  std::atomic<int> answered = 0;
  for (int client = 0; client < 16; ++client) {
    clients.emplace_back([&, client] {
      RawSocket socket(port_);
      for (int i = 0; i < 50; ++i) {
        const std::string id = fmt::format("{}-{}", client, i);
        socket.send(fmt::format("GET /worker/{} HTTP/1.1\r\nHost: a\r\n\r\n", id));
        if (socket.receive_response().ends_with("\r\n\r\n" + id)) ++answered;
        socket.send(get_hello);
        if (socket.receive_response().ends_with("hello")) ++answered;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered, 16 * 50 * 2);
}

// --- streams ---

class CountingSource final : public BodySource {
 public:
  CountingSource(uint64_t bytes, std::atomic<uint64_t>& made) : left_(bytes), made_(made) {}
  Result<Chunk> next() override {
    const size_t size = std::min<uint64_t>(left_, 256 * 1024);
    left_ -= size;
    made_ += size;
    return Chunk{Bytes(size, 'x'), left_ == 0 ? Chunk::Then::end : Chunk::Then::more};
  }

 private:
  uint64_t left_;
  std::atomic<uint64_t>& made_;
};

TEST_F(HttpServerTest, ALargeDownloadIsMadeAsItIsRead) {
  std::atomic<uint64_t> made = 0;
  add({.method = HttpMethod::get, .pattern = "/large", .handle = [&made](const HttpRequest&) {
         HttpResponse response = text("");
         response.stream = std::make_unique<CountingSource>(stream_bytes(), made);
         response.stream_bytes = stream_bytes();
         return response;
       }});
  start();
  RawSocket socket(port_);
  socket.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  socket.receive_until("\r\n\r\n");
  uint64_t received = 0;
  uint64_t ahead_max = 0;
  while (received < stream_bytes()) {
    const std::string part = socket.receive(1 << 20);
    ASSERT_FALSE(part.empty()) << received;
    received += part.size();
    ahead_max = std::max(ahead_max, made.load() - received);
  }
  EXPECT_EQ(received, stream_bytes());
  EXPECT_EQ(made, stream_bytes());
  EXPECT_LT(ahead_max, ahead_bytes_max);
  expect_serving();
}

// Its first piece waits until the client could send no more.
class GatedSink final : public BodySink {
 public:
  GatedSink(Signal& gate, std::atomic<uint64_t>& taken) : gate_(gate), taken_(taken) {}
  Status write(ByteView piece) override {
    if (taken_ == 0) {
      EXPECT_TRUE(gate_.wait());
    }
    taken_ += piece.size();
    return {};
  }
  HttpResponse finish() override { return text(fmt::format("{}", taken_.load())); }

 private:
  Signal& gate_;
  std::atomic<uint64_t>& taken_;
};

TEST_F(HttpServerTest, ALargeUploadIsHeldBackByItsSink) {
  Signal gate;
  std::atomic<uint64_t> taken = 0;
  add({.method = HttpMethod::put,
       .pattern = "/large",
       .body = Route::Body::streamed,
       .body_bytes_max = uint64_t{1} << 40,
       .open = [&](const HttpRequest&) -> Result<std::unique_ptr<BodySink>> {
         return std::make_unique<GatedSink>(gate, taken);
       }});
  start();
  RawSocket socket(port_);
  socket.send(
      fmt::format("PUT /large HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", stream_bytes()));
  const Bytes piece(1 << 20, 'x');
  uint64_t sent = 0;
  while (sent < ahead_bytes_max) {
    const size_t now = socket.send_some(piece);
    if (now == 0) break;
    sent += now;
  }
  EXPECT_LT(sent, ahead_bytes_max);  // the server stopped reading
  EXPECT_EQ(taken, 0U);
  gate.set();
  while (sent < stream_bytes()) {
    const size_t size = std::min<uint64_t>(piece.size(), stream_bytes() - sent);
    ASSERT_TRUE(socket.send(ByteView(piece).substr(0, size)));
    sent += size;
    ASSERT_LT(sent - taken, ahead_bytes_max);
  }
  EXPECT_TRUE(socket.receive_response().ends_with(fmt::format("\r\n\r\n{}", stream_bytes())));
}

// An event stream: a line per event, and a comment when nothing happened for a while.
struct Feed {
  std::mutex mutex;
  std::vector<std::string> events;
  Waker waker;
  Signal has_started;
  Signal is_gone;

  void publish(std::string event) {
    const std::lock_guard lock(mutex);
    events.push_back(std::move(event));
    waker.wake();
  }
};

class FeedSource final : public BodySource {
 public:
  FeedSource(Feed& feed, uint32_t wait_ms) : feed_(feed), wait_ms_(wait_ms) {}
  ~FeedSource() override { feed_.is_gone.set(); }
  void on_start(Waker waker) override {
    const std::lock_guard lock(feed_.mutex);
    feed_.waker = std::move(waker);
    feed_.has_started.set();
  }
  Result<Chunk> next() override {
    const std::lock_guard lock(feed_.mutex);
    Chunk chunk{.bytes = {}, .then = Chunk::Then::wait, .wait_ms = wait_ms_};
    for (const std::string& event : feed_.events) chunk.bytes += "data: " + event + "\n\n";
    if (feed_.events.empty()) chunk.bytes = ": nothing\n\n";
    feed_.events.clear();
    return chunk;
  }

 private:
  Feed& feed_;
  const uint32_t wait_ms_;
};

class HttpFeedTest : public HttpServerTest {
 protected:
  void start_feed(uint32_t wait_ms) {
    add({.method = HttpMethod::get, .pattern = "/feed", .handle = [this, wait_ms](const auto&) {
           HttpResponse response;
           response.content_type = "text/event-stream";
           response.stream = std::make_unique<FeedSource>(feed_, wait_ms);
           return response;
         }});
    start();
  }
  Feed feed_;
};

TEST_F(HttpFeedTest, SendsEventsWhenWoken) {
  start_feed(600'000);
  RawSocket socket(port_);
  socket.send("GET /feed HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(socket.receive_until(": nothing\n\n").find("Transfer-Encoding: chunked"),
            std::string::npos);
  for (int i = 0; i < 100; ++i) {
    feed_.publish(fmt::format("event {}", i));
    const std::string line = fmt::format("data: event {}\n\n", i);
    ASSERT_TRUE(socket.receive_until(line).ends_with(line));
  }
}

TEST_F(HttpFeedTest, NoEventIsLostWhenManyWakeAtOnce) {
  start_feed(600'000);
  RawSocket socket(port_);
  socket.send("GET /feed HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(feed_.has_started.wait());
  std::vector<std::thread> publishers;
  for (int i = 0; i < 4; ++i) {
    publishers.emplace_back([this, i] {
      for (int j = 0; j < 500; ++j) feed_.publish(fmt::format("<{}.{}>", i, j));
    });
  }
  for (std::thread& publisher : publishers) publisher.join();
  feed_.publish("<last>");
  const std::string all = socket.receive_until("<last>");
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 500; ++j) {
      ASSERT_NE(all.find(fmt::format("<{}.{}>", i, j)), std::string::npos) << i << '.' << j;
    }
  }
}

TEST_F(HttpFeedTest, SendsACommentNowAndThen) {
  start_feed(20);
  RawSocket socket(port_);
  socket.send("GET /feed HTTP/1.1\r\nHost: a\r\n\r\n");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(socket.receive_until(": nothing\n\n").ends_with(": nothing\n\n"));
  }
}

TEST_F(HttpFeedTest, ItsSourceGoesWhenTheClientDoes) {
  start_feed(600'000);
  {
    RawSocket socket(port_);
    socket.send("GET /feed HTTP/1.1\r\nHost: a\r\n\r\n");
    socket.receive_until(": nothing\n\n");
  }
  EXPECT_TRUE(feed_.is_gone.wait());
  feed_.waker.wake();  // of a stream that is gone
  expect_serving();
}

TEST_F(HttpFeedTest, StopEndsIt) {
  start_feed(600'000);
  RawSocket socket(port_);
  socket.send("GET /feed HTTP/1.1\r\nHost: a\r\n\r\n");
  socket.receive_until(": nothing\n\n");
  std::thread stopper([this] { server_->stop(); });
  EXPECT_TRUE(socket.receive_all().ends_with("0\r\n\r\n"));
  socket.close();
  stopper.join();
  EXPECT_TRUE(feed_.is_gone.wait());
  feed_.waker.wake();
}

TEST_F(HttpServerTest, ADownloadWhoseClientLeavesIsBrokenOff) {
  Signal is_gone;
  std::atomic<uint64_t> made = 0;
  class Source final : public BodySource {
   public:
    Source(Signal& gone, std::atomic<uint64_t>& made) : is_gone_(gone), inner_(1ULL << 50, made) {}
    ~Source() override { is_gone_.set(); }
    Result<Chunk> next() override { return inner_.next(); }

   private:
    Signal& is_gone_;
    CountingSource inner_;
  };
  add({.method = HttpMethod::get, .pattern = "/endless", .handle = [&](const HttpRequest&) {
         HttpResponse response = text("");
         response.stream = std::make_unique<Source>(is_gone, made);
         return response;
       }});
  start();
  {
    RawSocket socket(port_);
    socket.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
    for (size_t received = 0; received < (4U << 20);) received += socket.receive().size();
  }
  EXPECT_TRUE(is_gone.wait());
  expect_serving();
}

TEST_F(HttpServerTest, AnUploadWhoseClientLeavesIsNotFinished) {
  struct State {
    Signal has_begun;
    Signal is_gone;
    std::atomic<bool> has_finished = false;
  } state;
  class Sink final : public BodySink {
   public:
    explicit Sink(State& state) : state_(state) {}
    ~Sink() override { state_.is_gone.set(); }
    Status write(ByteView) override {
      state_.has_begun.set();
      return {};
    }
    HttpResponse finish() override {
      state_.has_finished = true;
      return text("");
    }

   private:
    State& state_;
  };
  add({.method = HttpMethod::put,
       .pattern = "/sink",
       .body = Route::Body::streamed,
       .body_bytes_max = 1000,
       .open = [&state](const HttpRequest&) -> Result<std::unique_ptr<BodySink>> {
         return std::make_unique<Sink>(state);
       }});
  start();
  {
    RawSocket socket(port_);
    socket.send("PUT /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nbegin");
    EXPECT_TRUE(state.has_begun.wait());
  }
  EXPECT_TRUE(state.is_gone.wait());
  EXPECT_FALSE(state.has_finished);
}

// --- hostile clients ---

TEST_F(HttpServerTest, HostileInputIsAnsweredAndClosedAndTheServerGoesOn) {
  options_.header_bytes_max = 4096;
  start();
  for (const HostileInput& input : hostile_inputs) {
    RawSocket socket(port_);
    socket.send(input.bytes);
    const std::string response = socket.receive_all();
    EXPECT_EQ(response.substr(9, 3), input.status) << input.name;
    EXPECT_FALSE(socket.was_reset()) << input.name;
  }
  expect_serving();
}

TEST_F(HttpServerTest, AResponseIsReadableAlthoughItsRequestWasNot) {
  start();
  RawSocket socket(port_);
  // Far more than is read before the answer: a plain close would reset, and the answer be lost.
  socket.send("PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n");
  std::thread sender([&socket] { socket.send(Bytes(5'000'000, 'x')); });
  EXPECT_TRUE(socket.receive_until("\r\n\r\n").starts_with("HTTP/1.1 413"));
  sender.join();
}

TEST_F(HttpServerTest, SlowHeadersAndBodiesAreRefused) {
  options_.header_ms = 50;
  options_.body_ms = 50;
  start();
  RawSocket header(port_);
  header.send("GET /hel");
  EXPECT_TRUE(header.receive_all().starts_with("HTTP/1.1 408"));
  RawSocket body(port_);
  body.send("PUT /echo/ HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nab");
  EXPECT_TRUE(body.receive_all().starts_with("HTTP/1.1 408"));
  expect_serving();
}

TEST_F(HttpServerTest, IdleConnectionsAreClosed) {
  options_.idle_ms = 50;
  start();
  RawSocket fresh(port_);
  EXPECT_EQ(fresh.receive_all(), "");
  RawSocket used(port_);
  used.send(get_hello);
  EXPECT_TRUE(used.receive_all().ends_with("hello"));
  expect_serving();
}

TEST_F(HttpServerTest, ClientsThatDoNotReadAreClosed) {
  options_.write_ms = 100;
  Signal is_gone;
  std::atomic<uint64_t> made = 0;
  struct Notice {
    explicit Notice(Signal& signal) : is_gone(signal) {}
    ~Notice() { is_gone.set(); }
    Signal& is_gone;
  };
  class Source final : public BodySource {
   public:
    Source(Signal& gone, std::atomic<uint64_t>& made) : notice_(gone), inner_(1ULL << 50, made) {}
    Result<Chunk> next() override { return inner_.next(); }

   private:
    Notice notice_;
    CountingSource inner_;
  };
  add({.method = HttpMethod::get, .pattern = "/endless", .handle = [&](const HttpRequest&) {
         HttpResponse response = text("");
         response.stream = std::make_unique<Source>(is_gone, made);
         return response;
       }});
  start();
  RawSocket socket(port_, 4096);
  socket.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(is_gone.wait());
  EXPECT_LT(made, ahead_bytes_max);
  expect_serving();
}

TEST_F(HttpServerTest, ConnectionsOverTheLimitAreRefused) {
  options_.connections_max = 2;
  start();
  {
    RawSocket first(port_);
    RawSocket second(port_);
    first.send(get_hello);
    second.send(get_hello);
    EXPECT_TRUE(first.receive_response().ends_with("hello"));
    EXPECT_TRUE(second.receive_response().ends_with("hello"));
    RawSocket third(port_);
    third.send(get_hello);
    EXPECT_TRUE(third.receive_all().starts_with("HTTP/1.1 503"));
    first.send(get_hello);
    EXPECT_TRUE(first.receive_response().ends_with("hello"));
  }
  // Places become free again.
  std::string response;
  while (!response.ends_with("hello")) {
    RawSocket later(port_);
    later.send(get_hello);
    response = later.receive_response();
  }
}

// --- start and stop ---

TEST_F(HttpServerTest, StopLetsRequestsFinish) {
  options_.loops = 1;
  Signal has_begun;
  Signal may_end;
  add({.method = HttpMethod::get,
       .pattern = "/slow",
       .runs = Route::Runs::worker,
       .handle = [&](const HttpRequest&) {
         has_begun.set();
         may_end.wait();
         return text("done");
       }});
  start();
  RawSocket idle(port_);
  idle.send(get_hello);
  idle.receive_response();
  RawSocket busy(port_);
  busy.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(has_begun.wait());
  std::thread stopper([this] { server_->stop(); });
  // Closed: so the stop has begun, and the loop begins with its newest connection.
  EXPECT_EQ(idle.receive_all(), "");
  EXPECT_FALSE(RawSocket(port_).is_connected());
  may_end.set();
  const std::string response = busy.receive_all();
  EXPECT_TRUE(response.ends_with("done")) << response;
  EXPECT_NE(response.find("Connection: close"), std::string::npos);
  busy.close();
  stopper.join();
  server_->stop();  // again
}

TEST_F(HttpServerTest, StopBreaksOffWhatTakesTooLong) {
  const LogCapture log;
  options_.stop_ms = 50;
  Signal has_begun;
  Signal may_end;
  add({.method = HttpMethod::get,
       .pattern = "/slow",
       .runs = Route::Runs::worker,
       .handle = [&](const HttpRequest&) {
         has_begun.set();
         may_end.wait();
         return text("done");
       }});
  start();
  RawSocket busy(port_);
  busy.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(has_begun.wait());
  std::thread stopper([this] { server_->stop(); });
  EXPECT_EQ(busy.receive_all(), "");
  EXPECT_TRUE(busy.was_reset());
  may_end.set();
  stopper.join();
  EXPECT_TRUE(log.contains("broken off"));
}

TEST_F(HttpServerTest, StopUnderLoad) {
  add({.method = HttpMethod::get,
       .pattern = "/worker",
       .runs = Route::Runs::worker,
       .handle = [](const HttpRequest&) { return text("worker"); }});
  start();
  std::atomic<int> answered = 0;
  Signal is_busy;
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      while (true) {
        RawSocket socket(port_);
        if (!socket.is_connected()) return;
        for (int j = 0; j < 20; ++j) {
          socket.send(i % 2 == 0 ? get_hello : "GET /worker HTTP/1.1\r\nHost: a\r\n\r\n");
          const std::string response = socket.receive_response();
          // Whole, or not at all.
          if (response.empty()) break;
          EXPECT_TRUE(response.ends_with("hello") || response.ends_with("worker")) << response;
          if (++answered == 1000) is_busy.set();
        }
      }
    });
  }
  EXPECT_TRUE(is_busy.wait());
  server_->stop();
  for (std::thread& client : clients) client.join();
}

TEST_F(HttpServerTest, ListensOnSeveralAddresses) {
  options_.listeners = {{"127.0.0.1", 0}, {"localhost", 0}, {"", 0}};
  start();
  ASSERT_EQ(server_->ports().size(), 3U);
  port_ = server_->ports()[0];
  expect_serving();
  port_ = server_->ports()[2];
  expect_serving();
  EXPECT_EQ(server_->router().routes().size(), 2U);
}

TEST_F(HttpServerTest, WhatCannotBeServedIsRefusedAtTheStart) {
  start();
  const auto start_with = [this](HttpServerOptions options) {
    return HttpServer::start(Router::make({}).value(), std::move(options), clock_);
  };
  const auto taken = start_with({.listeners = {{"127.0.0.1", port_}}});
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().code, Code::unavailable);
  EXPECT_FALSE(start_with({}).has_value());
  EXPECT_FALSE(start_with({.listeners = {{"no.such.host.invalid", 0}}}).has_value());
  EXPECT_FALSE(start_with({.listeners = {{"127.0.0.1", 0, true}}}).has_value());
  EXPECT_FALSE(
      start_with({.listeners = {{"127.0.0.1", 0}}, .tls = TlsFiles{"/none", "/none"}}).has_value());
}

TEST_F(HttpServerTest, ThrowingWorkersGive500) {
  add({.method = HttpMethod::get,
       .pattern = "/throw",
       .runs = Route::Runs::worker,
       .handle = [](const HttpRequest&) -> HttpResponse { throw std::bad_alloc(); }});
  const LogCapture log;
  start();
  RawSocket socket(port_);
  socket.send("GET /throw HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(socket.receive_response().starts_with("HTTP/1.1 500"));
  socket.send(get_hello);
  EXPECT_TRUE(socket.receive_response().ends_with("hello"));
  EXPECT_TRUE(log.contains("route=/throw"));
}

}  // namespace
}  // namespace trellis
