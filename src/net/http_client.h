// A small blocking HTTP/1.1 client, for the command line and for tests.
//
//   TRY_ASSIGN(HttpClient client, HttpClient::connect("http://127.0.0.1:8080"));
//   TRY_ASSIGN(HttpAnswer answer, client.request({.target = "/v1/keyspaces"}));
//
// Keeps its connection from request to request. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "net/http_types.h"

namespace trellis {

struct HttpAnswer {
  unsigned status = 0;
  std::vector<HttpHeader> headers = {};
  Bytes body = {};

  // The first of that name, whatever the case; "" if there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpCall {
  HttpMethod method = HttpMethod::get;
  std::string_view target = "/";         // path and query, encoded
  std::vector<HttpHeader> headers = {};  // Host, Content-Length and Connection are the client's
  ByteView body = {};
  // If set, it makes the body piece by piece, sent in chunks: a piece, or nothing at the end. Not
  // asked for more once the server has answered. An error of it ends the call.
  std::function<Result<std::optional<Bytes>>()> send = {};
  // If set, it gets the body of a 2xx answer piece by piece, and HttpAnswer::body stays empty. The
  // answer has its status and headers already. An error of it ends the call.
  std::function<Status(const HttpAnswer& answer, ByteView piece)> receive = {};
};

struct HttpClientOptions {
  uint32_t timeout_ms = 30'000;                // without any progress
  size_t answer_bytes_max = 64 * 1024 * 1024;  // of a body that is not received in pieces
  std::string ca_file = {};                    // PEM; "": the certificates that the machine trusts
  bool insecure = false;                       // takes any certificate
};

class HttpClient {
 public:
  // http://host:port or https://host:port; a path in it goes before every target. Fails if nobody
  // listens there: code unavailable.
  static Result<HttpClient> connect(std::string_view base_url, HttpClientOptions options = {});
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  // Any complete answer is a value, whatever its status. If a kept connection turns out closed
  // before a byte of the answer came, and the method may be repeated (all but POST and PATCH, and
  // no `send`), it connects and asks once more. Code maybe: the request was sent, but no complete
  // answer came; unavailable: it was not sent, or it is one that changes nothing.
  Result<HttpAnswer> request(const HttpCall& call);

 private:
  struct Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trellis
