// Counts what this thread allocates: the benchmark replaces operator new of the whole program, and
// with it that of RocksDB.
#pragma once

#include <cstdint>

namespace trellis {

uint64_t allocations_of_this_thread();

}  // namespace trellis
