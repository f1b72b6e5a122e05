// Commands out of bytes: RESP arrays of bulks, and lines as people type them.
//
//   RespParser parser(limits);
//   while (parser.next(input) == RespParser::Step::command) {
//     use(parser.args(input, lines)); input.remove_prefix(parser.consumed());
//   }
//
// Nothing is copied: arguments are views into the input. (The words of a line are the exception,
// for they may be quoted.) What has come of a command is not parsed again when more of it comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace trellis {

struct RespLimits {
  size_t args_max = 2'147'483'647;
  size_t bulk_bytes_max = 512 * 1024 * 1024;
  size_t line_bytes_max = 64 * 1024;
};
// For those who have not said who they are.
inline constexpr RespLimits stranger_limits{.args_max = 10, .bulk_bytes_max = 16 * 1024};

class RespParser {
 public:
  enum class Step : uint8_t {
    command,  // one is there: args() and consumed()
    nothing,  // an empty one, to be passed over: consumed()
    more,     // must come first
    error,    // error(): the connection cannot go on
  };

  // `input` begins where the last command ended, and has at least what it had the last time.
  Step next(ByteView input, const RespLimits& limits);

  // The words of a line are moved to `lines`, where they stay while outer elements are added.
  using Lines = std::vector<std::vector<Bytes>>;
  std::vector<ByteView> args(ByteView input, Lines& lines);
  size_t consumed() const { return at_; }
  // "Protocol error: ...", without the kind in front.
  const std::string& error() const { return error_; }
  // How long the input must be before asking again is worth it.
  size_t wanted() const { return wanted_; }

 private:
  struct Span {
    size_t offset;
    size_t size;
  };
  Step fail(std::string text);
  Step next_line(ByteView input, const RespLimits& limits);
  Step next_array(ByteView input, const RespLimits& limits);
  Step take_count(ByteView input, const RespLimits& limits);
  // A decimal number up to CR LF, from `at_` + 1 on.
  Step take_number(ByteView input, const char* too_long, const char* bad, int64_t& number);

  bool is_started_ = false;  // of the command in hand
  bool is_array_ = false;
  bool is_done_ = true;
  size_t at_ = 0;            // parsed so far
  int64_t args_left_ = -1;   // -1: the count is not known yet
  int64_t bulk_bytes_ = -1;  // of the argument in hand; -1: not known yet
  std::vector<Span> spans_;
  std::vector<Bytes> words_;  // of a line
  size_t wanted_ = 0;
  std::string error_;
};

}  // namespace trellis
