// What the records of one life of a Redis collection share.
#pragma once

#include "base/bytes.h"

namespace trellis {

// | 'x' | keyspace u24 | 'd' | table | namespace length u8 | namespace | key length u32 | key |
// version u64 |, of any record but metadata (codec/redis_keys.h); empty if it is none.
inline ByteView redis_collection_of(ByteView key) {
  constexpr size_t model_offset = 4;
  constexpr size_t table_offset = 5;
  constexpr size_t namespace_offset = 6;
  if (key.size() <= namespace_offset || key[0] != 'x' || key[model_offset] != 'd') return {};
  if (key[table_offset] == 'm') return {};
  const size_t size_offset = namespace_offset + 1 + static_cast<uint8_t>(key[namespace_offset]);
  if (size_offset + 4 > key.size()) return {};
  const size_t size = size_offset + 4 + load_be(key.data() + size_offset, 4) + 8;
  return size <= key.size() ? key.substr(0, size) : ByteView();
}

// The collection that has all keys of [begin, end); empty if there is none that has.
inline ByteView redis_collection_of(ByteView begin, ByteView end) {
  const ByteView collection = redis_collection_of(begin);
  const bool has_all = end.starts_with(collection) || end == prefix_end(collection);
  return has_all ? collection : ByteView();
}

}  // namespace trellis
