// What a connection has still to send, and the bytes of a response's header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "net/http_types.h"

namespace trellis {

// A queue of bytes in segments. Many small responses share a segment; large bodies are segments of
// their own, moved and never copied.
class OutputQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Of all that was ever consumed: tells whether the other side takes anything.
  uint64_t consumed() const { return consumed_; }

  void append(ByteView bytes);
  void append_body(Bytes&& body);

  // The first bytes, as views for one gathering write; gives how many views. They stay valid until
  // they are consumed, whatever is appended.
  size_t peek(std::span<ByteView> views);
  void consume(size_t bytes);
  void clear();

 private:
  Bytes& open_segment(size_t bytes);

  std::list<Bytes> segments_;
  size_t front_consumed_ = 0;  // of the first segment
  size_t size_ = 0;
  uint64_t consumed_ = 0;
  bool is_last_open_ = false;  // may be appended to: nobody looks at it
};

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
