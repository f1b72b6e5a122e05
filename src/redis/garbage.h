// What the collector does with Redis's notes: removes keys whose time has come, and the records of
// lives that have ended.
#pragma once

#include "redis/server.h"
#include "tenant/collector.h"

namespace trellis {

class RedisGarbageOwner final : public GarbageOwner {
 public:
  explicit RedisGarbageOwner(RedisServer& server) : server_(server) {}
  Result<size_t> collect(Tenant& tenant, std::span<const Garbage> notes) override;

 private:
  Status expire(Tenant& tenant, const Garbage& note, uint32_t database, ByteView name);

  RedisServer& server_;
};

}  // namespace trellis
