#include "map/scope.h"

#include <gtest/gtest.h>

#include "codec/catalog_keys.h"
#include "codec/fs_keys.h"
#include "codec/redis_keys.h"
#include "codec/system_keys.h"
#include "codec/tenant_keys.h"
#include "support/test_keyspace.h"

namespace trellis {
namespace {

constexpr KeyspaceId other_ks{8};

Bytes metadata_key(ByteView key) { return encode(RedisMetadataKey{ks, {"0", key}}); }
Bytes field_key(ByteView key, uint64_t version, ByteView field) {
  return encode(RedisSubKey{ks, {{"0", key, version}, field}});
}
Bytes raw_key(ByteView key, KeyspaceId keyspace = ks) { return encode(RawKey{keyspace, key}); }

bool scans_prefix(const Scope& scope, ByteView prefix) {
  return scope.allows_scan(prefix, prefix_end(prefix));
}

TEST(Scope, AGranuleCoversAllItsRecordsAndNoOthers) {
  Scope scope = Scope::in(ks);
  scope.exclusive(metadata_key("cart"));
  EXPECT_TRUE(scope.allows_write(metadata_key("cart")));
  EXPECT_TRUE(scope.allows_write(field_key("cart", 5, "f")));
  EXPECT_TRUE(scope.allows_read(field_key("cart", 6, "")));
  EXPECT_FALSE(scope.allows_read(metadata_key("cart2")));
  EXPECT_FALSE(scope.allows_read(encode(RedisMetadataKey{ks, {"1", "cart"}})));
  EXPECT_FALSE(scope.allows_read(encode(RedisMetadataKey{other_ks, {"0", "cart"}})));
}

TEST(Scope, SharedMeansReadOnly) {
  Scope scope = Scope::in(ks);
  scope.shared(raw_key("a"));
  EXPECT_TRUE(scope.allows_read(raw_key("a")));
  EXPECT_FALSE(scope.allows_write(raw_key("a")));
  scope.exclusive(raw_key("a")).shared(raw_key("a"));  // the stronger mode stays
  EXPECT_TRUE(scope.allows_write(raw_key("a")));
  EXPECT_EQ(scope.locks().size(), 1u);
}

TEST(Scope, ScansStayInsideAGranule) {
  Scope scope = Scope::in(ks);
  scope.shared(metadata_key("cart"));
  const Bytes fields = encode(RedisSubKey{ks, {{"0", "cart", 5}, ""}});
  EXPECT_TRUE(scans_prefix(scope, fields));
  EXPECT_TRUE(scope.allows_scan(field_key("cart", 5, "m"), prefix_end(fields)));
  EXPECT_TRUE(scope.allows_scan(field_key("cart", 5, "\xff\xff"), prefix_end(fields)));
  EXPECT_TRUE(scope.allows_scan(field_key("cart", 5, "a"), field_key("cart", 5, "b")));
  // Metadata keys that start with "cart" belong to other granules.
  EXPECT_FALSE(scans_prefix(scope, metadata_key("cart")));
  EXPECT_TRUE(scope.allows_scan(metadata_key("cart"), successor(metadata_key("cart"))));
  // Beyond the key, beyond the map, before the key.
  EXPECT_FALSE(scope.allows_scan(field_key("cart", 5, "a"), field_key("dart", 5, "a")));
  EXPECT_FALSE(scope.allows_scan(field_key("cart", 5, "a"), ""));
  EXPECT_FALSE(scope.allows_scan(field_key("bart", 5, "a"), field_key("cart", 5, "a")));
  // An empty interval holds nothing to protect.
  EXPECT_TRUE(scope.allows_scan(raw_key("b"), raw_key("a")));
  // Reading is not deleting.
  EXPECT_FALSE(scope.allows_remove_range(fields, prefix_end(fields)));
  scope.exclusive(metadata_key("cart"));
  EXPECT_TRUE(scope.allows_remove_range(fields, prefix_end(fields)));
}

TEST(Scope, InodesAndCatalogParentsAreScanned) {
  Scope scope = Scope::in(ks);
  scope.shared(encode(FsInodeKey{ks, InodeId{1}}));
  EXPECT_TRUE(scans_prefix(scope, encode(FsXattrKey{ks, InodeId{1}, ""})));
  EXPECT_FALSE(scans_prefix(scope, encode(FsXattrKey{ks, InodeId{2}, ""})));
  // Each entry of a directory is locked by itself.
  EXPECT_FALSE(scans_prefix(scope, encode(FsEntryKey{ks, InodeId{1}, ""})));
  const auto name = [](ByteView text) {
    return encode(CatalogLeafNameKey{ks, EntityId{7}, CatalogType::table, text});
  };
  scope.shared(name("anything"));
  EXPECT_TRUE(scans_prefix(scope, name("")));
  EXPECT_TRUE(scans_prefix(scope, name("sales_")));
}

TEST(Scope, TheWholeKeyspace) {
  const Scope scope = Scope::all_of(ks);
  EXPECT_TRUE(scope.allows_write(raw_key("anything")));
  EXPECT_FALSE(scope.allows_write(raw_key("anything", other_ks)));
  EXPECT_FALSE(scope.allows_write(encode(SystemKey{SystemKey::range_id_generator})));
  const auto [begin, end] = keyspace_interval(KeyMode::raw, ks);
  EXPECT_TRUE(scope.allows_remove_range(begin, end));
  EXPECT_FALSE(scope.allows_remove_range(begin, successor(end)));
  EXPECT_FALSE(scope.allows_scan(begin, ""));
}

TEST(Scope, SystemKeysBelongToNoTenant) {
  const Bytes generator = encode(SystemKey{SystemKey::range_id_generator});
  Scope scope = Scope::system();
  scope.exclusive(generator);
  EXPECT_TRUE(scope.allows_write(generator));
  EXPECT_FALSE(scope.allows_read(encode(SystemKey{SystemKey::node_id_generator})));
  EXPECT_FALSE(scope.allows_read(raw_key("a")));
}

TEST(Scope, GarbageAndCountersAreWrittenWithoutALock) {
  const Scope scope = Scope::in(ks);
  const Bytes garbage = encode(GarbageKey{ks, 5, Model::redis, "x"});
  EXPECT_TRUE(scope.allows_write(garbage));
  EXPECT_FALSE(scope.allows_read(garbage));
  EXPECT_TRUE(scope.allows_write(encode(CounterKey{ks, Model::fs, CounterName::keys, 1})));
  EXPECT_FALSE(scope.allows_write(encode(CounterKey{other_ks, Model::fs, CounterName::keys, 1})));
  EXPECT_FALSE(Scope::system().allows_write(garbage));
}

}  // namespace
}  // namespace trellis
