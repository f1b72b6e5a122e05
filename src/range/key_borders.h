// Where the ranges cut an interval of stored keys, for jobs that walk one in parts.
#pragma once

#include <vector>

#include "range/accounting.h"

namespace trellis {

// Keys inside of (begin, end), in order. What lies between two of them is about a range, or several
// small ones. A range is an interval of addresses: where those are no
// keys (Redis), each of its bounds is a place in every table.
// REQUIRES: the interval lies in one mode of one keyspace.
std::vector<Bytes> key_borders(const RangeAccounting& accounting, ByteView begin, ByteView end);

}  // namespace trellis
