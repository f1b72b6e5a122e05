#include "redis/watch.h"

#include <algorithm>
#include <functional>

namespace trellis {

Bytes watched_key(KeyspaceId keyspace, uint32_t database, ByteView name) {
  Bytes key;
  append_be32(key, keyspace.value);
  append_be32(key, database);
  key += name;
  return key;
}

WatchTable::Shard& WatchTable::shard(ByteView watched_key) {
  return shards_[std::hash<ByteView>()(watched_key) % shards_.size()];
}

void WatchTable::add(const Bytes& watched_key, const WatchFlag& flag) {
  Shard& in = shard(watched_key);
  const std::lock_guard lock(in.mutex);
  in.watchers[watched_key].push_back(flag);
  count_++;
}

void WatchTable::remove(const Bytes& watched_key, const WatchFlag& flag) {
  Shard& in = shard(watched_key);
  const std::lock_guard lock(in.mutex);
  const auto found = in.watchers.find(watched_key);
  if (found == in.watchers.end()) return;
  const auto at = std::find(found->second.begin(), found->second.end(), flag);
  if (at == found->second.end()) return;
  found->second.erase(at);
  count_--;
  if (found->second.empty()) in.watchers.erase(found);
}

void WatchTable::touch(ByteView watched_key, const WatchFlag& except) {
  if (count_ == 0) return;
  Shard& in = shard(watched_key);
  const std::lock_guard lock(in.mutex);
  const auto found = in.watchers.find(Bytes(watched_key));
  if (found == in.watchers.end()) return;
  for (const WatchFlag& flag : found->second)
    if (flag != except) *flag = true;
}

std::vector<Bytes> WatchTable::watched(ByteView prefix) {
  std::vector<Bytes> found;
  if (count_ == 0) return found;
  for (Shard& in : shards_) {
    const std::lock_guard lock(in.mutex);
    for (const auto& [key, flags] : in.watchers)
      if (key.starts_with(prefix)) found.push_back(key);
  }
  return found;
}

}  // namespace trellis
