// Commands out of bytes: RESP arrays of bulks, and lines as people type them.
//
//   RespParser parser;
//   while (parser.next(input, limits) == RespParser::Step::command) {
//     parser.take_args(input, lines, args); input.remove_prefix(parser.consumed());
//   }
//
// Nothing is copied: arguments are views into the input. (The words of a line are the exception,
// for they may be quoted.) What has come of a command is not parsed again when more of it comes.
// Of a command that is too large nothing is kept, so that it may have any size and costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "redis/call.h"

namespace trellis {

// What is over one of these is no RESP: Redis's own limits.
inline constexpr int64_t resp_args_max = 2'147'483'647;
inline constexpr int64_t resp_bulk_bytes_max = 512 * 1024 * 1024;
inline constexpr size_t resp_line_bytes_max = 64 * 1024;
// The same for those who have not said who they are.
inline constexpr int64_t stranger_args_max = 10;
inline constexpr int64_t stranger_bulk_bytes_max = 16 * 1024;

struct RespLimits {
  bool is_stranger = false;
  // What is over one of these is read and dropped: the connection can go on.
  size_t args_max = 1024 * 1024;
  size_t bulk_bytes_max = string_bytes_max;
  size_t command_bytes_max = 64 * 1024 * 1024;
};

class RespParser {
 public:
  enum class Step : uint8_t {
    command,    // one is there: take_args() and consumed()
    nothing,    // an empty one, or a part of one that is too large, to be passed over: consumed()
    more,       // must come first
    too_large,  // one that was dropped: error(), to be answered in its turn, and consumed()
    error,      // error(): the connection cannot go on
  };

  // `input` begins where the last command ended, and has at least what it had the last time.
  Step next(ByteView input, const RespLimits& limits);

  // Appends them to `args`. The words of a line are moved to `lines`, where they stay while outer
  // elements are added.
  using Lines = std::vector<std::vector<Bytes>>;
  void take_args(ByteView input, Lines& lines, std::vector<ByteView>& args);
  size_t consumed() const { return at_; }
  const std::string& error() const { return error_; }  // "ERR ..."
  // Of what is known of a command that is not complete, beside its bytes.
  size_t memory_bytes() const { return spans_.capacity() * sizeof(Span); }

 private:
  struct Span {
    size_t offset;
    size_t size;
  };
  Step fail(std::string text);
  void drop(std::string why);
  bool is_dropping() const { return !error_.empty(); }
  Step next_line(ByteView input);
  Step next_array(ByteView input, const RespLimits& limits);
  Step take_count(ByteView input, const RespLimits& limits);
  Step take_bulk_size(ByteView input, const RespLimits& limits);
  // A decimal number up to CR LF, from `at_` + 1 on.
  Step take_number(ByteView input, const char* too_long, const char* bad, int64_t& number);

  bool is_started_ = false;  // of the command in hand
  bool is_array_ = false;
  bool is_done_ = true;
  bool is_passed_over_ = false;  // up to at_: it is not input any more
  size_t at_ = 0;                // parsed so far
  int64_t args_left_ = -1;       // -1: the count is not known yet
  int64_t bulk_bytes_ = -1;  // of the argument in hand, without what was dropped; -1: not known yet
  std::vector<Span> spans_;
  std::vector<Bytes> words_;  // of a line
  std::string error_;         // of a command that is being dropped: why
};

}  // namespace trellis
