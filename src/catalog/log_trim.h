// What goes from the log of a metalake. It keeps the changes of log_age_ms, if they are no more
// than log_changes_max; so long as log_step more have not come, also what is older.
//
// Every log_step changes a note is left for the collector, due when the last of them is too old,
// and one that is due at once if there are too many. Its target, which no ref is like:
// | "lg" | metalake 16 | number u64 |: the log_step changes up to that number go. Those before them
// have notes of their own, so that nobody looks for them where there are none any more.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "codec/catalog_keys.h"
#include "tenant/collector.h"

namespace trellis {

inline constexpr uint64_t log_step = 1'024;
inline constexpr uint64_t log_changes_max = 100 * log_step;
inline constexpr uint64_t log_age_ms = 7ull * 24 * 3'600 * 1'000;

struct LogTrim {
  Uuid metalake{};
  uint64_t number = 0;
};
Bytes encode_log_trim(const LogTrim& trim);
// Absent: the target is something else.
std::optional<LogTrim> decode_log_trim(ByteView target);

// In the transaction that writes the change of that number.
void leave_log_trims(CountedView& view, const LogTrim& last, uint64_t now_ms);
// A page of what a note says. Whether all of it and the note are gone.
Result<bool> trim_log(Tenant& tenant, const Garbage& note, const LogTrim& trim);

}  // namespace trellis
