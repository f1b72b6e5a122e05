// Numbers as Redis reads and writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace trellis {

// Exactly what the number itself prints as: no sign +, no leading zeros, no blanks.
std::optional<int64_t> parse_integer(ByteView text);

// What strtod reads, all of it: decimal, hexadecimal, inf; no blanks in front, no NaN, no overflow.
std::optional<double> parse_double(ByteView text);
std::optional<long double> parse_long_double(ByteView text);

// 17 significant digits, as %.17g; "inf" and "-inf".
std::string double_text(double value);
// For INCRBYFLOAT: 17 digits behind the point without zeros at the end.
std::string long_double_text(long double value);

}  // namespace trellis
