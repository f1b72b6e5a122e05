// SHA-256, for what must not be guessed or forged.
#pragma once

#include "base/bytes.h"

namespace trellis {

Bytes sha256(ByteView bytes);  // 32 bytes

}  // namespace trellis
