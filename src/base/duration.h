// Lengths of time as people write them: 30d, 12h, 10m, 5s, 100ms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trellis {

// Milliseconds. A whole number and a unit (ms, s, m, h, d) without anything between or around them:
// a bare number is refused, because nobody knows which unit was meant.
Result<uint64_t> parse_duration_ms(std::string_view text);

// What parse_duration_ms takes, in the largest unit that is exact: "90m", "1d", "0s".
std::string duration_text(uint64_t ms);

}  // namespace trellis
