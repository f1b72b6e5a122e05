// What an HTTP handler takes and gives. Names no type of the library that speaks the protocol.
//
// A handler is a function from a request to a response. Small bodies are whole byte strings; large
// ones pass through a BodySink (upload) or a BodySource (download) piece by piece, so that no body
// needs more memory than one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

enum class HttpMethod : uint8_t { get, head, post, put, patch, del, options };
inline constexpr size_t http_method_count = 7;

std::string_view to_string(HttpMethod method);  // "GET", "DELETE"

// Of a request as sent. Names compare without regard to case.
struct HttpHeaderView {
  std::string_view name;
  std::string_view value;
};

// Of a response, and of the client's requests.
struct HttpHeader {
  std::string name;
  std::string value;
};

// Views live until the handler returns; for a streamed body until the sink is destroyed.
struct HttpRequest {
  HttpMethod method = HttpMethod::get;
  std::string_view target;  // as sent
  std::string_view path;    // without the query, still percent-encoded
  std::string_view query;   // without the '?', still encoded
  // Of the route's pattern, in order, percent-decoded: any bytes.
  std::vector<std::string> captures;
  std::vector<HttpHeaderView> headers;  // in the order sent, without space around values
  ByteView body;                        // whole body of a buffered route
  std::string_view peer;                // "127.0.0.1:51234", "[::1]:51234"
  bool peer_is_loopback = false;
  bool secure = false;  // came over TLS

  // The first of that name, whatever the case; "" if there is none.
  std::string_view header(std::string_view name) const;
};

// Decoded value of a query parameter; absent if it is not there. An error for bad
// percent-encoding in the query and for a parameter that is given twice. As forms do, '+' is a
// space; a parameter without '=' has the value "".
Result<std::optional<std::string>> query_value(const HttpRequest& request, std::string_view name);

// The decoded names of all parameters, in order, so that a handler can refuse those it does not
// know. Empty parts ("a&&b") are skipped.
Result<std::vector<std::string>> query_names(const HttpRequest& request);

// Wakes a response stream that waits. A small value that any thread may copy, call and keep for as
// long as it likes: when the stream is gone, wake() does nothing.
class WakeTarget;
class Waker {
 public:
  Waker() = default;
  explicit Waker(std::weak_ptr<WakeTarget> target) : target_(std::move(target)) {}
  // A wake while next() runs is kept: next() is then called once more. Never blocks for long and
  // never runs next() itself, so it may be called with locks held.
  void wake() const;

 private:
  std::weak_ptr<WakeTarget> target_;
};

struct Chunk {
  enum class Then : uint8_t {
    more,   // call next() when the client has taken these bytes
    wait,   // nothing more now: call next() when woken, or after wait_ms without
    pause,  // the same, but without what follows the body is not whole
    end,    // these were the last
  };
  Bytes bytes = {};  // may be empty
  Then then = Then::end;
  // So that an event stream can send a comment to keep its connection. Kept to within the server's
  // sweep_ms.
  uint32_t wait_ms = 15'000;
};

// A response body made piece by piece. All calls and the destructor run on worker threads, one at a
// time. next() is not called before what it gave last was handed to the kernel, so a client that
// does not read stops the source. Destroyed early when the client leaves or the server stops; that
// ends the body of one that waits, and breaks off any other that is not done in time.
class BodySource {
 public:
  virtual ~BodySource() = default;
  // Once, before the first next().
  virtual void on_start(Waker waker) { (void)waker; }
  // An error before the first piece becomes an error response, see http_status(); a later one
  // breaks the connection off, so that the client sees that the body is not whole.
  virtual Result<Chunk> next() = 0;
};

// `status` 204 and 304, and answers to HEAD, are sent without a body.
struct HttpResponse {
  unsigned status = 200;
  std::string_view content_type = {};  // static text; "" sends none
  // Without Content-Length, Transfer-Encoding, Connection and Date, which are the server's; with
  // Content-Type only if `content_type` is empty. One that is not allowed makes it a 500.
  std::vector<HttpHeader> headers = {};
  Bytes body = {};
  // If set, it makes the body, and `body` must be empty.
  std::unique_ptr<BodySource> stream = {};
  // Of the stream, if known: sent as Content-Length instead of chunks. A source that gives more or
  // less breaks the connection off. An answer to HEAD may have it without a stream.
  std::optional<uint64_t> stream_bytes = {};
};

// A request body taken piece by piece. All calls and the destructor run on worker threads, one at a
// time. A sink that is destroyed without finish() was broken off: by its own error, by a client
// that left or was too slow, or by the end of the server.
class BodySink {
 public:
  virtual ~BodySink() = default;
  // An error ends the request with an error response, see http_status(), and the connection.
  virtual Status write(ByteView piece) = 0;
  // After the last piece, at most once.
  virtual HttpResponse finish() = 0;
};

// The status that net answers with when a sink or source fails: too_large 413, not_found 404 ...
unsigned http_status(Code code);

}  // namespace trellis
