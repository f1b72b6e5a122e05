// How values are shown to people, on terminals: sizes, times, and text that came from elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/human_bytes.h"

namespace trellis {

std::string progress_bar(double part);  // of 1: "[####....] 50%"
std::string progress_bar(uint64_t done, uint64_t total);

// "2026-11-15T04:00:00Z"; "never" from the year 10000 on, which is what far ends stand for.
std::string iso_time(uint64_t unix_ms);

// Coarse, in one unit: "0 s", "5 min", "3 h", "41 d".
std::string human_duration(uint64_t ms);
std::string human_age(uint64_t now_ms, uint64_t then_ms);  // "3 h ago", "in 6 d"

// "2026-11-15T04:00:00Z (3 h ago)"
std::string time_and_age(uint64_t now_ms, uint64_t then_ms);

// Text that a terminal shows and does not obey: well-formed UTF-8 stays, control characters and
// all other bytes become \n, \r, \t or \xNN, as blanks around it do, and a backslash is doubled.
// unquote() gives it back.
std::string terminal_text(std::string_view bytes);

// Likewise for sentences: a backslash stays alone, because nobody takes them back.
std::string terminal_line(std::string_view sentence);

// How wide a well-formed text is on a terminal, as far as one character is one column.
size_t text_columns(std::string_view text);

// The first characters of a well-formed text and "..." if it has more columns than that.
std::string shortened_text(std::string text, size_t columns_max);

}  // namespace trellis
