#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "support/raw_socket.h"
#include "support/test_certificate.h"

namespace trellis {
namespace {

class HttpTlsTest : public ::testing::Test {
 protected:
  HttpTlsTest() { write_certificate(cert_, key_, 1); }

  void start(HttpServerOptions options = {}) {
    Router router = Router::make({{.method = HttpMethod::get,
                                   .pattern = "/hello",
                                   .handle =
                                       [](const HttpRequest& request) {
                                         HttpResponse response;
                                         response.body = request.secure ? "secure" : "plain";
                                         return response;
                                       }},
                                  {.method = HttpMethod::put,
                                   .pattern = "/echo",
                                   .body = Route::Body::buffered,
                                   .body_bytes_max = 10'000'000,
                                   .runs = Route::Runs::worker,
                                   .handle =
                                       [](const HttpRequest& request) {
                                         HttpResponse response;
                                         response.body = request.body;
                                         return response;
                                       }}})
                        .value();
    options.listeners = {{"127.0.0.1", 0, true}, {"127.0.0.1", 0}};
    options.tls = TlsFiles{cert_, key_};
    options.loops = 2;
    options.sweep_ms = 10;
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::start(std::move(router), std::move(options), clock_);
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(*server);
    port_ = server_->ports()[0];
  }

  Result<HttpAnswer> get(HttpClientOptions options, const std::string& host = "localhost") {
    TRY_ASSIGN(
        HttpClient client,
        HttpClient::connect("https://" + host + ":" + std::to_string(port_), std::move(options)));
    return client.request({.target = "/hello"});
  }
  Result<HttpAnswer> get() { return get({.ca_file = cert_}); }

  // The serial number of the certificate that a new connection is shown, at up to this version.
  long served_serial(int version_max = TLS1_3_VERSION) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    SSL_CTX_set_max_proto_version(context.get(), version_max);
    SSL_CTX_set_security_level(context.get(), 0);
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
    BIO* bio = BIO_new_connect(("127.0.0.1:" + std::to_string(port_)).c_str());
    SSL_set_bio(ssl.get(), bio, bio);
    if (SSL_connect(ssl.get()) != 1) return -1;
    const std::unique_ptr<X509, decltype(&X509_free)> cert(SSL_get1_peer_certificate(ssl.get()),
                                                           X509_free);
    return ASN1_INTEGER_get(X509_get_serialNumber(cert.get()));
  }

  TempFolder folder_;
  const std::string cert_ = folder_.file("cert.pem");
  const std::string key_ = folder_.file("key.pem");
  FakeClock clock_{1'700'000'000'000};
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
};

TEST_F(HttpTlsTest, ServesBoth) {
  start();
  EXPECT_EQ(get().value().body, "secure");
  EXPECT_EQ(get({.ca_file = cert_}, "127.0.0.1").value().body, "secure");
  HttpClient plain =
      HttpClient::connect("http://127.0.0.1:" + std::to_string(server_->ports()[1])).value();
  EXPECT_EQ(plain.request({.target = "/hello"}).value().body, "plain");
}

TEST_F(HttpTlsTest, LargeBodiesPass) {
  start();
  HttpClient client =
      HttpClient::connect("https://localhost:" + std::to_string(port_), {.ca_file = cert_}).value();
  Bytes body(5'000'000, 'x');
  for (size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>(i / 1000);
  for (int i = 0; i < 3; ++i) {
    const Result<HttpAnswer> answer =
        client.request({.method = HttpMethod::put, .target = "/echo", .body = body});
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_TRUE(answer->body == body);
  }
}

TEST_F(HttpTlsTest, TheClientTrustsNobodyByDefault) {
  start();
  const Result<HttpAnswer> unknown = get({});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, Code::unavailable);
  EXPECT_EQ(get({.insecure = true}).value().body, "secure");
  // A certificate for another name.
  write_certificate(folder_.file("other.pem"), folder_.file("other_key.pem"), 9);
  EXPECT_FALSE(get({.ca_file = folder_.file("other.pem")}).has_value());
  EXPECT_FALSE(get({.ca_file = folder_.file("none.pem")}).has_value());
  EXPECT_FALSE(get({.ca_file = cert_}, "127.0.0.2").has_value());
}

TEST_F(HttpTlsTest, OldVersionsAreRefused) {
  start();
  EXPECT_EQ(served_serial(TLS1_3_VERSION), 1);
  EXPECT_EQ(served_serial(TLS1_2_VERSION), 1);
  EXPECT_EQ(served_serial(TLS1_1_VERSION), -1);
}

TEST_F(HttpTlsTest, NewCertificatesAreLoaded) {
  start();
  EXPECT_EQ(served_serial(), 1);
  write_certificate(cert_, key_, 2);
  EXPECT_EQ(served_serial(), 1);  // not looked at yet
  clock_.advance_ms(1000);
  EXPECT_EQ(served_serial(), 2);
  EXPECT_EQ(get().value().body, "secure");
}

TEST_F(HttpTlsTest, BadCertificatesAreToldOnceAndTheOldStay) {
  start();
  const LogCapture log;
  write_certificate(cert_, folder_.file("key_to_come.pem"), 2);  // not yet with its key
  for (int i = 0; i < 3; ++i) {
    clock_.advance_ms(1000);
    EXPECT_EQ(served_serial(), 1);
  }
  EXPECT_EQ(log.lines().size(), 1U);
  EXPECT_TRUE(log.contains("cannot be used"));
  std::filesystem::remove(cert_);
  clock_.advance_ms(1000);
  EXPECT_EQ(served_serial(), 1);
  EXPECT_EQ(log.lines().size(), 2U);
  write_certificate(cert_, key_, 3);
  clock_.advance_ms(1000);
  EXPECT_EQ(served_serial(), 3);
}

TEST_F(HttpTlsTest, WhoDoesNotShakeHandsIsClosed) {
  start({.header_ms = 1000});
  RawSocket plain(port_);
  plain.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(plain.receive_all().find("HTTP/"), std::string::npos);
  RawSocket silent(port_);
  std::atomic<bool> is_closed = false;
  std::thread receiver([&silent, &is_closed] {
    EXPECT_EQ(silent.receive_all(), "");
    is_closed = true;
  });
  // The clock counts from when the connection is accepted, which is at some moment.
  while (!is_closed) {
    clock_.advance_ms(1001);
    EXPECT_EQ(get().value().body, "secure");
  }
  receiver.join();
  EXPECT_FALSE(silent.was_reset());
}

TEST_F(HttpTlsTest, StopDoesNotWaitForIdleClients) {
  start();
  HttpClient client =
      HttpClient::connect("https://localhost:" + std::to_string(port_), {.ca_file = cert_}).value();
  EXPECT_EQ(client.request({.target = "/hello"}).value().body, "secure");
  server_->stop();
  EXPECT_FALSE(client.request({.target = "/hello"}).has_value());
}

}  // namespace
}  // namespace trellis
