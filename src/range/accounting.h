// Reads and writes per second, bytes and keys of every range.
//
// A sample of the transactions is looked at (map/traffic.h), each as if it were `weight` of them:
// the standard error of a figure of n operations is sqrt(weight / n) of it, 4 % of 10,000. Bytes
// and keys are the differences that a sampled transaction says of itself (its adds to the counters
// of its tenant), given to the range of the first key that it writes; so they drift, and are exact
// when a range was counted. System records say no difference: their bytes are those of the last
// count.
//
// Threads: any. What looks at all ranges does so in pieces, so that nobody waits for all of it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "engine/write_set.h"
#include "range/descriptor.h"
#include "range/load_split.h"

namespace trellis {

struct RangeFigures {
  RangeDescriptor range;
  double reads_per_s = 0;
  double writes_per_s = 0;
  uint64_t bytes = 0;
  uint64_t keys = 0;
  uint64_t counted_ms = 0;     // unix; 0: never counted
  uint64_t changed_us = 0;     // when it was cut; 0: not since it was found
  uint64_t busy_since_us = 0;  // over the threshold since; 0: it is not
  uint64_t uncuttable_us = 0;  // found to be large, without a place to cut; 0: never
  bool was_used = false;       // it held something, or was asked for something, at some time
  // How much was added and removed, together, since it was counted.
  uint64_t drift_bytes = 0;
  uint64_t drift_keys = 0;
  bool is_exact = false;  // bytes and keys are as counted; no sampled write was seen since
};

struct RangeTotals {
  size_t ranges = 0;
  uint64_t bytes = 0;
  uint64_t keys = 0;
  double reads_per_s = 0;
  double writes_per_s = 0;
};

class RangeAccounting {
 public:
  explicit RangeAccounting(unsigned weight) : weight_(weight) {}

  // An interval is cut into these from now on. What was known of its ranges before they share
  // evenly, or one gets it together. Nothing, if a range in it is known to be newer, unless what is
  // known may be wrong.
  // REQUIRES: not empty, neighbours, by start
  enum class Known : bool { newest_counts, may_be_wrong };
  void replace(std::span<const RangeDescriptor> after, uint64_t now_us,
               Known known = Known::newest_counts);
  // As counted, or as stored when the server stopped last, which is not exact. Nothing, if the
  // range is another by now.
  void set_size(const RangeDescriptor& range, uint64_t bytes, uint64_t keys, uint64_t counted_ms,
                bool is_exact = true);
  void set_uncuttable(RangeId range, uint64_t now_us);

  // Keys read and written by one transaction out of `weight`.
  void sampled(std::span<const Bytes> reads, const WriteSet& writes);

  // Rates follow what was seen since the last call; ranges over the threshold gather places to be
  // cut at.
  void tick(uint64_t now_us, double busy_per_s);

  std::optional<RangeFigures> find(ByteView address) const;
  std::optional<RangeFigures> find(RangeId range) const;
  // By start, from the range that holds the address on.
  std::vector<RangeFigures> figures(ByteView from, size_t limit) const;
  // The busiest, the busiest first.
  std::vector<RangeFigures> hottest(size_t limit) const;
  RangeTotals totals() const;
  // Those with traffic or other figures since the last call, in pieces. A visit that fails ends it;
  // its piece, and what comes behind, are news again.
  Status take_news(FunctionRef<Status(std::span<const RangeFigures>)> visit);
  std::optional<Bytes> load_split_at(RangeId range) const;
  size_t ranges() const;

 private:
  struct Entry;
  using Entries = std::map<Bytes, std::shared_ptr<Entry>, std::less<>>;

  std::shared_ptr<Entry> entry_at(ByteView address) const;  // REQUIRES: the mutex is held
  std::shared_ptr<Entry> entry_of(RangeId range) const;
  std::vector<std::shared_ptr<Entry>> overlapping(ByteView start, ByteView end) const;  // as above
  // All entries from an address on, until it says stop.
  template <class See>
  void for_each_entry(ByteView from, See see) const;
  static RangeFigures figures_of(const Entry& entry);

  const unsigned weight_;
  mutable std::shared_mutex mutex_;
  Entries by_start_;
  std::map<uint64_t, std::shared_ptr<Entry>> by_id_;
  std::atomic<uint64_t> ticked_us_{0};
};

}  // namespace trellis
