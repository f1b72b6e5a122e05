// Where a key is placed, and what is locked with it.
//
// address() is a bijection on the keys of the map that puts what belongs together side by side.
// Ranges, splits and the cluster engine work on addresses; the embedded engine stores plain keys.
//
//   key                                             address
//   'x' ks 'd' tag namespace key version ...        'x' ks 'd' namespace key* tag version ...
//   'x' ks 'd' 'm' namespace key                    'x' ks 'd' namespace key* 'm'
//   'x' ks 'f' scope inode ...   (1, 2, 3, 5, 7)    'x' ks 'f' 01 inode scope ...
//   everything else                                 itself
//
// key* is the user key escaped (00 -> 00 ff, end 00 01). So all records of one Redis key, and all
// of one inode (its attributes, blocks, entries and locks), are neighbours, in the order in which
// they are stored among themselves.
#pragma once

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// The tables of Redis's records, in order. Those of lives have the length of the user key before
// it and a version behind it; in the others it goes to the end.
inline constexpr ByteView redis_tables = "chmnstz";
constexpr bool is_of_lives(char redis_table) { return redis_table != 'm' && redis_table != 'n'; }

// Code::corrupt if `key` starts like a Redis or file key and is none: such a key has no address.
Status append_address(Bytes& out, ByteView key);
// The inverse.
Status append_key_at(Bytes& out, ByteView address);

// The granule of a key: the unit of locking (map/scope.h). A prefix of addresses for Redis
// ('x' ks 'd' namespace key*) and files ('x' ks 'f' 01 inode; an entry and a slot of a directory's
// figures: their own address, because many write to one directory at a time); for catalog records
// the key up to its parent, or up to what it is a member of (what is found by a name: by its ref
// alone); for everything else the key itself.
Status append_granule(Bytes& out, ByteView key);

}  // namespace trellis
