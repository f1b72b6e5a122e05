// RocksDB's CRC-32C, by the processor's instruction: of its log and manifest, above all.
//
// Debian builds RocksDB for every x86-64, and so without that instruction: by tables each byte of a
// commit costs 0.7 ns. The library calls rocksdb::crc32c::Extend through its linkage table, so that
// of the program is the one that is called.
#pragma once

namespace trellis {

// Whether that has happened: it has once a store is open. To ask also makes the linker take ours.
bool rocksdb_uses_our_crc32c();

}  // namespace trellis
