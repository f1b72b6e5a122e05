#include "process_figures.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "measure.h"

namespace trellis {

namespace {

double clock_us(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// "VmRSS:     1234 kB"
uint64_t status_bytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name)) return std::strtoull(line.c_str() + name.size(), nullptr, 10) << 10;
  give_up(fmt::format("/proc/self/status has no {}", name));
}

}  // namespace

double now_us() { return clock_us(CLOCK_MONOTONIC); }
double process_cpu_us() { return clock_us(CLOCK_PROCESS_CPUTIME_ID); }
double thread_cpu_us() { return clock_us(CLOCK_THREAD_CPUTIME_ID); }

uint64_t resident_bytes() { return status_bytes("VmRSS:"); }
uint64_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

void reset_peak_resident() {
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;
  if (!reset) give_up("/proc/self/clear_refs cannot be written");
}

uint64_t folder_bytes(const std::filesystem::path& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::error_code gone;  // by a compaction, meanwhile
    const uint64_t size = entry.is_regular_file(gone) ? entry.file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace trellis
