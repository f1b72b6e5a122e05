// address() is a bijection that keeps together what belongs together.
#include <gtest/gtest.h>

#include <map>

#include "codec/address.h"
#include "codec/catalog_keys.h"
#include "codec/fs_keys.h"
#include "codec/redis_keys.h"
#include "support/key_probes.h"
#include "support/sample_record.h"
#include "support/test_seed.h"
#include "support/vector_file.h"

namespace trellis {
namespace {

Bytes address_of(ByteView key) {
  Bytes address;
  const Status status = append_address(address, key);
  EXPECT_TRUE(status.has_value()) << to_hex(key);
  return address;
}

Bytes granule_of(ByteView key) {
  Bytes granule;
  EXPECT_TRUE(append_granule(granule, key).has_value()) << to_hex(key);
  return granule;
}

TEST(Address, Vectors) {
  for (const VectorLine& line : read_vectors("addresses.txt")) {
    SCOPED_TRACE(line.where);
    const Bytes key = *from_hex(line.left);
    EXPECT_EQ(to_hex(address_of(key)), line.right);
    Bytes back;
    ASSERT_TRUE(append_key_at(back, *from_hex(line.right)).has_value());
    EXPECT_EQ(to_hex(back), line.left);
  }
}

TEST(Address, IsABijectionOnTheMap) {
  Random random(test_seed(5));
  std::map<Bytes, Bytes> keys_by_address;
  for (const KeyProbe& probe : key_probes()) {
    if (probe.kind->place != Place::in_map) continue;
    for (uint64_t round = 0; round < test_rounds(300); round++) {
      const Bytes key = probe.sample(random);
      const Bytes address = address_of(key);
      Bytes back;
      ASSERT_TRUE(append_key_at(back, address).has_value()) << to_hex(key);
      ASSERT_EQ(back, key) << to_hex(address);
      const auto [at, inserted] = keys_by_address.emplace(address, key);
      ASSERT_TRUE(inserted || at->second == key) << to_hex(key);
      // Nothing leaves its tenant.
      if (key[0] == 'x') {
        ASSERT_EQ(address.substr(0, 5), key.substr(0, 5));
      }
    }
  }
}

template <class T>
Bytes redis_record(Random& random, TextArena& arena, ByteView ns, ByteView user_key) {
  RedisKey<T> record = sample_record<RedisKey<T>>(random, arena);
  record.keyspace = KeyspaceId{7};
  if constexpr (requires { record.inner.prefix; }) {
    record.inner.prefix.ns = ns;
    record.inner.prefix.key = user_key;
  } else {
    record.inner.ns = ns;
    record.inner.key = user_key;
  }
  return encode(record);
}

TEST(Address, RecordsOfOneRedisKeyAreNeighboursInStoredOrder) {
  Random random(test_seed(6));
  // User keys that are each other's prefixes, and hold zeros.
  const Bytes user_keys[] = {"a", Bytes("a\0", 2), Bytes("a\0\xff", 3), "ab", "b", "", "\xff"};
  std::map<Bytes, size_t> owners;                                    // address -> which user key
  std::map<std::pair<size_t, char>, std::map<Bytes, Bytes>> stored;  // by key and table
  for (uint64_t round = 0; round < test_rounds(2000); round++) {
    TextArena arena;
    const size_t which = random.below(std::size(user_keys));
    const Bytes records[] = {
        redis_record<KvrocksMetadataKey>(random, arena, "0", user_keys[which]),
        redis_record<KvrocksSubKey>(random, arena, "0", user_keys[which]),
        redis_record<KvrocksScoreKey>(random, arena, "0", user_keys[which]),
        redis_record<KvrocksStreamEntryKey>(random, arena, "0", user_keys[which]),
        redis_record<KvrocksStreamPendingKey>(random, arena, "0", user_keys[which])};
    for (const Bytes& key : records) {
      owners[address_of(key)] = which;
      stored[{which, key[5]}][key] = address_of(key);
    }
  }
  std::map<size_t, size_t> runs;
  size_t last = ~size_t{0};
  for (const auto& [address, which] : owners) {
    if (which != last) runs[which]++;
    last = which;
  }
  for (const auto& [which, count] : runs) EXPECT_EQ(count, 1u) << quote(user_keys[which]);
  for (const auto& [table, by_key] : stored) {
    const Bytes* previous = nullptr;
    for (const auto& [key, address] : by_key) {
      if (previous != nullptr) {
        ASSERT_LT(*previous, address);
      }
      previous = &address;
    }
  }
}

TEST(Address, RecordsOfOneInodeAreNeighbours) {
  const KeyspaceId ks{7};
  std::map<Bytes, uint64_t> owners;
  for (uint64_t inode : {1ull, 2ull, 0x0600000000000000ull, 0xffffffffffffffffull}) {
    const InodeId ino{inode};
    for (const Bytes& key :
         {encode(FsInodeKey{ks, ino}), encode(FsExtentKey{ks, ino, 5}),
          encode(FsLinkKey{ks, ino, InodeId{1}, "n"}), encode(FsXattrKey{ks, ino, "x"}),
          encode(FsBlockKey{ks, DataId{inode}, 9}), encode(FsDataUseKey{ks, ino, DataId{3}}),
          encode(FsSharedDataKey{ks, DataId{inode}}), encode(FsLockKey{ks, ino, 0})}) {
      owners[address_of(key)] = inode;
      EXPECT_EQ(granule_of(key), granule_of(encode(FsInodeKey{ks, ino})));
    }
    // What many write to at the same time is locked by itself.
    for (const Bytes& key :
         {encode(FsEntryKey{ks, ino, "child"}), encode(FsFiguresKey{ks, ino, 3})}) {
      owners[address_of(key)] = inode;
      EXPECT_EQ(granule_of(key), address_of(key));
    }
  }
  // Not an inode's: must not fall between them.
  const Bytes session = address_of(encode(FsSessionKey{ks, SessionId{1}}));
  const Bytes superblock = address_of(encode(FsSuperblockKey{ks}));
  EXPECT_TRUE(session > owners.rbegin()->first && superblock < owners.begin()->first);
  uint64_t runs = 0;
  uint64_t last = 0;
  for (const auto& [address, inode] : owners) {
    runs += inode != last ? 1 : 0;
    last = inode;
  }
  EXPECT_EQ(runs, 4u);
}

TEST(Address, GranulesAreSharedByWhatIsLockedTogether) {
  Random random(test_seed(7));
  TextArena arena;
  const Bytes metadata = redis_record<KvrocksMetadataKey>(random, arena, "0", "k");
  const Bytes field = redis_record<KvrocksSubKey>(random, arena, "0", "k");
  const Bytes other = redis_record<KvrocksSubKey>(random, arena, "0", "k2");
  const Bytes other_database = redis_record<KvrocksSubKey>(random, arena, "1", "k");
  EXPECT_EQ(granule_of(metadata), granule_of(field));
  EXPECT_NE(granule_of(metadata), granule_of(other));
  EXPECT_NE(granule_of(metadata), granule_of(other_database));
  // Raw keys and system keys are locked one by one.
  const Bytes raw = encode(RawKey{KeyspaceId{1}, "a"});
  EXPECT_EQ(granule_of(raw), raw);
  // Tables of one schema, and names under one parent, together.
  Uuid ml{};
  Uuid ca{};
  const auto table = [&](uint64_t schema, uint64_t id) {
    return encode(CatalogTableKey{KeyspaceId{1}, ml, ca, EntityId{schema}, EntityId{id}});
  };
  EXPECT_EQ(granule_of(table(7, 1)), granule_of(table(7, 2)));
  EXPECT_NE(granule_of(table(7, 1)), granule_of(table(8, 1)));
  const auto name = [&](uint64_t parent, ByteView text) {
    return encode(CatalogLeafNameKey{KeyspaceId{1}, EntityId{parent}, CatalogType::table, text});
  };
  EXPECT_EQ(granule_of(name(7, "a")), granule_of(name(7, "b")));
  EXPECT_NE(granule_of(name(7, "a")), granule_of(name(8, "a")));
}

TEST(Address, CatalogRecordsAreLockedByWhatTheyBelongTo) {
  constexpr KeyspaceId ks{1};
  Uuid ml{};
  ml[0] = 1;
  const auto table = [](uint64_t id) { return CatalogRef::of(CatalogType::table, EntityId{id}); };
  const auto expect_one = [](const Bytes& a, const Bytes& b, const Bytes& other) {
    EXPECT_EQ(granule_of(a), granule_of(b)) << to_hex(a);
    EXPECT_NE(granule_of(a), granule_of(other)) << to_hex(a);
  };
  // What finds one thing, under whatever names; columns with their table.
  const auto search = [&](CatalogSearchKind kind, ByteView text, const CatalogRef& ref) {
    return encode(CatalogSearchKey{ks, ml, kind, text, ref});
  };
  expect_one(search(CatalogSearchKind::name, "a", table(7)),
             search(CatalogSearchKind::name, "b", table(7)),
             search(CatalogSearchKind::name, "a", table(8)));
  expect_one(search(CatalogSearchKind::name, "a", table(7)),
             search(CatalogSearchKind::column, "id", CatalogRef::column(EntityId{7}, EntityId{1})),
             search(CatalogSearchKind::column, "id", CatalogRef::column(EntityId{8}, EntityId{1})));
  // What is dropped in one place; one log; the members of one thing.
  const auto dropped = [&](const CatalogRef& parent, ByteView text) {
    return encode(CatalogDroppedKey{ks, parent, CatalogType::table, text, 5, table(7)});
  };
  const CatalogRef schema = CatalogRef::of(CatalogType::schema, EntityId{3});
  expect_one(dropped(schema, "a"), dropped(schema, "b"),
             dropped(CatalogRef::of(CatalogType::schema, EntityId{4}), "a"));
  expect_one(encode(CatalogLogKey{ks, ml}), encode(CatalogChangeKey{ks, ml, 7}),
             encode(CatalogLogKey{ks, {}}));
  expect_one(encode(CatalogPartitionKey{ks, EntityId{7}, "a"}),
             encode(CatalogPartitionKey{ks, EntityId{7}, "b"}),
             encode(CatalogPartitionKey{ks, EntityId{8}, "a"}));
  expect_one(encode(CatalogModelVersionKey{ks, EntityId{7}, 0}),
             encode(CatalogModelVersionKey{ks, EntityId{7}, 1}),
             encode(CatalogModelVersionKey{ks, EntityId{8}, 0}));
  expect_one(encode(CatalogAliasKey{ks, EntityId{7}, "a"}),
             encode(CatalogAliasKey{ks, EntityId{7}, "b"}),
             encode(CatalogAliasKey{ks, EntityId{8}, "a"}));
  expect_one(encode(CatalogStatisticKey{ks, ml, table(7), "", "a"}),
             encode(CatalogStatisticKey{ks, ml, table(7), "p", "b"}),
             encode(CatalogStatisticKey{ks, ml, table(8), "", "a"}));
  expect_one(encode(CatalogRelationKey{ks, ml, CatalogRelation::tag, table(7), table(1)}),
             encode(CatalogRelationKey{ks, ml, CatalogRelation::tag, table(7), schema}),
             encode(CatalogRelationKey{ks, ml, CatalogRelation::owner, table(7), table(1)}));
  expect_one(encode(CatalogInverseKey{ks, ml, CatalogRelation::tag, table(7), table(1)}),
             encode(CatalogInverseKey{ks, ml, CatalogRelation::tag, table(7), schema}),
             encode(CatalogInverseKey{ks, ml, CatalogRelation::tag, table(8), table(1)}));
  expect_one(encode(CatalogGrantKey{ks, EntityId{7}, schema, table(1)}),
             encode(CatalogGrantKey{ks, EntityId{7}, table(1), schema}),
             encode(CatalogGrantKey{ks, EntityId{8}, schema, table(1)}));
}

TEST(Address, MalformedKeysAndAddressesAreErrors) {
  Bytes out;
  for (const char* key :
       {"7800000164", "780000016471", "78000001646d", "78000001646d05", "780000016473013000",
        "78000001647301300000000161", "7800000166010000", "780000016603"})
    EXPECT_FALSE(append_address(out, *from_hex(key)).has_value()) << key;
  for (const char* address :
       {"7800000164", "78000001640130", "7800000164013061", "78000001640130610001",
        "7800000164013061000171", "780000016401306100016d00", "7800000164013061000173",
        "780000016602", "7800000166010000", "78000001660100000000000000000a"})
    EXPECT_FALSE(append_key_at(out, *from_hex(address)).has_value()) << address;
}

}  // namespace
}  // namespace trellis
