// WATCH: who wants to know whether a key changes. By stored key, so nothing crosses a keyspace or a
// database.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"

namespace trellis {

using WatchFlag = std::shared_ptr<std::atomic<bool>>;

// Any thread.
class WatchTable {
 public:
  void add(const Bytes& stored_key, const WatchFlag& flag);
  void remove(const Bytes& stored_key, const WatchFlag& flag);
  // The key changes: all who watch it are told. REQUIRES: its latch is held.
  void touch(ByteView stored_key);
  // All keys that begin so change.
  void touch_all(ByteView prefix);

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<Bytes, std::vector<WatchFlag>> watchers;
  };
  Shard& shard(ByteView stored_key);

  std::atomic<size_t> count_{0};  // of entries: none is the rule, and costs one look
  std::array<Shard, 16> shards_;
};

}  // namespace trellis
