// Who decides on splits and merges, and keeps the figures of ranges.
//
//   border  a keyspace that lives begins inside of the range: it is cut there
//   size    over range_bytes_max: it is counted, and if that is so, cut into halves of it
//   load    over range_load_max for 10 s: it is cut where sampled keys say, once a minute
//   merge   two neighbours together under a quarter of the size and half of the load, both counted
//           and a minute old, not sticky, not at the border of a keyspace that lives
//
// Each decision is carried out through RangeHome, with its reason; plan() says what would be done.
// Every 10 s the figures of ranges that have news go to the time series, the sizes to
//
//   01 'i' range 'r' 'stat'  ->  | 01 | bytes u64be | keys u64be | counted u64be, unix ms |
//
// from which they are known after a restart, and the node's status to 04 'status-node-'.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "range/accounting.h"
#include "range/pace.h"
#include "range/range_home.h"
#include "range/time_series.h"

namespace trellis {

struct KeeperOptions {
  uint64_t range_bytes_max = 64ull << 20;
  uint64_t range_load_max = 25'000;  // reads and writes per second
  uint64_t walk_bytes_per_s = 64ull << 20;
  uint64_t tick_ms = 1'000;
  TimeSeriesOptions series = {};
  NodeId node = {};
  std::string version = {};
  // The keyspaces that live, by id.
  std::function<Result<std::vector<KeyspaceId>>()> living = {};
  // Told after each change, by the thread that made it.
  std::function<void(const RangeDescriptor&)> changed = [](const RangeDescriptor&) {};
};

struct RangeAction {
  enum class Kind : uint8_t { split, merge, count };
  Kind kind;
  RangeDescriptor range;                 // of a merge the left one
  Bytes at;                              // of a split the start of its right part
  std::optional<RangeDescriptor> right;  // of a merge
  std::string reason;
};
std::string_view to_string(RangeAction::Kind kind);

struct RangeCount {
  RangeDescriptor range;
  uint64_t bytes = 0;
  uint64_t keys = 0;
};

// Any thread.
class RangeKeeper {
 public:
  RangeKeeper(Engine& engine, Clock& clock, RangeHome& home, RangeAccounting& accounting,
              KeeperOptions options);
  ~RangeKeeper() { stop(); }

  // Fills the accounting. REQUIRES: called once, before everything else.
  Status load();
  // The accounting follows ranges that were repaired behind its back.
  Status reload();

  // A thread that ticks until stop.
  void start();
  void stop();
  // Nothing is decided while paused; figures are kept, and splits and merges by hand are made.
  void set_paused(bool paused) { paused_ = paused; }
  bool paused() const { return paused_; }

  // One round: what plan() says, as much of it as one round may do, and figures that are due.
  Status tick();
  // Code::unavailable if the keyspaces cannot be read.
  Result<std::vector<RangeAction>> plan();

  // By hand. The range is the one that holds the address.
  Result<std::pair<RangeDescriptor, RangeDescriptor>> split(ByteView at, uint64_t sticky_until_ms,
                                                            std::string_view reason);
  // The range that holds the address, with the one to its right.
  Result<RangeDescriptor> merge(ByteView address, std::string_view reason);
  // As counted by somebody who walked all of the range.
  void set_counted(const RangeCount& count);

  const RangeAccounting& accounting() const { return accounting_; }
  const TimeSeries& series() const { return series_; }
  const KeeperOptions& options() const { return options_; }

 private:
  struct Window;
  void plan_borders(const Window& window, std::vector<RangeAction>& actions) const;
  void plan_sizes(const Window& window, std::vector<RangeAction>& actions) const;
  void plan_loads(const Window& window, std::vector<RangeAction>& actions) const;
  void plan_merges(const Window& window, std::vector<RangeAction>& actions) const;
  Result<Window> look(ByteView from, size_t limit) const;
  Status carry_out(const RangeAction& action);
  Status count_and_cut(const RangeAction& action);
  Result<RangeDescriptor> merge_ranges(const RangeDescriptor& left, const RangeDescriptor& right,
                                       std::string_view reason);
  Status keep_up();
  Status keep_figures();
  Status store_status();
  void run();

  Engine& engine_;
  Clock& clock_;
  RangeHome& home_;
  RangeAccounting& accounting_;
  const KeeperOptions options_;
  TimeSeries series_;
  Pace pace_;
  const uint64_t started_ms_;
  Bytes cursor_;          // where the next round looks
  uint64_t kept_us_ = 0;  // when rates and figures were looked at
  uint64_t figures_us_ = 0;
  std::atomic<bool> paused_{false};

  // Held from a change until it is accounted for, so that both are in one order.
  std::mutex changing_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace trellis
