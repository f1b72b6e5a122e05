// What the collector does with Redis's notes: removes keys whose time has come, the records of
// lives that have ended, and all of databases that were flushed.
#pragma once

#include <map>

#include "redis/key.h"
#include "redis/server.h"
#include "tenant/collector.h"

namespace trellis {

class RedisGarbageOwner final : public GarbageOwner {
 public:
  explicit RedisGarbageOwner(RedisServer& server) : server_(server) {}
  Result<size_t> collect(Tenant& tenant, std::span<const Garbage> notes) override;
  bool is_at_once(const Garbage& note) const override;
  bool expires() const override { return server_.expires_actively(); }

 private:
  Status expire(Tenant& tenant, std::span<const Garbage> notes);
  Result<bool> remove_slot(Tenant& tenant, const Garbage& note, uint16_t slot);
  Result<bool> remove_life(Tenant& tenant, const Garbage& note, const RedisGarbage& life);
  // Where to go on with a target: an engine has to step over what was removed before. Valid until
  // it is asked for another.
  Bytes& removed_to(const Tenant& tenant, ByteView target);

  RedisServer& server_;
  // Who watches a key saw its time come.
  WatchTable nobody_;
  // By keyspace and target: of the one thread that collects.
  std::map<std::pair<uint32_t, Bytes>, Bytes> removed_to_;
};

}  // namespace trellis
