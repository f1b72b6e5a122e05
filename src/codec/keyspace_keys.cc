#include "codec/keyspace_keys.h"

namespace trellis {

void append_keyspace_prefix(Bytes& out, KeyMode mode, KeyspaceId keyspace) {
  ASSERT(keyspace.value <= keyspace_id_max);
  out.push_back(mode_byte(mode));
  append_be24(out, keyspace.value);
}

std::pair<Bytes, Bytes> keyspace_interval(KeyMode mode, KeyspaceId keyspace) {
  Bytes begin;
  append_keyspace_prefix(begin, mode, keyspace);
  Bytes end = begin;
  if (keyspace.value == keyspace_id_max) {
    end[0]++;
    end.replace(1, 3, 3, '\0');
  } else {
    end = prefix_end(begin);
    end.resize(4, '\0');
  }
  return {std::move(begin), std::move(end)};
}

std::pair<Bytes, Bytes> keyspace_region_bounds(KeyMode mode, KeyspaceId keyspace) {
  const auto [begin, end] = keyspace_interval(mode, keyspace);
  Bytes left;
  Bytes right;
  MemComparable::append(left, begin);
  MemComparable::append(right, end);
  return {std::move(left), std::move(right)};
}

}  // namespace trellis
