// Tables of which nothing is seen any more: what was removed hides all that they hold. They go from
// the disk without being read, where a compaction would pass over each of their entries.
#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

class ReadEpochs;

// Names of those that lie in [begin, end), in the lowest level: below them is nothing that could
// come to light. (One may be part of a compaction.)
Result<std::vector<std::string>> unseen_tables(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                                               ReadEpochs& epochs, ByteView begin, ByteView end,
                                               const std::atomic<bool>* canceled);
// REQUIRES: what hides them is durable. Those that a compaction has got hold of stay.
Status drop_tables(rocksdb::DB& db, const std::vector<std::string>& names);

}  // namespace trellis
