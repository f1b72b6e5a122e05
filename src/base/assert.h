// ASSERT states what the code relies on. It is checked in every build: going on after a broken
// promise would write wrong bytes. Bytes from outside are never asserted, they are decoded.
#pragma once

namespace trellis {

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

#define ASSERT(condition)                              \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::trellis::assertion_failed(#condition, __FILE__, __LINE__))

}  // namespace trellis
