// WATCH: who wants to know whether a key changes. By keyspace, database and name.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/strong_id.h"

namespace trellis {

Bytes watched_key(KeyspaceId keyspace, uint32_t database, ByteView name);

using WatchFlag = std::shared_ptr<std::atomic<bool>>;

// Any thread.
class WatchTable {
 public:
  void add(const Bytes& watched_key, const WatchFlag& flag);
  void remove(const Bytes& watched_key, const WatchFlag& flag);
  bool empty() const { return count_ == 0; }
  // The key changes: all who watch it are told, but for `except`. REQUIRES: its latch is held.
  void touch(ByteView watched_key, const WatchFlag& except = nullptr);
  // Those that are watched and begin so.
  std::vector<Bytes> watched(ByteView prefix);

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<Bytes, std::vector<WatchFlag>> watchers;
  };
  Shard& shard(ByteView watched_key);

  std::atomic<size_t> count_{0};  // of entries: none is the rule, and costs one look
  std::array<Shard, 16> shards_;
};

}  // namespace trellis
