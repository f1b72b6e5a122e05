// The seed and the size of a random test. A failure prints its seed; TRELLIS_TEST_SEED runs it
// again. TRELLIS_TEST_SCALE=quick runs a tenth, =long a hundred times as much.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace trellis {

inline uint64_t test_seed(uint64_t by_default) {
  const char* given = std::getenv("TRELLIS_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : by_default;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

inline std::string_view test_scale() {
  const char* scale = std::getenv("TRELLIS_TEST_SCALE");
  return scale == nullptr ? "" : scale;
}

inline uint64_t test_rounds(uint64_t full) {
  if (test_scale() == "quick") return full / 10;
  return test_scale() == "long" ? full * 100 : full;
}

}  // namespace trellis
