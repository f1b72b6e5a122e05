// What the collector does with Redis's notes: removes keys whose time has come, the records of
// lives that have ended, and all of databases that were flushed.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "redis/key.h"
#include "redis/server.h"
#include "tenant/collector.h"

namespace trellis {

class RedisGarbageOwner final : public GarbageOwner {
 public:
  // Databases that were flushed are cut at the borders.
  explicit RedisGarbageOwner(RedisServer& server, KeyBorders borders = {})
      : server_(server), borders_(std::move(borders)) {}
  Result<size_t> collect(Tenant& tenant, std::span<const Garbage> notes) override;
  bool is_at_once(const Garbage& note) const override;
  bool expires() const override { return server_.expires_actively(); }
  bool is_shared(const Garbage& note) const override;  // a database is
  Result<std::vector<KeyInterval>> take_removed(Engine& engine) override;

 private:
  Status expire(Tenant& tenant, std::span<const Garbage> notes);
  Result<bool> remove_slot(Tenant& tenant, const Garbage& note, uint16_t slot);
  Result<bool> tend_fences(Tenant& tenant, const Garbage& note, const RedisGarbage& life);
  Result<bool> expire_fields(Tenant& tenant, const Garbage& note, const RedisGarbage& life);
  Result<bool> remove_measured(Tenant& tenant, const Garbage& note, const RedisGarbage& life);
  Result<bool> remove_life(Tenant& tenant, const Garbage& note, const RedisGarbage& life);
  void note_removed(const Garbage& note, std::span<const KeyPart> parts);

  using Target = std::pair<uint32_t, Bytes>;  // of a keyspace
  // What is left of a database that was flushed.
  struct Flushed {
    std::vector<KeyPart> parts;  // that nobody works on
    unsigned taken = 0;
  };
  // Absent: others have the rest. When all parts are done it is one without an end: all of it, to
  // be sure.
  std::optional<KeyPart> take_part(const Tenant& tenant, const Target& target, uint16_t slot);
  void put_back(const Target& target, KeyPart part);

  RedisServer& server_;
  const KeyBorders borders_;
  // Who watches a key saw its time come.
  WatchTable nobody_;
  std::mutex mutex_;
  std::vector<KeyInterval> removed_;  // large ones that may still be on the disk
  std::map<Target, Flushed> flushed_;
};

}  // namespace trellis
