#include "range/accounting.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "codec/address.h"
#include "codec/counter_value.h"
#include "codec/tenant_keys.h"

namespace trellis {
namespace {

constexpr double rate_memory_s = 5;  // a rate is mostly of the last so many seconds

// The address under which a key is found; nothing for what belongs to no range.
bool address_into(Bytes& out, ByteView key) {
  out.clear();
  return append_address(out, key).has_value();
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

void RangeAccounting::replace(std::span<const RangeDescriptor> before,
                              std::span<const RangeDescriptor> after, uint64_t now_us) {
  const std::unique_lock lock(mutex_);
  int64_t bytes = 0;
  int64_t keys = 0;
  double reads = 0;
  double writes = 0;
  uint64_t counted_ms = before.empty() ? 0 : ~0ull;
  uint64_t changed_us = 0;
  bool is_exact = !before.empty() && after.size() == 1;
  for (const RangeDescriptor& range : before) {
    const auto at = by_start_.find(range.start);
    is_exact = is_exact && at != by_start_.end() && at->second->is_exact;
    if (at == by_start_.end()) continue;
    const std::shared_ptr<Entry> kept = at->second;  // its mutex must outlive the lock
    const Entry& entry = *kept;
    const std::lock_guard entry_lock(entry.mutex);
    bytes += entry.bytes;
    keys += entry.keys;
    reads += entry.reads_per_s;
    writes += entry.writes_per_s;
    counted_ms = std::min(counted_ms, entry.counted_ms);
    changed_us = std::max(changed_us, entry.changed_us);
    by_id_.erase(entry.range.id.value);
    by_start_.erase(at);
  }
  const auto parts = static_cast<int64_t>(after.size());
  for (const RangeDescriptor& range : after) {
    auto entry = std::make_shared<Entry>(range, now_us);
    entry->bytes = bytes / parts;
    entry->keys = keys / parts;
    entry->is_exact = is_exact;
    entry->reads_per_s = reads / static_cast<double>(parts);
    entry->writes_per_s = writes / static_cast<double>(parts);
    // What was counted apart is known of the whole, and a whole is as old as its parts; what was
    // cut has to be counted, and to rest.
    if (parts == 1 && !before.empty() && counted_ms != ~0ull) {
      entry->counted_ms = counted_ms;
      entry->changed_us = changed_us;
    }
    if (!before.empty()) entry->set_news(bytes + keys > 0);
    by_start_[range.start] = entry;
    by_id_[range.id.value] = entry;
  }
}

void RangeAccounting::set_size(const RangeDescriptor& range, uint64_t bytes, uint64_t keys,
                               uint64_t counted_ms, bool is_exact) {
  const auto entry = entry_of(range.id);
  if (!entry || entry->range != range) return;
  entry->bytes = static_cast<int64_t>(bytes);
  entry->keys = static_cast<int64_t>(keys);
  entry->drift_bytes = 0;
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
}

void RangeAccounting::tick(uint64_t now_us, double busy_per_s) {
  const std::shared_lock lock(mutex_);
  const uint64_t since_us = ticked_us_ == 0 ? 0 : now_us - ticked_us_;
  ticked_us_ = now_us;
  if (since_us == 0) return;
  const double seconds = static_cast<double>(since_us) / 1e6;
  const double part = 1 - std::exp(-seconds / rate_memory_s);
  for (const auto& [start, entry] : by_start_) {
    const uint64_t reads = entry->reads.exchange(0, std::memory_order_relaxed);
    const uint64_t writes = entry->writes.exchange(0, std::memory_order_relaxed);
    const std::lock_guard entry_lock(entry->mutex);
    if (reads + writes == 0 && entry->reads_per_s + entry->writes_per_s == 0) continue;
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
  }
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
  const std::shared_lock lock(mutex_);
  auto at = by_start_.upper_bound(from);
  if (at != by_start_.begin()) --at;
  std::vector<RangeFigures> all;
  for (; at != by_start_.end() && all.size() < limit; ++at) all.push_back(figures_of(*at->second));
  return all;
}

std::vector<RangeFigures> RangeAccounting::take_news() {
  const std::shared_lock lock(mutex_);
  std::vector<RangeFigures> news;
  for (const auto& [start, entry] : by_start_)
    if (entry->has_news.exchange(false, std::memory_order_relaxed))
      news.push_back(figures_of(*entry));
  return news;
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
