// What a backup may hold, so that whoever reads it back may rely on it.
#pragma once

#include "base/bytes.h"

namespace trellis {

// Whether an entry can be a map's: it has an owner and a granule, and what the server itself reads
// (counters, notes of garbage) can be read. What a model makes of its own entries is not asked. A
// backup leaves out what is not, and a restore refuses it: one such entry that a store has come to
// hold must not spoil the rest.
bool makes_sense(ByteView key, ByteView value);

}  // namespace trellis
