// The list of all keys, lowest first: one line makes a record part of `trellis key`, `trellis map`,
// the documentation, the property tests and the fuzzers.
#pragma once

#include <string_view>
#include <tuple>

#include "codec/catalog_keys.h"
#include "codec/fs_keys.h"
#include "codec/keyspace_keys.h"
#include "codec/local_keys.h"
#include "codec/meta_keys.h"
#include "codec/redis_keys.h"
#include "codec/system_keys.h"
#include "codec/table_keys.h"
#include "codec/tenant_keys.h"

namespace trellis {

enum class Place : unsigned char {
  in_map,   // a key of our map
  foreign,  // of another system; its first bytes cannot be ours, or are no well-formed key of ours
  by_name,  // of another system, and only its context tells: explained when asked for by name
};

template <class T>
struct KeyEntry {
  using type = T;
  std::string_view area;
  std::string_view summary;
  Place place = Place::in_map;
};

inline constexpr std::tuple all_keys{
    KeyEntry<RangeReplicatedKey>{"local", "replicated state of a range"},
    KeyEntry<AbortSpanKey>{"local", "aborted transaction"},
    KeyEntry<RangeUnreplicatedKey>{"local", "state of one replica"},
    KeyEntry<RaftLogKey>{"local", "log entry of one replica"},
    KeyEntry<SharedLocksLatchKey>{"local", "latch of shared locks"},
    KeyEntry<RangeLocalPrefix>{"local", "start of what is local to a key"},
    KeyEntry<RangeDescriptorKey>{"local", "descriptor of a range"},
    KeyEntry<RangeProbeKey>{"local", "probe of a range"},
    KeyEntry<QueueLastProcessedKey>{"local", "progress of a queue"},
    KeyEntry<TransactionKey>{"local", "transaction record"},
    KeyEntry<StoreKey>{"local", "state of this store"},
    KeyEntry<StoreLoadKey>{"local", "what is being loaded"},
    KeyEntry<StoreRecoveryKey>{"local", "applied recovery"},
    KeyEntry<StoreNodeTombstoneKey>{"local", "node that is gone"},
    KeyEntry<StoreCachedSettingKey>{"local", "cached setting"},
    KeyEntry<LockTableKey>{"local", "lock on a key"},
    KeyEntry<Meta1Key>{"meta1", "descriptor of the meta2 range that ends there"},
    KeyEntry<Meta2Key>{"meta2", "descriptor of the range that ends there"},
    KeyEntry<NodeLivenessKey>{"system", "node liveness"},
    KeyEntry<KeyspaceAllocatorKey>{"system", "last keyspace id given"},
    KeyEntry<KeyspaceRevisionKey>{"system", "revision of the last change to keyspaces"},
    KeyEntry<KeyspaceChangeKey>{"system", "log of administrative actions"},
    KeyEntry<KeyspaceCollectorKey>{"system", "how fast garbage is collected"},
    KeyEntry<KeyspaceDueKey>{"system", "which keyspaces need work, and when"},
    KeyEntry<KeyspaceGcSafePointKey>{"system", "GC safe point of a keyspace"},
    KeyEntry<KeyspaceNameKey>{"system", "keyspace name to id"},
    KeyEntry<KeyspaceMetaKey>{"system", "keyspace metadata"},
    KeyEntry<KeyspacePurgeKey>{"system", "collection of a dead keyspace"},
    KeyEntry<KeyspaceRequestKey>{"system", "what a request created"},
    KeyEntry<KeyspaceRestoreKey>{"system", "a restore that is under way"},
    KeyEntry<KeyspaceServiceSafePointKey>{"system", "a service's hold on garbage"},
    KeyEntry<KeyspaceTxnSafePointKey>{"system", "txn safe point of a keyspace"},
    KeyEntry<KeyspaceTokenKey>{"system", "token of a keyspace"},
    KeyEntry<SystemKey>{"system", "id generators and singletons"},
    KeyEntry<RangeLogKey>{"system", "log of splits and merges"},
    KeyEntry<NodeStatusKey>{"system", "node status"},
    KeyEntry<SystemVersionKey>{"system", "migrations"},
    KeyEntry<TimeSeriesKey>{"system", "time series"},
    KeyEntry<TableKey>{"table", "tables, reserved"},
    KeyEntry<RawKey>{"raw", "raw key-value data"},
    KeyEntry<CatalogAliasKey>{"catalog", "alias of a model's version"},
    KeyEntry<CatalogBrokerKey>{"catalog", "broker"},
    KeyEntry<CatalogCatalogKey>{"catalog", "catalog"},
    KeyEntry<CatalogDroppedKey>{"catalog", "what is dropped and can come back"},
    KeyEntry<CatalogFilesetKey>{"catalog", "fileset"},
    KeyEntry<CatalogFunctionKey>{"catalog", "function"},
    KeyEntry<CatalogGrantKey>{"catalog", "privileges of a role"},
    KeyEntry<CatalogGroupKey>{"catalog", "group"},
    KeyEntry<CatalogUuidKey>{"catalog", "id to name of a metalake or catalog"},
    KeyEntry<CatalogIdKey>{"catalog", "id to name"},
    KeyEntry<CatalogSearchKey>{"catalog", "where to find by name"},
    KeyEntry<CatalogLogKey>{"catalog", "number of the last change"},
    KeyEntry<CatalogChangeKey>{"catalog", "a change"},
    KeyEntry<CatalogMetalakeKey>{"catalog", "metalake"},
    KeyEntry<CatalogModelKey>{"catalog", "model"},
    KeyEntry<CatalogModelVersionKey>{"catalog", "version of a model"},
    KeyEntry<CatalogNameKey>{"catalog", "name to id, down to schemas"},
    KeyEntry<CatalogLeafNameKey>{"catalog", "name to id, below a schema"},
    KeyEntry<CatalogPolicyKey>{"catalog", "policy"},
    KeyEntry<CatalogPartitionKey>{"catalog", "partition of a table"},
    KeyEntry<CatalogInverseKey>{"catalog", "relation from its other end"},
    KeyEntry<CatalogRelationKey>{"catalog", "relation"},
    KeyEntry<CatalogRoleKey>{"catalog", "role"},
    KeyEntry<CatalogSchemaKey>{"catalog", "schema"},
    KeyEntry<CatalogNextIdKey>{"catalog", "next id that nobody has"},
    KeyEntry<CatalogStatisticKey>{"catalog", "statistic"},
    KeyEntry<CatalogTableKey>{"catalog", "table"},
    KeyEntry<CatalogTagKey>{"catalog", "tag"},
    KeyEntry<CatalogTopicKey>{"catalog", "topic"},
    KeyEntry<CatalogUserKey>{"catalog", "user"},
    KeyEntry<CatalogViewKey>{"catalog", "view"},
    KeyEntry<RedisFenceKey>{"redis", "how many members are where"},
    KeyEntry<RedisFieldTimeKey>{"redis", "when a field of a hash expires"},
    KeyEntry<RedisFieldDueKey>{"redis", "a field of a hash, by when it expires"},
    KeyEntry<RedisMetadataKey>{"redis", "metadata of a key; a string's value"},
    KeyEntry<RedisDatabasesKey>{"redis", "which slot each database has"},
    KeyEntry<RedisSubKey>{"redis", "field, member, element or fragment"},
    KeyEntry<RedisStreamEntryKey>{"redis", "stream entry"},
    KeyEntry<RedisStreamGroupKey>{"redis", "consumer group"},
    KeyEntry<RedisStreamConsumerKey>{"redis", "consumer"},
    KeyEntry<RedisStreamPendingKey>{"redis", "pending entry"},
    KeyEntry<RedisStreamOwnedKey>{"redis", "pending entry of a consumer"},
    KeyEntry<RedisScoreKey>{"redis", "sorted set by score"},
    KeyEntry<FsSuperblockKey>{"fs", "superblock"},
    KeyEntry<FsTreeKey>{"fs", "version of the tree"},
    KeyEntry<FsInodeKey>{"fs", "inode"},
    KeyEntry<FsDataUseKey>{"fs", "use of shared data"},
    KeyEntry<FsExtentKey>{"fs", "extent"},
    KeyEntry<FsLinkKey>{"fs", "link"},
    KeyEntry<FsFiguresKey>{"fs", "figures of a directory"},
    KeyEntry<FsXattrKey>{"fs", "extended attribute"},
    KeyEntry<FsBlockKey>{"fs", "block of file data, in the block store"},
    KeyEntry<FsEntryKey>{"fs", "directory entry"},
    KeyEntry<FsSharedDataKey>{"fs", "references to shared data"},
    KeyEntry<FsSessionKey>{"fs", "session"},
    KeyEntry<FsOpenUnlinkedKey>{"fs", "file open though unlinked"},
    KeyEntry<FsLockKey>{"fs", "locks of an inode"},
    KeyEntry<GarbageKey>{"garbage", "what to collect, by due time"},
    KeyEntry<CounterKey>{"counter", "counters of the tenant"},
    KeyEntry<TikvRegionKey>{"tikv", "a key or border as TiKV's regions see it", Place::foreign},
    KeyEntry<TikvModeEndKey>{"tikv", "right border of a mode's last keyspace", Place::foreign},
    KeyEntry<CrdbTableKey>{"crdb", "table data of CockroachDB", Place::foreign},
    KeyEntry<CrdbTenantPrefix>{"crdb", "tenant of CockroachDB", Place::foreign},
    KeyEntry<CrdbTenantTableKey>{"crdb", "table data of a tenant", Place::foreign},
    KeyEntry<KvrocksMetadataKey>{"kvrocks", "metadata key", Place::by_name},
    KeyEntry<KvrocksSubKey>{"kvrocks", "sub key", Place::by_name},
    KeyEntry<KvrocksScoreKey>{"kvrocks", "score key", Place::by_name},
    KeyEntry<KvrocksStreamEntryKey>{"kvrocks", "stream entry", Place::by_name},
    KeyEntry<KvrocksStreamGroupKey>{"kvrocks", "consumer group", Place::by_name},
    KeyEntry<KvrocksStreamConsumerKey>{"kvrocks", "consumer", Place::by_name},
    KeyEntry<KvrocksStreamPendingKey>{"kvrocks", "pending entry", Place::by_name},
    KeyEntry<KvrocksClusterMetadataKey>{"kvrocks", "metadata key with slot", Place::by_name},
    KeyEntry<KvrocksClusterSubKey>{"kvrocks", "sub key with slot", Place::by_name}};

}  // namespace trellis
