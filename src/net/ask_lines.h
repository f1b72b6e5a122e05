// A question to another server over plain TCP, whose answer is so many lines.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

struct LinesAsked {
  std::string host;
  uint16_t port = 0;
  ByteView request = {};
  size_t lines = 1;         // each ends with "\r\n"
  uint32_t timeout_ms = 0;  // to connect, and again for all else
};

// Whole lines, fewer than asked for if the other side stops, is late, or has a line of over 64 KiB.
// An error if it cannot be reached.
Result<std::string> ask_lines(const LinesAsked& asked);

}  // namespace trellis
