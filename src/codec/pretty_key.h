// Any key in words: the pretty form that CockroachDB prints for its own keys, and ours in the same
// manner. What is not a key of the map is quoted.
#pragma once

#include <string>

#include "base/bytes.h"

namespace trellis {

std::string pretty_key(ByteView key);

}  // namespace trellis
