// One entry point per family of decoders, for libFuzzer (fuzz/) and for seeded random tests. Each
// takes any bytes and aborts if a decoder accepts what its encoder would not have written.
#pragma once

#include <string_view>

#include "base/bytes.h"

namespace trellis {

struct CodecFuzzTarget {
  std::string_view name;
  void (*run)(ByteView input);
};

void fuzz_key(ByteView input);             // explain_key and every kind's own decoder
void fuzz_address(ByteView input);         // addresses, granules, range addressing
void fuzz_redis_metadata(ByteView input);  // metadata values
void fuzz_redis_stream(ByteView input);    // stream entries and group records
void fuzz_text(ByteView input);            // hex, quotes, field=value

inline constexpr CodecFuzzTarget codec_fuzz_targets[] = {
    {"key", fuzz_key},
    {"address", fuzz_address},
    {"redis_metadata", fuzz_redis_metadata},
    {"redis_stream", fuzz_redis_stream},
    {"text", fuzz_text},
};

}  // namespace trellis
