// The bytes of a response: its header, and the lines around chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "net/http_types.h"
#include "net/output_queue.h"

namespace trellis {

// The Date header's text, made once a second. One thread.
class DateText {
 public:
  std::string_view at(uint64_t unix_ms);

 private:
  uint64_t second_ = UINT64_MAX;
  std::string text_;
};

// How a response's body is delimited.
struct BodyFraming {
  enum class Kind : uint8_t { none, length, chunked, until_close };
  Kind kind = Kind::none;
  uint64_t length = 0;  // for Kind::length
};

struct HeadOptions {
  BodyFraming framing;
  bool is_http11 = true;
  bool keep_alive = true;
  std::string_view date;
};

// Appends the status line and header, with the empty line.
void append_head(OutputQueue& out, const HttpResponse& response, const HeadOptions& options);

// Why the headers of a response cannot be sent, if so.
std::optional<std::string> bad_header(const HttpResponse& response);

std::string_view reason_phrase(unsigned status);

// A chunk's size line is written before its bytes, and CR LF after them.
void append_chunk(OutputQueue& out, Bytes&& bytes);  // REQUIRES: not empty
void append_last_chunk(OutputQueue& out);

}  // namespace trellis
