// What filters of tables and memtables know beside whole keys: which Redis collections have records
// there. A scan of one passes over the tables that have none of it.
#pragma once

#include <rocksdb/slice_transform.h>

#include <memory>

namespace trellis {

std::shared_ptr<const rocksdb::SliceTransform> make_collection_prefix();

}  // namespace trellis
