// Times of the EXPIRE family and of the options EX, PX, EXAT and PXAT.
#pragma once

#include "redis/call.h"

namespace trellis {

enum class TimeUnit : uint8_t { seconds, milliseconds };
enum class TimeBase : uint8_t { now, epoch };

// When that is, in unix milliseconds: ERR invalid expire time in '...' command. May lie in the past
// if it counts from the epoch. For SET and its kin: times that are not positive are refused.
Result<uint64_t> expire_time_ms(const Call& call, size_t i, TimeUnit unit, TimeBase base);

Error invalid_expire(const Call& call);

}  // namespace trellis
