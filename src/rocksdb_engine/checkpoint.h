// A consistent copy of an open store.
#pragma once

#include <rocksdb/db.h>

#include <string>

#include "base/result.h"
#include "rocksdb_engine/data_directory.h"

namespace trellis {

// Makes the copy in path + ".part" and renames it when it is whole, so that a crash leaves no half
// of a copy under its name. What a crash left in ".part" is removed first.
// REQUIRES: the path is as store_path() spells it; one call at a time.
//   exists       there is something at the path
//   invalid      no folder can be made there, or the .part is not one of ours
//   denied, no_space, corrupt, unavailable: as said; the store is as it was
Status make_checkpoint(rocksdb::DB& db, const Marker& marker, const std::string& path);

}  // namespace trellis
