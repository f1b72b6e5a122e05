// Where ranges may begin.
#pragma once

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// Code::invalid, in words, for what no range may begin at: the first range holds all local keys and
// all of meta1, and what ends the meta2 area ([03 ff ff, 04)) stays with it.
Status check_range_start(ByteView address);

// The start of the granule that holds the address (codec/address.h): what a transaction touches
// together should stay together. The address itself where there is none, or no key.
Bytes granule_start(ByteView address);

}  // namespace trellis
