// What words on the command line mean. All of it is strict: nothing is guessed, cut or ignored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// The reason of errors that are wrong use: exit code 2.
inline constexpr std::string_view reason_wrong_use = "wrong_use";
Error wrong_use(std::string message);

// "k=v"; the value may have more '=' and may be empty.
Result<std::pair<std::string, std::string>> parse_assignment(std::string_view text);

// From `min` on.
Result<uint64_t> parse_whole_number(std::string_view text, uint64_t min = 0);

// "10GiB", as the settings have it.
Result<uint64_t> parse_size_bytes(std::string_view text);

// A limit: 0 is written "none".
Result<uint64_t> parse_limit_of_bytes(std::string_view text);
Result<uint64_t> parse_limit(std::string_view text);

// Unix milliseconds of "now" or of a time in UTC: 2026-11-15T04:00:00Z, or with .123 before the Z.
Result<uint64_t> parse_time_ms(std::string_view text, uint64_t now_ms);

// PD's timestamps: unix milliseconds * 2^18 + a logical part.
constexpr uint64_t point_of_ms(uint64_t unix_ms) { return unix_ms << 18; }
constexpr uint64_t ms_of_point(uint64_t point) { return point >> 18; }
// A time, or digits that are the timestamp itself.
Result<uint64_t> parse_point(std::string_view text, uint64_t now_ms);

// The bytes of a key or value: the text itself, or with the escapes of unquote().
Result<Bytes> parse_bytes(std::string_view text, bool escaped);

// A tag of content as a header has it, given with or without the quotes around it.
std::string quoted_tag(std::string_view tag);
// As a check of an option: it becomes a part of a header. "": it is one.
std::string check_tag(const std::string& tag);

// "id:7", which no name looks like.
bool names_an_id(std::string_view keyspace);

}  // namespace trellis
