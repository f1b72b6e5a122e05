// What the store and its background work say of themselves, for /metrics.
#pragma once

#include "backup/backups.h"
#include "base/metrics.h"
#include "range/embedded_ranges.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "tenant/collector.h"
#include "tenant/keyspaces.h"

namespace trellis {

// Everything must outlive the registry.
Status watch_engine(Registry& metrics, const RocksdbEngine& engine);
Status watch_tenants(Registry& metrics, const Keyspaces& keyspaces, const Collector& collector);
Status watch_backups(Registry& metrics, const Backups& backups);
Status watch_ranges(Registry& metrics, EmbeddedRanges& ranges);

}  // namespace trellis
