#include "cluster_engine/cluster_ranges.h"

#include "base/log.h"

namespace trellis {

KeeperOptions cluster_keeper_options() {
  return {
      .range_keys_max = 50'000, .changes_copy = true, .relist_ms = 60'000, .recount_ms = 3'600'000};
}

ClusterRanges::ClusterRanges(ObjectStore& store, Engine& engine, Clock& clock,
                             RangeAccounting& accounting, Options options)
    : ids_(store),
      log_(engine),
      home_(
          store, clock, [this] { return ids_.next(); }, options.changes,
          [this, &clock](RangeEvent event) {
            event.time_ms = clock.unix_ms();
            if (const Status recorded = log_.record(event); !recorded)
              log_warn("the log of ranges misses an entry",
                       {{"action", event.action},
                        {"range", to_string(event.left)},
                        {"reason", event.reason},
                        {"error", to_string(recorded.error())}});
          }),
      keeper_(engine, clock, home_, accounting, std::move(options.keeper)) {}

Result<std::unique_ptr<ClusterRanges>> ClusterRanges::open(ObjectStore& store, Engine& engine,
                                                           Clock& clock,
                                                           RangeAccounting& accounting,
                                                           Options options) {
  std::unique_ptr<ClusterRanges> ranges(
      new ClusterRanges(store, engine, clock, accounting, std::move(options)));
  TRY(ranges->keeper_.load());
  return ranges;
}

}  // namespace trellis
