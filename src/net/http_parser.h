// Beast's HTTP/1 parser, and the rules that it leaves to its users, behind plain types.
//
// A header is parsed only when it is there whole, so that what is found does not depend on how the
// bytes came in. After that the body is taken from the bytes behind it, step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "net/http_types.h"

namespace trellis {

// Why a message is refused. The connection cannot be used any more: nobody knows where the next
// message would start.
struct HttpProblem {
  unsigned status;
  std::string_view message;  // static text
};

// Finds the empty line that ends a header: the size of the header with it, or nothing yet.
// `searched` is for the caller to keep between calls, 0 at first: no byte is looked at twice.
std::optional<size_t> find_head_end(ByteView in, size_t& searched);

struct BodyStep {
  size_t consumed = 0;  // 0, and not done: needs more bytes than these
  ByteView body;        // of the bytes consumed, those that are body
  bool is_done = false;
  std::optional<HttpProblem> problem;
};

struct RequestFraming {
  bool is_http11 = true;
  bool keep_alive = true;
  bool is_chunked = false;
  uint64_t content_length = 0;
  bool expects_continue = false;

  bool has_body() const { return is_chunked || content_length > 0; }
};

class RequestParser {
 public:
  RequestParser();
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;

  // `head` is one whole header with its empty line. Fills what the header says of `request`, as
  // views into `head`.
  std::optional<HttpProblem> parse_head(ByteView head, HttpRequest& request,
                                        RequestFraming& framing);

  // Before the first parse_body. A chunk over what is left of the limit is a problem with 413.
  void limit_body(uint64_t bytes_max);

  // `in` is not empty and starts at the first byte that was not consumed. REQUIRES: has_body(), and
  // no step was done or had a problem.
  BodyStep parse_body(ByteView in);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

struct AnswerFraming {
  unsigned status = 0;
  bool keep_alive = true;
  bool is_done = false;        // there is no body
  bool ends_with_eof = false;  // the body ends where the connection does
};

class AnswerParser {
 public:
  AnswerParser();
  ~AnswerParser();
  AnswerParser(AnswerParser&&) noexcept;
  AnswerParser& operator=(AnswerParser&&) noexcept;

  // As for requests. `to_head`: the request was HEAD, so that no body follows.
  std::optional<HttpProblem> parse_head(ByteView head, bool to_head,
                                        std::vector<HttpHeader>& headers, AnswerFraming& framing);
  BodyStep parse_body(ByteView in);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trellis
