#include "net/http_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/http_server.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

std::string url_of(uint16_t port) { return fmt::format("http://127.0.0.1:{}", port); }

// Answers each connection with the next of its scripts, then closes it: a list of texts, each sent
// when one more request header has come in.
class ScriptedServer {
 public:
  using Script = std::vector<std::string>;

  explicit ScriptedServer(std::vector<Script> scripts)
      : scripts_(std::move(scripts)), fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_, 8), 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~ScriptedServer() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }

  std::string url() const { return url_of(port_); }
  std::string received() const {
    const std::lock_guard lock(mutex_);
    return received_;
  }

 private:
  void run() {
    for (const Script& script : scripts_) {
      const int client = ::accept(fd_, nullptr, nullptr);
      if (client < 0) return;
      size_t seen = 0;
      for (const std::string& text : script) {
        size_t end = received().find("\r\n\r\n", seen);
        while (end == std::string::npos) {
          std::string part(4096, '\0');
          const ssize_t got = ::recv(client, part.data(), part.size(), 0);
          if (got <= 0) break;
          const std::lock_guard lock(mutex_);
          received_ += part.substr(0, static_cast<size_t>(got));
          end = received_.find("\r\n\r\n", seen);
        }
        seen = end + 4;
        ::send(client, text.data(), text.size(), MSG_NOSIGNAL);
      }
      ::close(client);
    }
  }

  const std::vector<Script> scripts_;
  const int fd_;
  uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::string received_;
  std::thread thread_;
};

constexpr std::string_view ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST(HttpClient, SendsWhatItIsGiven) {
  ScriptedServer server(
      std::vector<ScriptedServer::Script>{{"", std::string(ok)}});  // when the body has come too
  HttpClient client = HttpClient::connect(server.url() + "/base/").value();
  const HttpAnswer answer = client
                                .request({.method = HttpMethod::put,
                                          .target = "/a?b=c",
                                          .headers = {{"X-Y", "z"}},
                                          .body = "body\r\n\r\n"})
                                .value();
  EXPECT_EQ(answer.status, 200U);
  EXPECT_EQ(answer.body, "ok");
  EXPECT_EQ(answer.header("content-length"), "2");
  EXPECT_EQ(server.received().substr(0, server.received().find("Host")),
            "PUT /base/a?b=c HTTP/1.1\r\n");
  EXPECT_NE(server.received().find("\r\nX-Y: z\r\nContent-Length: 8\r\n\r\nbody"),
            std::string::npos);
}

TEST(HttpClient, TakesAllFormsOfAnswers) {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  ScriptedServer server(
      {{chunked + "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: u\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
        "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nto the end"}});
  HttpClient client = HttpClient::connect(server.url()).value();
  EXPECT_EQ(client.request({.target = "/"}).value().body, "abcde");
  EXPECT_EQ(client.request({.target = "/"}).value().status, 204U);
  EXPECT_EQ(client.request({.target = "/"}).value().body, "none");
  EXPECT_EQ(client.request({.method = HttpMethod::head, .target = "/"}).value().body, "");
  EXPECT_EQ(client.request({.target = "/"}).value().body, "to the end");
}

TEST(HttpClient, AsksAgainOnlyWhereThatIsSafe) {
  {
    ScriptedServer server({{std::string(ok)}, {std::string(ok)}});
    HttpClient client = HttpClient::connect(server.url()).value();
    EXPECT_EQ(client.request({.target = "/"}).value().body, "ok");
    EXPECT_EQ(client.request({.target = "/"}).value().body, "ok");  // on a new connection
  }
  const HttpCall unsafe_calls[] = {
      {.method = HttpMethod::post, .target = "/"},
      {.method = HttpMethod::patch, .target = "/"},
      {.method = HttpMethod::put, .target = "/", .headers = {{"If-Match", "\"a\""}}},
      {.method = HttpMethod::del, .target = "/", .headers = {{"if-none-match", "*"}}},
  };
  for (const HttpCall& call : unsafe_calls) {
    ScriptedServer server({{std::string(ok), ""}, {std::string(ok)}});
    HttpClient client = HttpClient::connect(server.url()).value();
    EXPECT_EQ(client.request({.target = "/"}).value().body, "ok");
    const Result<HttpAnswer> answer = client.request(call);
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, Code::maybe);
    EXPECT_EQ(client.request({.target = "/"}).value().body, "ok");
  }
  // Some of an answer came: asking again would be another request.
  ScriptedServer server({{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"}, {std::string(ok)}});
  HttpClient client = HttpClient::connect(server.url()).value();
  const Result<HttpAnswer> answer = client.request({.target = "/"});
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, Code::unavailable);
}

TEST(HttpClient, AnswersThatMakeNoSenseAreErrors) {
  for (const std::string_view bad :
       {"garbage\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 xx OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    ScriptedServer server({{std::string(bad)}});
    HttpClient client = HttpClient::connect(server.url()).value();
    const Result<HttpAnswer> answer = client.request({.target = "/"});
    ASSERT_FALSE(answer.has_value()) << bad;
    EXPECT_EQ(answer.error().code, Code::corrupt) << bad;
  }
  ScriptedServer endless({{"HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x')}});
  HttpClient client = HttpClient::connect(endless.url()).value();
  EXPECT_FALSE(client.request({.target = "/"}).has_value());
}

TEST(HttpClient, LargeAnswersAreRefusedUnlessReceivedInPieces) {
  const std::string large =
      "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x');
  ScriptedServer server({{large}, {large}});
  HttpClient client = HttpClient::connect(server.url(), {.answer_bytes_max = 999}).value();
  EXPECT_EQ(client.request({.target = "/"}).error().code, Code::too_large);
  size_t received = 0;
  const HttpAnswer answer = client
                                .request({.target = "/",
                                          .receive =
                                              [&received](const HttpAnswer& head, ByteView piece) {
                                                EXPECT_EQ(head.status, 200U);
                                                received += piece.size();
                                                return Status();
                                              }})
                                .value();
  EXPECT_EQ(received, 1000U);
  EXPECT_EQ(answer.body, "");
}

TEST(HttpClient, ErrorAnswersAreNotReceivedInPieces) {
  ScriptedServer server({{"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nwhy"}});
  HttpClient client = HttpClient::connect(server.url()).value();
  const HttpAnswer answer = client
                                .request({.target = "/",
                                          .receive = [](const HttpAnswer&, ByteView) -> Status {
                                            return Error{Code::invalid, "not for this"};
                                          }})
                                .value();
  EXPECT_EQ(answer.body, "why");
}

TEST(HttpClient, AnErrorOfACallbackEndsTheCall) {
  ScriptedServer server({{std::string(ok)}, {"", ""}, {std::string(ok)}});
  HttpClient client = HttpClient::connect(server.url()).value();
  EXPECT_EQ(client
                .request({.target = "/",
                          .receive = [](const HttpAnswer&, ByteView) -> Status {
                            return Error{Code::no_space, "full"};
                          }})
                .error()
                .code,
            Code::no_space);
  EXPECT_EQ(client
                .request({.method = HttpMethod::put,
                          .target = "/",
                          .send = []() -> Result<std::optional<Bytes>> {
                            return Error{Code::corrupt, "bad file"};
                          }})
                .error()
                .code,
            Code::corrupt);
  EXPECT_EQ(client.request({.target = "/"}).value().body, "ok");
}

TEST(HttpClient, WhatNobodyAnswersTimesOut) {
  ScriptedServer server(std::vector<ScriptedServer::Script>{{"", "unused"}});
  HttpClient client = HttpClient::connect(server.url(), {.timeout_ms = 50}).value();
  const Result<HttpAnswer> answer = client.request({.target = "/"});
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, Code::unavailable);
}

TEST(HttpClient, BadCallsAreRefused) {
  ScriptedServer server({{std::string(ok)}});
  HttpClient client = HttpClient::connect(server.url()).value();
  for (const std::string_view target : {"", "a", "/a b", "/a\r\nX: y", "http://x/"}) {
    EXPECT_EQ(client.request({.target = target}).error().code, Code::invalid) << target;
  }
  EXPECT_EQ(client.request({.headers = {{"X", "a\r\nb"}}}).error().code, Code::invalid);
  EXPECT_EQ(client.request({.headers = {{"X:", "a"}}}).error().code, Code::invalid);
  EXPECT_EQ(HttpClient::connect("nonsense").error().code, Code::invalid);
  EXPECT_EQ(HttpClient::connect("http://127.0.0.1:1").error().code, Code::unavailable);
  EXPECT_EQ(HttpClient::connect("http://no.such.host.invalid").error().code, Code::unavailable);
}

// --- with the real server ---

class HttpClientServerTest : public ::testing::Test {
 protected:
  class Sink final : public BodySink {
   public:
    Status write(ByteView piece) override {
      bytes_ += piece.size();
      if (bytes_ > 100'000'000) return Error{Code::too_large, "too much"};
      return {};
    }
    HttpResponse finish() override {
      HttpResponse response;
      response.body = fmt::format("{}", bytes_);
      return response;
    }

   private:
    uint64_t bytes_ = 0;
  };
  class Source final : public BodySource {
   public:
    Result<Chunk> next() override {
      return Chunk{Bytes(100'000, 'x'), ++pieces_ == 100 ? Chunk::Then::end : Chunk::Then::more};
    }

   private:
    int pieces_ = 0;
  };

  HttpClientServerTest() {
    Router router =
        Router::make({{.method = HttpMethod::get,
                       .pattern = "/peer",
                       .handle =
                           [](const HttpRequest& request) {
                             HttpResponse response;
                             response.body = request.peer;
                             return response;
                           }},
                      {.method = HttpMethod::put,
                       .pattern = "/sink",
                       .body = Route::Body::streamed,
                       .body_bytes_max = uint64_t{1} << 40,
                       .open = [](const HttpRequest&) -> Result<std::unique_ptr<BodySink>> {
                         return std::make_unique<Sink>();
                       }},
                      {.method = HttpMethod::get,
                       .pattern = "/source",
                       .handle =
                           [](const HttpRequest&) {
                             HttpResponse response;
                             response.stream = std::make_unique<Source>();
                             return response;
                           }}})
            .value();
    HttpServerOptions options;
    options.listeners = {{"127.0.0.1", 0}};
    options.sweep_ms = 10;
    server_ = HttpServer::start(std::move(router), std::move(options), clock_).value();
    url_ = url_of(server_->ports()[0]);
  }

  SystemClock clock_;
  std::unique_ptr<HttpServer> server_;
  std::string url_;
};

TEST_F(HttpClientServerTest, KeepsItsConnection) {
  HttpClient client = HttpClient::connect(url_).value();
  const Bytes peer = client.request({.target = "/peer"}).value().body;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(client.request({.target = "/peer"}).value().body, peer);
  }
  EXPECT_EQ(client.request({.target = "/none"}).value().status, 404U);
  EXPECT_EQ(client.request({.target = "/peer"}).value().body, peer);
}

TEST_F(HttpClientServerTest, StreamsBothWays) {
  HttpClient client = HttpClient::connect(url_).value();
  int pieces = 0;
  const HttpAnswer uploaded = client
                                  .request({.method = HttpMethod::put,
                                            .target = "/sink",
                                            .send = [&pieces]() -> Result<std::optional<Bytes>> {
                                              if (++pieces > 100) return std::nullopt;
                                              return Bytes(pieces % 7 == 0 ? 0 : 100'000, 'x');
                                            }})
                                  .value();
  EXPECT_EQ(uploaded.body, "8600000");
  uint64_t received = 0;
  EXPECT_EQ(client
                .request({.target = "/source",
                          .receive =
                              [&received](const HttpAnswer&, ByteView piece) {
                                received += piece.size();
                                return Status();
                              }})
                .value()
                .status,
            200U);
  EXPECT_EQ(received, 10'000'000U);
}

TEST_F(HttpClientServerTest, AnEarlyAnswerStopsTheUpload) {
  HttpClient client = HttpClient::connect(url_).value();
  const HttpAnswer answer = client
                                .request({.method = HttpMethod::put,
                                          .target = "/sink",
                                          .send = []() -> Result<std::optional<Bytes>> {
                                            return Bytes(1'000'000, 'x');  // for ever
                                          }})
                                .value();
  EXPECT_EQ(answer.status, 413U);
  EXPECT_EQ(client.request({.target = "/peer"}).value().status, 200U);
}

}  // namespace
}  // namespace trellis
