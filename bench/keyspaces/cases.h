// The cases of bench_keyspaces.
#pragma once

#include <cstddef>

#include "measure.h"

namespace trellis {

struct KeyspaceScale {
  size_t keyspaces = 100'000;
  size_t buried_keys = 1'000'000;
  size_t neighbour_keys = 100'000;
  size_t windows = 32;  // before the burial, and after it
  size_t cache_bytes = size_t{256} << 20;
  Scale writes{.builds = 4, .rounds = 3, .turns = 12};
};

// Creating, loading and listing many keyspaces, and what they cost when nothing happens.
void many_cases(const KeyspaceScale& scale, Report& report);
// What a neighbour feels while a large keyspace is removed.
void burial_case(const KeyspaceScale& scale, Report& report);
// A counted write beside one that is not.
void write_case(const KeyspaceScale& scale, Report& report);

}  // namespace trellis
