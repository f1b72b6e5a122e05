// An entry point as in codec_fuzz.h for what comes over Redis's protocol. It takes any bytes and
// aborts if an oracle fails.
#pragma once

#include "base/bytes.h"

namespace trellis {

// A connection of the server with a store in memory behind it: what it answers must not depend on
// how the bytes are split, which decides what runs together. The first two bytes choose the splits.
void fuzz_resp(ByteView input);

}  // namespace trellis
