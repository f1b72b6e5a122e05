// Entry points as in codec_fuzz.h for what else is decoded from files: the store's own formats that
// are not in codec, and the settings. Each takes any bytes and aborts if a decoder accepts what its
// writer would not have written. Where a checksum guards what is behind it, the first byte of the
// input says whether the checksums are put right, so that random input gets past them.
#pragma once

#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace trellis {

struct StoreFuzzTarget {
  std::string_view name;
  void (*run)(ByteView input);
};

void fuzz_block(ByteView input);     // block values and patches, by the merge operator
void fuzz_counter(ByteView input);   // counter values, and adds to them
void fuzz_wal(ByteView input);       // two log files, by check_wals
void fuzz_marker(ByteView input);    // the file TRELLIS
void fuzz_store(ByteView input);     // all of the above, each on the same input
void fuzz_settings(ByteView input);  // trellis.toml

inline constexpr StoreFuzzTarget store_fuzz_targets[] = {
    {"block", fuzz_block},   {"counter", fuzz_counter},   {"wal", fuzz_wal},
    {"marker", fuzz_marker}, {"settings", fuzz_settings},
};

// The content of a log file with these records, as RocksDB writes it.
Bytes wal_with_records(const std::vector<Bytes>& records);

}  // namespace trellis
