// Sizes as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace trellis {

std::string human_bytes(uint64_t bytes);  // "17 B", "1.2 MiB"

}  // namespace trellis
