// Who decides on splits and merges, and keeps the figures of ranges.
//
//   border  a keyspace that lives begins inside of the range: it is cut there
//   size    over range_bytes_max: it is counted, and if that is so, cut into halves of it
//   keys    over range_keys_max: the same
//   load    over range_load_max for 10 s: it is cut where sampled keys say, once a minute
//   merge   two neighbours together under a quarter of size and keys and half of the load, both
//           counted and a minute old, not sticky, not at the border of a keyspace that lives
//
// Each decision is carried out through RangeHome, with its reason; plan() says what would be done.
// A range that cannot be changed or counted is left alone for a while, longer each time; the others
// are not. Counting takes long and is done beside the rounds, one range at a time.
//
// Every 10 s the figures of ranges that have news go to the time series, the node's status to
// 04 'status-node-', and, unless the map is shared with others (its first range would hold a record
// of every range), the sizes to records from which they are known after a restart (stored_size.h).
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/job_control.h"
#include "range/accounting.h"
#include "range/range_home.h"
#include "range/size_split.h"
#include "range/time_series.h"

namespace trellis {

struct KeeperOptions {
  uint64_t range_bytes_max = 64ull << 20;
  uint64_t range_keys_max = 1'000'000;
  uint64_t range_load_max = 25'000;  // reads and writes per second
  uint64_t walk_bytes_per_s = 64ull << 20;
  // Splits and merges copy what they move: they keep to walk_bytes_per_s too.
  bool changes_copy = false;
  // Others cut ranges, and write to them, too: so often ranges are listed again, and each counted
  // again. 0: nobody else does.
  uint64_t relist_ms = 0;
  uint64_t recount_ms = 0;
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

struct RangePlan {
  std::vector<RangeAction> actions;  // the first of them
  size_t total = 0;
};

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

  // Threads that tick and count until stop.
  void start();
  void stop();
  // Nothing is decided while paused; figures are kept, and splits and merges by hand are made. A
  // change that is under way is waited for.
  void set_paused(bool paused) {
    paused_ = paused;
    const std::lock_guard lock(changing_);
  }
  bool paused() const { return paused_; }

  // One round: what plan() says, as much of it as one round may do, and figures that are due.
  Status tick();
  // One piece of what takes long: ranges are listed again if that is due, else one that waits for
  // it is counted, and cut. False: nothing waits.
  bool count_next();
  // What rounds would do, with no more than so many of the actions.
  // Code::unavailable if the keyspaces cannot be read.
  Result<RangePlan> plan(size_t actions_max);

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
  // What failed: something with a range, or its merge with the one to its right, which may be why.
  struct Attempt {
    RangeId range;
    bool is_merge;
    auto operator<=>(const Attempt&) const = default;
  };
  struct Failure {
    uint64_t until_us = 0;
    unsigned times = 0;
  };
  void plan_borders(const Window& window, std::vector<RangeAction>& actions) const;
  void plan_counts(const Window& window, std::vector<RangeAction>& actions) const;
  void plan_loads(const Window& window, std::vector<RangeAction>& actions) const;
  void plan_merges(const Window& window, std::vector<RangeAction>& actions) const;
  std::string count_reason(const Window& window, const RangeFigures& figures) const;
  Result<std::vector<KeyspaceId>> living() const;
  Window look(ByteView from, const std::vector<KeyspaceId>& living);
  Status decide();
  Status carry_out(const RangeAction& action);
  void let_wait(std::vector<RangeAction> counts);
  // What did not go well is left alone for a while. False: it is to blame.
  bool settle(const RangeDescriptor& range, bool is_merge, const Status& done);
  Status count_and_cut(const RangeDescriptor& range);
  Status cut(const RangeDescriptor& range, const SizeSplit& counted,
             std::span<const SizeSplit::Part> parts);
  Status relist();
  Result<std::pair<RangeDescriptor, RangeDescriptor>> split_range(const SplitRequest& request);
  Result<RangeDescriptor> merge_ranges(const RangeDescriptor& left, const RangeDescriptor& right,
                                       std::string_view reason);
  void copied(uint64_t bytes);
  Status keep_figures();
  Status store_figures(std::span<const RangeFigures> news);
  Status store_status();
  template <class Work>
  void run(Work work);

  Engine& engine_;
  Clock& clock_;
  RangeHome& home_;
  RangeAccounting& accounting_;
  const KeeperOptions options_;
  const SizeLimits limits_{options_.range_bytes_max, options_.range_keys_max};
  TimeSeries series_;
  JobControl walks_;  // their pace
  const uint64_t started_ms_;
  Bytes cursor_;  // where the next round looks
  uint64_t figures_us_ = 0;
  uint64_t listed_us_ = 0;
  std::atomic<bool> paused_{false};

  std::mutex waiting_mutex_;
  std::deque<RangeAction> counts_;  // wait to be counted; the first one may be under way
  std::map<Attempt, Failure> failures_;

  // Held from a change until it is accounted for, so that both are in one order.
  std::mutex changing_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> stopping_{false};
  std::thread ticking_;
  std::thread counting_;
};

}  // namespace trellis
