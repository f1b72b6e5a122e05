#include "base/human_bytes.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace trellis {

std::string human_bytes(uint64_t bytes) {
  constexpr std::string_view units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would be shown as 1024.0.
  while (amount >= 1023.95 && unit + 1 < std::size(units)) {
    amount /= 1024;
    unit++;
  }
  return fmt::format("{:.1f} {}", amount, units[unit]);
}

}  // namespace trellis
