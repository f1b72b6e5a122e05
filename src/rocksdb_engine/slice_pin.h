// The pin of this engine inside a Value: a RocksDB block, or RocksDB's copy of a memtable entry.
#pragma once

#include <rocksdb/slice.h>

#include <cstddef>
#include <utility>

namespace trellis {

struct SlicePin {
  rocksdb::PinnableSlice slice;
  size_t skip = 0;  // a header that is not part of the value

  SlicePin() = default;
  // PinnableSlice forgot to say noexcept: it moves pointers and a string.
  SlicePin(SlicePin&& other) noexcept : slice(std::move(other.slice)), skip(other.skip) {}
  SlicePin& operator=(SlicePin&&) = delete;

  const char* data() const { return slice.data() + skip; }
  size_t size() const { return slice.size() - skip; }
};

}  // namespace trellis
