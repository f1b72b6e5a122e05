// How much memory there is for this process.
#pragma once

#include <cstdint>

namespace trellis {

// Of the machine, or of the container that the process runs in if that may have less.
uint64_t machine_memory_bytes();

}  // namespace trellis
