#pragma once

#include "base/strong_id.h"

namespace trellis {

// The keyspace of a test that needs only one.
inline constexpr KeyspaceId ks{7};

}  // namespace trellis
