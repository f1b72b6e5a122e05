// RocksDB's memtable as an EntryTree (entry_tree.h).
//
// REQUIRES of the options: the bytewise comparator, and allow_concurrent_memtable_write = false.
#pragma once

#include <rocksdb/memtablerep.h>

#include <memory>

namespace trellis {

std::shared_ptr<rocksdb::MemTableRepFactory> make_tree_memtable_factory();

}  // namespace trellis
