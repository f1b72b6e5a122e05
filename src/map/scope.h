// What a transaction may touch, declared before it runs.
//
//   Scope scope = Scope::in(keyspace);
//   scope.exclusive(cart_key);   // everything of the Redis key that cart_key belongs to
//   scope.shared(user_key);      // to be read only
//
// A lock covers a granule (codec/address.h): a Redis key with all its records, an inode with its
// entries, one raw key. In one process granules become latches; on a shared engine they only
// check that the transaction keeps its word. Writes to the garbage ('g') and counter ('k') keys of
// the keyspace and to its entries in the due index need no lock. A system key may be named in any
// scope, a key of another keyspace in none.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/strong_id.h"

namespace trellis {

class Scope {
 public:
  enum class Mode : bool { shared, exclusive };
  struct Lock {
    size_t hash;  // of the granule
    uint32_t begin;
    uint32_t size;
    Mode mode;
  };

  // Keys of one tenant. The keyspace itself is held shared.
  static Scope in(KeyspaceId keyspace) { return Scope(keyspace, Mode::shared); }
  // All keys of one tenant, without naming them: FLUSHDB, state changes, undeclared scripts.
  static Scope all_of(KeyspaceId keyspace) { return Scope(keyspace, Mode::exclusive); }
  // System keys only (01 to 04), which belong to no tenant.
  static Scope system() { return Scope(std::nullopt, Mode::shared); }

  // The granule of `key`, which must be a well-formed key of the map (ASSERTed). Naming a granule
  // twice keeps the stronger mode.
  Scope& shared(ByteView key) { return add(key, Mode::shared); }
  Scope& exclusive(ByteView key) { return add(key, Mode::exclusive); }

  std::optional<KeyspaceId> keyspace() const { return keyspace_; }
  Mode keyspace_mode() const { return keyspace_mode_; }
  std::span<const Lock> locks() const { return locks_; }
  ByteView granule(const Lock& lock) const {
    return ByteView(granules_).substr(lock.begin, lock.size);
  }

  // Whether a transaction with this scope may read, or write, `key`, or scan [begin, end).
  bool allows_read(ByteView key) const;
  bool allows_write(ByteView key) const;
  bool allows_scan(ByteView begin, ByteView end) const;
  bool allows_remove_range(ByteView begin, ByteView end) const;

 private:
  Scope(std::optional<KeyspaceId> keyspace, Mode mode)
      : keyspace_(keyspace), keyspace_mode_(mode) {}
  Scope& add(ByteView key, Mode mode);
  const Lock* find(size_t hash, ByteView granule) const;
  bool allows(ByteView key, Mode mode) const;
  bool allows_interval(ByteView begin, ByteView end, Mode mode) const;

  std::optional<KeyspaceId> keyspace_;
  Mode keyspace_mode_;
  Bytes granules_;  // of all locks, one after the other
  std::vector<Lock> locks_;
};

}  // namespace trellis
