// Who uses most: the largest and the busiest keyspaces. Instead of metrics for each tenant, of
// which there may be a hundred thousand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tenant/keyspaces.h"

namespace trellis {

enum class TopBy : uint8_t { bytes, keys, operations };

struct TopEntry {
  KeyspaceId id;
  std::string name;
  Figures figures;
  Tenant::Load load;
};

// At most `limit`, most first. By bytes and keys it looks at the counters of every keyspace, page
// by page; by operations only at those in memory, because no other has any. Holds no more than
// `limit` entries and a page. Any thread.
Result<std::vector<TopEntry>> top(Keyspaces& keyspaces, TopBy by, size_t limit);

}  // namespace trellis
