// One page of a scan: one iterator, one instant.
#pragma once

#include <rocksdb/db.h>

#include "engine/engine.h"

namespace trellis {

Result<ScanPage> scan_page(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                           const ScanRequest& request, ScanVisitor visit);

// Evidence of a page: nothing if it had no entries; else its direction and then, as visited,
//   | key size u32be | value size u32be | key | value |
// True if the interval still has exactly those entries.
Result<bool> interval_unchanged(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                                ByteView begin, ByteView end, ByteView seen);

}  // namespace trellis
