// RocksDB's errors in our log, instead of a file LOG in the store; its warnings are mostly of
// writes that wait for a flush, many a second, and EngineFigures has those. RocksDB's own logger
// must not be used: in the library as Debian builds it, with assertions, it ends the process when
// the disk is full.
#pragma once

#include <rocksdb/env.h>

#include <memory>

namespace trellis {

std::shared_ptr<rocksdb::Logger> make_rocksdb_logger();

}  // namespace trellis
