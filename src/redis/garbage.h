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
  void note_removed(std::span<const KeyPart> parts, uint64_t bytes);

  using Target = std::pair<uint32_t, Bytes>;  // of a keyspace
  // What is left of a database that was flushed.
  struct Flushed {
    std::vector<KeyPart> parts;  // that nobody works on
    unsigned taken = 0;
    uint64_t bytes = 0;  // that went since it was begun, or since the start
  };
  // Absent: others have the rest. When all parts are done it is one without an end: all of it, to
  // be sure.
  std::optional<KeyPart> take_part(const Tenant& tenant, const Target& target, uint16_t slot);
  uint64_t take_flushed_bytes(const Target& target);
  void put_back(const Target& target, KeyPart part, uint64_t removed_bytes);

  RedisServer& server_;
  const KeyBorders borders_;
  // Who watches a key saw its time come.
  WatchTable nobody_;
  std::mutex mutex_;
  // Intervals that may still be on the disk, with about how much of it.
  struct Removed {
    KeyInterval interval;
    uint64_t bytes;
  };
  std::vector<Removed> removed_;
  bool has_newly_removed_ = false;
  std::map<Target, Flushed> flushed_;
};

}  // namespace trellis
