#include "redis/process_facts.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace trellis {

uint64_t process_rss_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all_pages = 0;
  uint64_t resident_pages = 0;
  file >> all_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

CpuSeconds process_cpu() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {seconds(used.ru_stime), seconds(used.ru_utime)};
}

}  // namespace trellis
