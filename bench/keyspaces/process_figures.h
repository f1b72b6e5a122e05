// What this process and its files take.
#pragma once

#include <cstdint>
#include <filesystem>

namespace trellis {

double now_us();          // since any moment
double process_cpu_us();  // all threads
double thread_cpu_us();   // this one

uint64_t resident_bytes();
// The most that was resident since the last reset.
uint64_t peak_resident_bytes();
void reset_peak_resident();

// Of all files below the folder.
uint64_t folder_bytes(const std::filesystem::path& folder);

}  // namespace trellis
