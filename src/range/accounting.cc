#include "range/accounting.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "codec/address.h"
#include "codec/counter_value.h"
#include "codec/tenant_keys.h"
#include "engine/engine.h"

namespace trellis {
namespace {

constexpr size_t piece_entries = 1'000;  // looked at under one lock
constexpr double rate_memory_s = 5;      // a rate is mostly of the last so many seconds

// The address under which a key is found; nothing for what belongs to no range.
bool address_into(Bytes& out, ByteView key) {
  out.clear();
  return append_address(out, key).has_value();
}

// Of what several share evenly, so that nothing is lost.
template <class Number>
Number share_of(Number all, size_t shares, size_t index) {
  const auto count = static_cast<Number>(shares);
  return all / count + (index == 0 ? all % count : Number{0});
}

uint64_t at_least_zero(int64_t value) { return value < 0 ? 0 : static_cast<uint64_t>(value); }

}  // namespace

struct RangeAccounting::Entry {
  explicit Entry(RangeDescriptor descriptor, uint64_t now_us)
      : range(std::move(descriptor)), changed_us(now_us) {}

  const RangeDescriptor range;
  std::atomic<uint64_t> reads{0};  // since the last tick
  std::atomic<uint64_t> writes{0};
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> keys{0};
  std::atomic<bool> has_news{false};
  std::atomic<bool> was_used{false};
  std::atomic<uint64_t> drift_bytes{0};
  std::atomic<uint64_t> drift_keys{0};
  std::atomic<bool> is_exact{false};
  std::atomic<bool> gathers{false};
  mutable std::mutex mutex;
  double reads_per_s = 0;
  double writes_per_s = 0;
  uint64_t counted_ms = 0;
  uint64_t changed_us;
  uint64_t busy_since_us = 0;
  uint64_t uncuttable_us = 0;
  std::unique_ptr<LoadSplit> split;  // while it is busy

  void set_news(bool used) {
    has_news.store(true, std::memory_order_relaxed);
    if (used) was_used.store(true, std::memory_order_relaxed);
  }

  void gather(ByteView address) {
    if (!gathers.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex);
    if (split) split->record(address);
  }
};

std::shared_ptr<RangeAccounting::Entry> RangeAccounting::entry_at(ByteView address) const {
  auto at = by_start_.upper_bound(address);
  if (at == by_start_.begin()) return nullptr;
  --at;
  return at->second->range.holds(address) ? at->second : nullptr;
}

std::shared_ptr<RangeAccounting::Entry> RangeAccounting::entry_of(RangeId range) const {
  const std::shared_lock lock(mutex_);
  const auto at = by_id_.find(range.value);
  return at == by_id_.end() ? nullptr : at->second;
}

std::vector<std::shared_ptr<RangeAccounting::Entry>> RangeAccounting::overlapping(
    ByteView start, ByteView end) const {
  auto at = by_start_.upper_bound(start);
  if (at != by_start_.begin() && std::prev(at)->second->range.end > start) --at;
  std::vector<std::shared_ptr<Entry>> found;
  for (; at != by_start_.end() && at->first < end; ++at) found.push_back(at->second);
  return found;
}

template <class See>
void RangeAccounting::for_each_entry(ByteView from, See see) const {
  std::vector<std::shared_ptr<Entry>> piece;
  Bytes last;
  do {
    {
      const std::shared_lock lock(mutex_);
      auto at = by_start_.upper_bound(piece.empty() ? from : ByteView(last));
      // Where a range is lost, the one before it does not hold the address.
      if (piece.empty() && at != by_start_.begin() && std::prev(at)->second->range.end > from) --at;
      piece.clear();
      for (; at != by_start_.end() && piece.size() < piece_entries; ++at)
        piece.push_back(at->second);
    }
    for (const auto& entry : piece)
      if (see(entry) == Visit::stop) return;
    if (!piece.empty()) last = piece.back()->range.start;
  } while (piece.size() == piece_entries);
}

void RangeAccounting::replace(std::span<const RangeDescriptor> after, uint64_t now_us,
                              Known known) {
  const std::unique_lock lock(mutex_);
  // Kept until the end: their mutexes must outlive the locks.
  const auto before = overlapping(after.front().start, after.back().end);
  auto newer = after.begin();
  for (const auto& entry : before) {
    while (newer != after.end() && newer->end <= entry->range.start) ++newer;
    for (auto at = newer; at != after.end() && at->start < entry->range.end; ++at)
      if (known == Known::newest_counts && at->generation <= entry->range.generation) return;
  }
  Entry sum(after.front(), 0);
  uint64_t counted_ms = before.empty() ? 0 : ~0ull;
  bool is_exact = !before.empty() && after.size() == 1;
  for (const auto& kept : before) {
    is_exact = is_exact && kept->is_exact;
    const Entry& entry = *kept;
    const std::lock_guard entry_lock(entry.mutex);
    sum.bytes += entry.bytes;
    sum.keys += entry.keys;
    sum.drift_bytes += entry.drift_bytes;
    sum.drift_keys += entry.drift_keys;
    sum.reads += entry.reads;
    sum.writes += entry.writes;
    sum.reads_per_s += entry.reads_per_s;
    sum.writes_per_s += entry.writes_per_s;
    counted_ms = std::min(counted_ms, entry.counted_ms);
    sum.changed_us = std::max(sum.changed_us, entry.changed_us);
    sum.was_used = sum.was_used || entry.was_used;
    by_id_.erase(entry.range.id.value);
    by_start_.erase(entry.range.start);
  }
  const size_t parts = after.size();
  for (size_t i = 0; i < parts; i++) {
    auto entry = std::make_shared<Entry>(after[i], now_us);
    entry->is_exact = is_exact;
    entry->bytes = share_of<int64_t>(sum.bytes, parts, i);
    entry->keys = share_of<int64_t>(sum.keys, parts, i);
    entry->drift_bytes = share_of<uint64_t>(sum.drift_bytes, parts, i);
    entry->drift_keys = share_of<uint64_t>(sum.drift_keys, parts, i);
    entry->reads = share_of<uint64_t>(sum.reads, parts, i);
    entry->writes = share_of<uint64_t>(sum.writes, parts, i);
    entry->reads_per_s = sum.reads_per_s / static_cast<double>(parts);
    entry->writes_per_s = sum.writes_per_s / static_cast<double>(parts);
    // What was counted apart is known of the whole, and a whole is as old as its parts; what was
    // cut has to be counted, and to rest.
    if (parts == 1 && !before.empty()) {
      entry->counted_ms = counted_ms;
      entry->changed_us = sum.changed_us;
    }
    if (!before.empty()) entry->set_news(sum.was_used);
    by_start_[after[i].start] = entry;
    by_id_[after[i].id.value] = entry;
  }
}

void RangeAccounting::set_size(const RangeDescriptor& range, uint64_t bytes, uint64_t keys,
                               uint64_t counted_ms, bool is_exact) {
  const auto entry = entry_of(range.id);
  if (!entry || entry->range != range) return;
  entry->bytes = static_cast<int64_t>(bytes);
  entry->keys = static_cast<int64_t>(keys);
  entry->drift_bytes = 0;
  entry->drift_keys = 0;
  entry->is_exact = is_exact;
  entry->set_news(bytes + keys > 0);
  const std::lock_guard lock(entry->mutex);
  entry->counted_ms = counted_ms;
}

void RangeAccounting::set_uncuttable(RangeId range, uint64_t now_us) {
  const auto entry = entry_of(range);
  if (!entry) return;
  const std::lock_guard lock(entry->mutex);
  entry->uncuttable_us = now_us;
}

void RangeAccounting::sampled(std::span<const Bytes> reads, const WriteSet& writes) {
  thread_local Bytes address;
  const std::shared_lock lock(mutex_);
  std::shared_ptr<Entry> entry;  // neighbours are likely
  bool gathered = false;
  const auto look = [&](ByteView key) -> Entry* {
    if (is_counter_key(key) || !address_into(address, key)) return nullptr;
    if (!entry || !entry->range.holds(address)) entry = entry_at(address);
    if (!entry) return nullptr;
    entry->set_news(true);
    // One place of each transaction will do: those of a long pipeline are alike, and cost.
    if (!std::exchange(gathered, true)) entry->gather(address);
    return entry.get();
  };
  for (const Bytes& key : reads)
    if (Entry* const found = look(key)) found->reads.fetch_add(weight_, std::memory_order_relaxed);
  std::shared_ptr<Entry> first_written;
  int64_t bytes = 0;
  int64_t keys = 0;
  for (const WriteSet::Write write : writes) {
    if (write.op == WriteOp::add) {
      const auto counter = decode<CounterKey>(write.key);
      if (counter) (counter->counter == CounterName::bytes ? bytes : keys) += write.delta;
      continue;
    }
    Entry* const found = look(write.key);
    if (found == nullptr) continue;
    found->writes.fetch_add(weight_, std::memory_order_relaxed);
    if (!first_written) first_written = entry;
  }
  if (!first_written) return;
  first_written->is_exact.store(false, std::memory_order_relaxed);
  first_written->bytes.fetch_add(bytes * weight_, std::memory_order_relaxed);
  first_written->drift_bytes.fetch_add(static_cast<uint64_t>(std::abs(bytes)) * weight_,
                                       std::memory_order_relaxed);
  first_written->keys.fetch_add(keys * weight_, std::memory_order_relaxed);
  first_written->drift_keys.fetch_add(static_cast<uint64_t>(std::abs(keys)) * weight_,
                                      std::memory_order_relaxed);
}

void RangeAccounting::tick(uint64_t now_us, double busy_per_s) {
  const uint64_t before_us = ticked_us_.exchange(now_us);
  if (before_us == 0 || before_us >= now_us) return;
  const double seconds = static_cast<double>(now_us - before_us) / 1e6;
  const double part = 1 - std::exp(-seconds / rate_memory_s);
  for_each_entry({}, [&](const std::shared_ptr<Entry>& entry) {
    const uint64_t reads = entry->reads.exchange(0, std::memory_order_relaxed);
    const uint64_t writes = entry->writes.exchange(0, std::memory_order_relaxed);
    const std::lock_guard entry_lock(entry->mutex);
    if (reads + writes == 0 && entry->reads_per_s + entry->writes_per_s == 0) return Visit::go_on;
    entry->reads_per_s += part * (static_cast<double>(reads) / seconds - entry->reads_per_s);
    entry->writes_per_s += part * (static_cast<double>(writes) / seconds - entry->writes_per_s);
    if (entry->reads_per_s + entry->writes_per_s < 0.01)
      entry->reads_per_s = entry->writes_per_s = 0;
    const bool busy = entry->reads_per_s + entry->writes_per_s > busy_per_s;
    if (busy && entry->busy_since_us == 0) {
      entry->busy_since_us = now_us;
      entry->split = std::make_unique<LoadSplit>(now_us);
    } else if (!busy && entry->busy_since_us != 0) {
      entry->busy_since_us = 0;
      entry->split.reset();
    }
    entry->gathers = busy;
    return Visit::go_on;
  });
}

RangeFigures RangeAccounting::figures_of(const Entry& entry) {
  const std::lock_guard lock(entry.mutex);
  return {.range = entry.range,
          .reads_per_s = entry.reads_per_s,
          .writes_per_s = entry.writes_per_s,
          .bytes = at_least_zero(entry.bytes),
          .keys = at_least_zero(entry.keys),
          .counted_ms = entry.counted_ms,
          .changed_us = entry.changed_us,
          .busy_since_us = entry.busy_since_us,
          .uncuttable_us = entry.uncuttable_us,
          .was_used = entry.was_used,
          .drift_bytes = entry.drift_bytes,
          .drift_keys = entry.drift_keys,
          .is_exact = entry.is_exact};
}

std::optional<RangeFigures> RangeAccounting::find(ByteView address) const {
  const std::shared_lock lock(mutex_);
  const auto entry = entry_at(address);
  if (!entry) return {};
  return figures_of(*entry);
}

std::optional<RangeFigures> RangeAccounting::find(RangeId range) const {
  const auto entry = entry_of(range);
  if (!entry) return {};
  return figures_of(*entry);
}

std::vector<RangeFigures> RangeAccounting::figures(ByteView from, size_t limit) const {
  std::vector<RangeFigures> all;
  for_each_entry(from, [&](const std::shared_ptr<Entry>& entry) {
    if (all.size() == limit) return Visit::stop;
    all.push_back(figures_of(*entry));
    return Visit::go_on;
  });
  return all;
}

std::vector<RangeFigures> RangeAccounting::hottest(size_t limit) const {
  using Load = std::pair<double, std::shared_ptr<Entry>>;
  const auto busier = [](const Load& a, const Load& b) { return a.first > b.first; };
  std::vector<Load> most;  // a heap: the least busy of them in front
  for_each_entry({}, [&](const std::shared_ptr<Entry>& entry) {
    double load = 0;
    {
      const std::lock_guard lock(entry->mutex);
      load = entry->reads_per_s + entry->writes_per_s;
    }
    if (most.size() == limit) {
      if (most.empty() || load <= most.front().first) return Visit::go_on;
      std::pop_heap(most.begin(), most.end(), busier);
      most.pop_back();
    }
    most.emplace_back(load, entry);
    std::push_heap(most.begin(), most.end(), busier);
    return Visit::go_on;
  });
  std::sort_heap(most.begin(), most.end(), busier);
  std::vector<RangeFigures> all;
  all.reserve(most.size());
  for (const auto& [load, entry] : most) all.push_back(figures_of(*entry));
  return all;
}

RangeTotals RangeAccounting::totals() const {
  RangeTotals totals;
  for_each_entry({}, [&](const std::shared_ptr<Entry>& entry) {
    totals.ranges++;
    totals.bytes += at_least_zero(entry->bytes);
    totals.keys += at_least_zero(entry->keys);
    const std::lock_guard lock(entry->mutex);
    totals.reads_per_s += entry->reads_per_s;
    totals.writes_per_s += entry->writes_per_s;
    return Visit::go_on;
  });
  return totals;
}

Status RangeAccounting::take_news(FunctionRef<Status(std::span<const RangeFigures>)> visit) {
  std::vector<std::shared_ptr<Entry>> piece;
  std::vector<RangeFigures> news;
  Status visited;
  const auto show = [&] {
    if (news.empty()) return;
    visited = visit(news);
    for (const auto& entry : piece)
      if (!visited) entry->has_news = true;
    piece.clear();
    news.clear();
  };
  for_each_entry({}, [&](const std::shared_ptr<Entry>& entry) {
    if (!entry->has_news.exchange(false, std::memory_order_relaxed)) return Visit::go_on;
    piece.push_back(entry);
    news.push_back(figures_of(*entry));
    if (news.size() == piece_entries) show();
    return visited ? Visit::go_on : Visit::stop;
  });
  if (visited) show();
  return visited;
}

std::optional<Bytes> RangeAccounting::load_split_at(RangeId range) const {
  const auto entry = entry_of(range);
  if (!entry) return {};
  const std::lock_guard lock(entry->mutex);
  return entry->split ? entry->split->best() : std::nullopt;
}

size_t RangeAccounting::ranges() const {
  const std::shared_lock lock(mutex_);
  return by_start_.size();
}

}  // namespace trellis
