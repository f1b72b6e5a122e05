// Redis's patterns: * ? [a-z] [^x] and \ to take the next one as it is.
#pragma once

#include "base/bytes.h"

namespace trellis {

// Takes time in proportion to the product of both lengths at worst.
bool glob_matches(ByteView pattern, ByteView text);
// What every text that matches begins with.
Bytes glob_prefix(ByteView pattern);

}  // namespace trellis
