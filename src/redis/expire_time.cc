#include "redis/expire_time.h"

#include <fmt/format.h>

#include <limits>

namespace trellis {

Error invalid_expire(const Call& call) {
  return reply_with(
      fmt::format("ERR invalid expire time in '{}' command", full_name(call.command)));
}

Result<uint64_t> expire_time_ms(const Call& call, size_t i, TimeUnit unit, TimeBase base) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  TRY_ASSIGN(int64_t time, call.integer(i));
  if (time <= 0 || (unit == TimeUnit::seconds && time > most / 1'000)) return invalid_expire(call);
  if (unit == TimeUnit::seconds) time *= 1'000;
  if (base == TimeBase::now) {
    const auto now = static_cast<int64_t>(call.now_ms());
    if (time > most - now) return invalid_expire(call);
    time += now;
  }
  return static_cast<uint64_t>(time);
}

}  // namespace trellis
