#include "server/store_metrics.h"

namespace trellis {
namespace {

struct Watched {
  const char* name;
  const char* help;
  std::function<double()> read;
};

Status watch_all(Registry& metrics, std::initializer_list<Watched> all) {
  for (const Watched& one : all) TRY(metrics.watch(one.name, one.help, one.read));
  return {};
}

}  // namespace

Status watch_engine(Registry& metrics, const RocksdbEngine& engine) {
  const auto of = [&engine](auto member) {
    return [&engine, member] { return static_cast<double>(engine.figures().*member); };
  };
  using F = EngineFigures;
  return watch_all(
      metrics,
      {{"trellis_store_keys", "Entries of the store, an estimate.", of(&F::keys_estimate)},
       {"trellis_store_live_bytes", "Bytes of live data, an estimate.", of(&F::live_bytes)},
       {"trellis_store_memtable_bytes", "Bytes not yet in tables.", of(&F::memtable_bytes)},
       {"trellis_store_cache_bytes", "Bytes in the block cache.", of(&F::cache_used_bytes)},
       {"trellis_store_compaction_pending_bytes", "Bytes that compactions have yet to rewrite.",
        of(&F::compaction_pending_bytes)},
       {"trellis_store_writes_stopped", "1 while writes wait for a flush or a compaction.",
        of(&F::writes_stopped)},
       {"trellis_store_background_errors", "Failed flushes and compactions.",
        of(&F::background_errors)},
       {"trellis_store_log_syncs", "Syncs of the log.", of(&F::wal_syncs)},
       {"trellis_store_disk_free_bytes", "Free space of the disk.", of(&F::disk_free_bytes)},
       {"trellis_store_disk_reserve_bytes", "What of it is kept: disk-reserve-bytes.",
        of(&F::disk_reserve_bytes)},
       {"trellis_store_adds_refused",
        "1 while less is free, and only reads and deletes are served.", of(&F::adds_refused)}});
}

Status watch_tenants(Registry& metrics, const Keyspaces& keyspaces, const Collector& collector) {
  const auto of = [&collector](auto member) {
    return [&collector, member] { return static_cast<double>(collector.totals().*member); };
  };
  using T = Collector::Totals;
  return watch_all(
      metrics,
      {{"trellis_keyspaces_in_memory", "Keyspaces that were used lately.",
        [&keyspaces] { return static_cast<double>(keyspaces.active_tenants_count()); }},
       {"trellis_collector_steps", "Slices of background work.", of(&T::steps)},
       {"trellis_collector_failed_steps", "Slices that failed and are repeated.",
        of(&T::failed_steps)},
       {"trellis_collector_notes", "Pieces of garbage collected.", of(&T::notes)},
       {"trellis_collector_passed_over",
        "Notes and due entries that make no sense, up to 1,000: see the log.", of(&T::passed_over)},
       {"trellis_collector_purged_bytes", "Bytes of buried keyspaces that were removed.",
        of(&T::purged_bytes)}});
}

Status watch_backups(Registry& metrics, const Backups& backups) {
  return watch_all(
      metrics,
      {{"trellis_backup_kept_copy_bytes",
        "Of the copy of the store that a failed backup keeps until it is resumed or canceled.",
        [&backups] {
          uint64_t bytes = 0;
          for (const JobStatus& job : backups.jobs()) bytes += job.copy_bytes;
          return static_cast<double>(bytes);
        }}});
}

Status watch_ranges(Registry& metrics, EmbeddedRanges& ranges) {
  const auto of = [&ranges](auto member) {
    return [&ranges, member] { return static_cast<double>(ranges.cache().figures().*member); };
  };
  using F = RangeCacheFigures;
  return watch_all(
      metrics,
      {{"trellis_ranges", "Ranges of the map.",
        [&ranges] { return static_cast<double>(ranges.keeper().accounting().ranges()); }},
       {"trellis_range_cache_hits", "Lookups that needed no read.", of(&F::hits)},
       {"trellis_range_cache_misses", "Lookups that found nothing in the cache.", of(&F::misses)},
       {"trellis_range_cache_lookups", "Times that the directory was asked.", of(&F::lookups)},
       {"trellis_range_cache_stale_hops", "Lookups that found an old descriptor.",
        of(&F::stale_hops)},
       {"trellis_range_cache_bytes", "Memory of the cache of descriptors.", of(&F::bytes)}});
}

}  // namespace trellis
