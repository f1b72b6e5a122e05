// What a backup may hold, so that whoever reads it back may rely on it.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace trellis {

// Whether an entry can be a map's: it has an owner and a granule, and what the server itself reads
// (counters, notes of garbage) can be read. What a model makes of its own entries is not asked. A
// backup leaves out what is not, and a restore refuses it: one such entry that a store has come to
// hold must not spoil the rest.
bool makes_sense(ByteView key, ByteView value);

// What a backup takes, and word of what it does not. One thread.
class SenseFilter {
 public:
  bool takes(ByteView key, ByteView value);
  void tell() const;  // to the log, if something was left out

 private:
  uint64_t left_out_ = 0;
  Bytes first_;  // of their keys
};

}  // namespace trellis
