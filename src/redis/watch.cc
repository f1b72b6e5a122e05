#include "redis/watch.h"

#include <algorithm>
#include <functional>

namespace trellis {

WatchTable::Shard& WatchTable::shard(ByteView stored_key) {
  return shards_[std::hash<ByteView>()(stored_key) % shards_.size()];
}

void WatchTable::add(const Bytes& stored_key, const WatchFlag& flag) {
  Shard& in = shard(stored_key);
  const std::lock_guard lock(in.mutex);
  in.watchers[stored_key].push_back(flag);
  count_++;
}

void WatchTable::remove(const Bytes& stored_key, const WatchFlag& flag) {
  Shard& in = shard(stored_key);
  const std::lock_guard lock(in.mutex);
  const auto found = in.watchers.find(stored_key);
  if (found == in.watchers.end()) return;
  const auto at = std::find(found->second.begin(), found->second.end(), flag);
  if (at == found->second.end()) return;
  found->second.erase(at);
  count_--;
  if (found->second.empty()) in.watchers.erase(found);
}

void WatchTable::touch(ByteView stored_key) {
  if (count_ == 0) return;
  Shard& in = shard(stored_key);
  const std::lock_guard lock(in.mutex);
  const auto found = in.watchers.find(Bytes(stored_key));
  if (found == in.watchers.end()) return;
  for (const WatchFlag& flag : found->second) *flag = true;
}

void WatchTable::touch_all(ByteView prefix) {
  if (count_ == 0) return;
  for (Shard& in : shards_) {
    const std::lock_guard lock(in.mutex);
    for (auto& [key, flags] : in.watchers)
      if (key.starts_with(prefix))
        for (const WatchFlag& flag : flags) *flag = true;
  }
}

}  // namespace trellis
