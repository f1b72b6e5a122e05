// What a walk is cut into, so that threads can share it.
#pragma once

#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "engine/engine.h"

namespace trellis {

using KeyInterval = std::pair<Bytes, Bytes>;  // [first, second); an empty end: to the end

// Cuts the intervals, which are in order and apart, into at most `count` more pieces, in order,
// without those that hold nothing. The same map gives the same pieces.
Result<std::vector<KeyInterval>> cut_units(Engine& engine, std::vector<KeyInterval> intervals,
                                           size_t count);

}  // namespace trellis
