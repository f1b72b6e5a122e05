#include <cstddef>
#include <cstdint>

#include "support/resp_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trellis::FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
