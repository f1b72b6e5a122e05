// Texts that a client carries for the server without learning what they say: AES-256-GCM under a
// key that this process made for itself. Another process, and this one after a restart, opens none
// of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// In hex digits. Its length tells that of the text to within 64 bytes.
Result<std::string> seal_text(ByteView text);
// Absent: none that this process sealed.
std::optional<Bytes> open_sealed(std::string_view sealed);

}  // namespace trellis
