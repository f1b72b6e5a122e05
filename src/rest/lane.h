// Whose request it is, for the workers to be fair: see HttpServerOptions::lane.
#pragma once

#include <cstdint>

#include "net/http_types.h"

namespace trellis {

// One for each keyspace whose data is asked for, 0 for all else. By what the caller says, before it
// is checked: what is not true is refused at once, and costs others nothing.
uint64_t lane_of(const HttpRequest& request);

}  // namespace trellis
