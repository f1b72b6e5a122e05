#include "base/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/bytes.h"

namespace trellis {
namespace {

struct TimeUnit {
  std::string_view suffix;
  uint64_t ms;
};
// The longest first, as duration_text wants it.
constexpr TimeUnit time_units[] = {
    {"d", 24 * 60 * 60 * 1000}, {"h", 60 * 60 * 1000}, {"m", 60 * 1000}, {"s", 1000}, {"ms", 1},
};

}  // namespace

Result<uint64_t> parse_duration_ms(std::string_view text) {
  uint64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, count);
  const std::string_view suffix(rest, static_cast<size_t>(end - rest));
  if (problem != std::errc::invalid_argument)
    for (const TimeUnit& unit : time_units) {
      if (unit.suffix != suffix) continue;
      if (problem == std::errc::result_out_of_range ||
          count > std::numeric_limits<uint64_t>::max() / unit.ms)
        return Error{Code::invalid, fmt::format("{} is too long a time", quote(text))};
      return count * unit.ms;
    }
  return Error{Code::invalid,
               fmt::format("{} is not a length of time; use for example 30d, 12h, 10m, 5s or 100ms",
                           quote(text))};
}

std::string duration_text(uint64_t ms) {
  if (ms == 0) return "0s";
  for (const TimeUnit& unit : time_units)
    if (ms % unit.ms == 0) return fmt::format("{}{}", ms / unit.ms, unit.suffix);
  return {};  // not reached: everything is a multiple of the last unit
}

}  // namespace trellis
