// What SCAN and HSCAN, SSCAN and ZSCAN share.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// As strtoul reads it, like Redis: nothing at all is 0, and a sign may be there.
Result<uint64_t> parse_cursor(ByteView text);

// How many bytes both begin with.
size_t shared_bytes(ByteView a, ByteView b);

}  // namespace trellis
