// Which ranges there are, from what is left of their records.
//
// Every range is recorded twice: by itself, which is the authority, and in the directory. Where its
// own records do not tile the map, this decides by both of them:
//   - two records of one range that agree are believed, then those of a higher generation;
//   - between those that are believed, its own records if they tile, else the directory's if they
//     do, else its own and what the directory adds to them;
//   - what is still open is one new range for each hole.
// Only records of ranges are looked at: what the ranges hold stays where it is.
#pragma once

#include <vector>

#include "range/descriptor.h"

namespace trellis {

// `own` and `directory`: the records that can be read. Returns ranges that tile the map, by start;
// those that nobody knows have id and generation 0, which the caller gives them. If `own` tiles the
// map, with an id for each, it is returned as it is.
std::vector<RangeDescriptor> tile_map(std::vector<RangeDescriptor> own,
                                      std::vector<RangeDescriptor> directory);

}  // namespace trellis
