// Counters, gauges and histograms that cost a few instructions, and their text for Prometheus.
//
//   Registry registry;
//   TRY_ASSIGN(Counter hits, registry.counter("cache_hits_total", "Reads.", {{"cache", "block"}}));
//   hits.add();                                    // any thread
//   std::string page = prometheus_text(registry);  // any thread
//
// Each thread adds into cache lines of its own, which a scrape sums: nothing hot is shared. A
// thread that ends leaves its totals behind, and the next new thread adds to them. Register at
// start-up and keep the handle; a series costs some 10 KiB, so labels are for a few known values,
// not for tenants.
//
// Handles are small values that must not outlive their registry.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace trellis {

namespace metrics_detail {

constexpr uint32_t slots_max = 128;
constexpr uint32_t shared_slot = slots_max - 1;  // for threads that found no other free
constexpr uint32_t no_slot = slots_max;          // for threads that have not asked yet

struct alignas(64) Line {
  std::atomic<uint64_t> cells[8]{};
};

// constinit: no guard to check at each access. metrics.cc gives the slot back at the thread's end.
extern constinit thread_local uint32_t thread_slot;
uint32_t take_slot();

inline uint32_t slot() {
  const uint32_t mine = thread_slot;
  return mine != no_slot ? mine : take_slot();
}

inline void add(std::atomic<uint64_t>& cell, uint64_t amount, uint32_t slot) {
  if (slot == shared_slot) {
    cell.fetch_add(amount, std::memory_order_relaxed);
  } else {  // the only writer, so it needs no locked instruction
    cell.store(cell.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
}

// Of one cell over all slots, each of which has `lines_per_slot` lines.
uint64_t sum(const Line* lines, size_t lines_per_slot = 1, size_t cell = 0);

}  // namespace metrics_detail

class Counter {
 public:
  void add(uint64_t amount = 1) const {
    const uint32_t slot = metrics_detail::slot();
    metrics_detail::add(lines_[slot].cells[0], amount, slot);
  }
  uint64_t value() const { return metrics_detail::sum(lines_); }

 private:
  friend class Registry;
  explicit Counter(metrics_detail::Line* lines) : lines_(lines) {}
  metrics_detail::Line* lines_;
};

// A level that threads move up and down together, such as open connections. It cannot be set: the
// last value set has no meaning in a sum over threads. Registry::watch asks for such values
// instead.
class Gauge {
 public:
  void add(int64_t amount) const {
    const uint32_t slot = metrics_detail::slot();
    metrics_detail::add(lines_[slot].cells[0], static_cast<uint64_t>(amount), slot);
  }
  int64_t value() const { return static_cast<int64_t>(metrics_detail::sum(lines_)); }

 private:
  friend class Registry;
  explicit Gauge(metrics_detail::Line* lines) : lines_(lines) {}
  metrics_detail::Line* lines_;
};

class Histogram {
 public:
  void observe(uint64_t value) const {
    const uint64_t* bound =
        std::lower_bound(bounds_.data(), bounds_.data() + bounds_.size(), value);
    const size_t cell = static_cast<size_t>(bound - bounds_.data()) + 1;  // cell 0 is the sum
    const uint32_t slot = metrics_detail::slot();
    metrics_detail::Line* line = lines_ + slot * lines_per_slot_;
    metrics_detail::add(line->cells[0], value, slot);
    metrics_detail::add(line[cell / 8].cells[cell % 8], 1, slot);
  }
  uint64_t count() const;

 private:
  friend class Registry;
  Histogram(metrics_detail::Line* lines, size_t lines_per_slot, std::span<const uint64_t> bounds)
      : lines_(lines), lines_per_slot_(lines_per_slot), bounds_(bounds) {}
  metrics_detail::Line* lines_;
  size_t lines_per_slot_;
  std::span<const uint64_t> bounds_;
};

using Labels = std::vector<std::pair<std::string, std::string>>;  // values: any UTF-8 text

// first, 2 * first, 4 * first ... : `count` upper bounds. REQUIRES: the last fits 64 bits.
std::vector<uint64_t> doubling_bounds(uint64_t first, size_t count);

// Thread-safe. The same name with other labels is one family, which has one kind, help and bounds.
// The same name and labels again give the same series. What Prometheus would not read is refused.
class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Result<Counter> counter(std::string_view name, std::string_view help, Labels labels = {});
  Result<Gauge> gauge(std::string_view name, std::string_view help, Labels labels = {});
  // Bounds are inclusive upper ends, rising, in the unit that the name ends in.
  Result<Histogram> histogram(std::string_view name, std::string_view help,
                              std::vector<uint64_t> bounds, Labels labels = {});
  // A gauge whose value is asked for at each scrape, by any thread, under the registry's lock: it
  // must not call the registry, and what it refers to must outlive the registry.
  Status watch(std::string_view name, std::string_view help, std::function<double()> read,
               Labels labels = {});

 private:
  friend std::string prometheus_text(const Registry& registry);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The text exposition format, version 0.0.4, families sorted by name.
std::string prometheus_text(const Registry& registry);

}  // namespace trellis
