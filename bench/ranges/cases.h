// The cases of bench_ranges.
#pragma once

#include <cstddef>

#include "measure.h"

namespace trellis {

struct RangeScale {
  size_t few = 1 << 10;
  size_t many = 1 << 20;
  size_t lookups = 1 << 20;  // of one round
  size_t rounds = 7;
  size_t huge_lookups = 100'000;
};

// Cold and warm lookups through a cache, of a map of few and of many ranges.
void cache_cases(const RangeScale& scale, Report& report);
// The directory of 2^36 ranges, whose records are computed and not stored.
void huge_case(const RangeScale& scale, Report& report);

}  // namespace trellis
