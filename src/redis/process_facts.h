// What the operating system tells of this process.
#pragma once

#include <cstdint>

namespace trellis {

struct CpuSeconds {
  double system = 0;
  double user = 0;
};

uint64_t process_rss_bytes();
CpuSeconds process_cpu();

}  // namespace trellis
