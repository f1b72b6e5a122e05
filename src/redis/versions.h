// Versions: each life of a key has one, larger than all before it.
//
//   (unix us << 11) + counter
//
// '04 redis-idgen' holds the end of what was handed out, in decimal: a version is only given below
// it, and it is written, durably, before. So versions grow across restarts, clocks that go back and
// servers that share a map.
#pragma once

#include <cstdint>
#include <mutex>

#include "map/map_handle.h"

namespace trellis {

// Any thread.
class Versions {
 public:
  explicit Versions(MapHandle map) : map_(map) {}

  // Makes sure that there are enough for a batch. Not inside of a transaction: it may be one.
  Status prepare();
  // None below `end` is given from now on: that is where those of a restored keyspace come from.
  Status skip_to(uint64_t end);
  // REQUIRES: prepare() before each transaction.
  uint64_t next();

 private:
  Status reserve(uint64_t from);
  uint64_t now() const;

  const MapHandle map_;
  std::mutex mutex_;
  uint64_t last_ = 0;
  uint64_t end_ = 0;  // [.., end_) is ours
};

}  // namespace trellis
