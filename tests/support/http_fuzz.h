// Entry points as in codec_fuzz.h for what comes over HTTP. Each takes any bytes and aborts if an
// oracle fails.
#pragma once

#include <string_view>

#include "base/bytes.h"

namespace trellis {

struct HttpFuzzTarget {
  std::string_view name;
  void (*run)(ByteView input);
};

// A connection of the server: what it answers, and how often, must not depend on how the bytes are
// split or when workers get to run. If it did, a proxy and the server could disagree on where a
// request ends. The first four bytes choose the splits.
void fuzz_http(ByteView input);

// The client's side, targets, queries and URLs.
void fuzz_http_text(ByteView input);

inline constexpr HttpFuzzTarget http_fuzz_targets[] = {
    {"http", fuzz_http},
    {"http_text", fuzz_http_text},
};

}  // namespace trellis
