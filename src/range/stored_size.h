// What a range was last known to hold, as it is kept over a restart.
//
//   01 'i' range 'r' 'stat'
//     ->  | 02 | generation u64be | bytes u64be | keys u64be | counted u64be, unix ms |
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "engine/engine.h"
#include "range/descriptor.h"

namespace trellis {

struct StoredSize {
  uint64_t generation = 0;  // of the range, when it was that large
  uint64_t bytes = 0;
  uint64_t keys = 0;
  uint64_t counted_ms = 0;  // 0: never
};

Bytes stored_size_key(RangeId range);
Bytes encode_stored_size(const StoredSize& size);
// Absent: nobody wrote one, none that can be read, or one of another generation.
Result<std::optional<StoredSize>> load_stored_size(Engine& engine, const RangeDescriptor& range);

}  // namespace trellis
