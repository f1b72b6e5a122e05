#include "base/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace trellis {

uint64_t machine_memory_bytes() {
  uint64_t bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  // A container sees its own group at the root. "max" is no number: nothing is read.
  uint64_t limit_bytes = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit_bytes && limit_bytes > 0)
    bytes = std::min(bytes, limit_bytes);
  return bytes;
}

}  // namespace trellis
