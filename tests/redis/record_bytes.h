// Whether what the records of keys say of the bytes of their own records is so.
#pragma once

#include <gtest/gtest.h>

#include <charconv>

#include "codec/address.h"
#include "codec/redis_keys.h"
#include "codec/redis_metadata.h"
#include "redis/databases.h"
#include "redis/record_keys.h"
#include "support/expect_ok.h"
#include "tenant/tenant.h"

namespace trellis {

template <class Visit>
void visit_all(Engine& engine, const Bytes& prefix, Visit visit) {
  std::optional<Bytes> from = prefix;
  while (from) {
    auto page =
        engine.scan({.begin = *from, .end = prefix_end(prefix)}, [&](ByteView key, ByteView value) {
          visit(key, value);
          return trellis::Visit::go_on;
        });
    EXPECT_OK(page);
    from = page ? std::move(page->resume) : std::nullopt;
  }
}

// How many keys say it. Those of databases that were flushed go record by record.
inline size_t expect_record_bytes(Engine& engine, KeyspaceId keyspace) {
  struct Life {
    Bytes name;
    uint16_t slot;
    RedisMetadata metadata;
  };
  std::vector<Life> lives;
  Value stored_slots;
  EXPECT_OK(engine.get(encode(RedisDatabasesKey{keyspace}), stored_slots));
  const DatabaseSlots slots = decode_slots(stored_slots).value();
  const Bytes all = redis_slot_prefix(keyspace, 'm', 0).substr(0, redis_table_offset + 1);
  visit_all(engine, all, [&](ByteView key, ByteView value) {
    const auto record = decode<RedisMetadataKey>(key);
    const auto metadata = decode_redis_metadata(value);
    ASSERT_TRUE(record && metadata);
    if (!metadata->record_bytes) return;
    const ByteView ns = record->inner.ns;
    uint16_t slot = 0;
    std::from_chars(ns.data(), ns.data() + ns.size(), slot);
    if (slots.database_of(slot)) lives.push_back({Bytes(record->inner.key), slot, *metadata});
  });
  for (const Life& life : lives) {
    uint64_t bytes = 0;
    for (const char table : redis_tables) {
      if (!is_of_lives(table)) continue;
      visit_all(engine,
                redis_life_prefix(keyspace, table, life.slot, life.name, life.metadata.version),
                [&](ByteView key, ByteView value) { bytes += key.size() + value.size(); });
    }
    EXPECT_EQ(*life.metadata.record_bytes, bytes)
        << to_string(life.metadata.type) << ' ' << life.name;
  }
  return lives.size();
}

}  // namespace trellis
