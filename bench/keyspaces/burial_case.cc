#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "bench_store.h"
#include "cases.h"
#include "codec/keyspace_keys.h"
#include "process_figures.h"

namespace trellis {

namespace {

constexpr size_t value_bytes = 100;
constexpr uint64_t gets_per_second = 5'000;
constexpr double window_us = 250'000;
constexpr double ratio_max = 2;

// One window of a neighbour's gets, microseconds.
struct Window {
  // From when each was due, with all that kept it from starting.
  double response_p50 = 0;
  double response_p99 = 0;
  // From its start.
  double service_p50 = 0;
  double service_p99 = 0;
};

double quantile(std::vector<double>& times, double at) {
  const auto place = times.begin() + static_cast<ptrdiff_t>(at * static_cast<double>(times.size()));
  std::nth_element(times.begin(), place, times.end());
  return *place;
}

void wait_until_us(double time_us) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(time_us / 1e6);
  time.tv_nsec = static_cast<long>((time_us - static_cast<double>(time.tv_sec) * 1e6) * 1e3);
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0) {
  }
}

// Who reads at a steady pace, whatever becomes of the gets before.
class Neighbour {
 public:
  Neighbour(BenchStore& store, Tenant& tenant, size_t keys)
      : store_(store), tenant_(tenant), keys_(keys) {}

  Window watch() {
    std::vector<double> responses;
    std::vector<double> services;
    const double first_us = now_us();
    for (double due_us = first_us; due_us < first_us + window_us; due_us += 1e6 / gets_per_second) {
      if (now_us() < due_us) wait_until_us(due_us);
      const std::string key = raw_key(random_.below(keys_));
      const double begin_us = now_us();
      const auto entry = must(store_.raw().get(tenant_, bench_caller, key));
      const double end_us = now_us();
      if (!entry || entry->value().size() != value_bytes) give_up("a neighbour's key is gone");
      responses.push_back(end_us - due_us);
      services.push_back(end_us - begin_us);
    }
    return {quantile(responses, 0.5), quantile(responses, 0.99), quantile(services, 0.5),
            quantile(services, 0.99)};
  }

 private:
  BenchStore& store_;
  Tenant& tenant_;
  const size_t keys_;
  Random random_{3};
};

double median_of(const std::vector<Window>& windows, double Window::*figure) {
  std::vector<double> numbers;
  for (const Window& window : windows) numbers.push_back(window.*figure);
  return spread(std::move(numbers)).median;
}

void print(std::string_view phase, const std::vector<Window>& windows) {
  if (windows.empty()) return;
  const auto median = [&](double Window::*figure) { return median_of(windows, figure); };
  fmt::print("{:<34} {:>8} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n", phase, windows.size(),
             median(&Window::service_p50), median(&Window::service_p99),
             median(&Window::response_p50), median(&Window::response_p99));
  std::fflush(stdout);
}

void judge(std::string_view name, double during, double usual, Report& report) {
  const double ratio = during / usual;
  report.expect_time(name, ratio < ratio_max,
                     fmt::format("{:.2f} times what it is without, target < {}", ratio, ratio_max));
}

// What is left of a keyspace's data, by looking at all of it.
size_t count_entries(Engine& engine, KeyspaceId keyspace) {
  size_t entries = 0;
  for (const KeyMode mode : {KeyMode::meta, KeyMode::raw, KeyMode::table, KeyMode::txn}) {
    auto [begin, end] = keyspace_interval(mode, keyspace);
    std::optional<Bytes> from = std::move(begin);
    while (from) {
      ScanPage page = must(engine.scan({.begin = *from, .end = end},
                                       [](ByteView, ByteView) { return Visit::go_on; }));
      entries += page.entries;
      from = std::move(page.resume);
    }
  }
  return entries;
}

void entomb(BenchStore& store, const std::string& name) {
  using enum KeyspaceState;
  for (const KeyspaceState state : {disabled, archived, tombstone}) {
    const double begin_us = now_us();
    must(store.keyspaces().set_state(name, state, bench_caller));
    fmt::print("{:<34} {:>8.2f} ms\n", fmt::format("state to {}", to_string(state)),
               (now_us() - begin_us) / 1e3);
  }
}

struct Phases {
  std::vector<Window> before;
  std::vector<Window> removing;
  std::vector<Window> reclaiming;
  std::vector<Window> after;

  std::vector<Window> during() const {
    std::vector<Window> all = removing;
    all.insert(all.end(), reclaiming.begin(), reclaiming.end());
    return all;
  }
};

// Runs the collector until the keyspace is buried.
void bury(BenchStore& store, KeyspaceId id, Neighbour& neighbour, Phases& phases) {
  const double begin_us = now_us();
  const double cpu_us = process_cpu_us();
  store.collector().start();
  while (must(store.keyspaces().load(id)).purged_at_s == 0) {
    const bool was_reclaiming = store.engine().is_reclaiming();
    const Window window = neighbour.watch();
    const bool reclaiming = was_reclaiming || store.engine().is_reclaiming();
    (reclaiming ? phases.reclaiming : phases.removing).push_back(window);
  }
  fmt::print("{:<34} {:>8.2f} s, {:.2f} s CPU with the neighbour's\n", "removed after",
             (now_us() - begin_us) / 1e6, (process_cpu_us() - cpu_us) / 1e6);
}

}  // namespace

void burial_case(const KeyspaceScale& scale, Report& report) {
  BenchStore store(scale.cache_bytes);
  const auto tenant = store.make_tenant("neighbour", scale.neighbour_keys, value_bytes);
  const KeyspaceId buried = store.make_tenant("buried", scale.buried_keys, value_bytes)->id();
  must(store.rocksdb().compact());
  const auto mib = [&] { return static_cast<double>(folder_bytes(store.path())) / (1 << 20); };
  const double mib_before = mib();
  fmt::print("\nBurial of {} keys beside {}\n", scale.buried_keys, scale.neighbour_keys);

  Neighbour neighbour(store, *tenant, scale.neighbour_keys);
  Phases phases;
  neighbour.watch();  // warms up
  for (size_t i = 0; i < scale.windows; i++) phases.before.push_back(neighbour.watch());
  entomb(store, "buried");
  bury(store, buried, neighbour, phases);
  for (size_t i = 0; i < scale.windows; i++) phases.after.push_back(neighbour.watch());
  store.collector().stop();

  fmt::print("{:<34} {:>8.1f} MiB before, {:.1f} MiB after\n", "on the disk", mib_before, mib());
  fmt::print("{:<34} {:>8} {:>21} {:>21}\n", "", "", "get alone, us", "with its wait, us");
  fmt::print("{:<34} {:>8} {:>10} {:>10} {:>10} {:>10}\n",
             fmt::format("{} gets per second", gets_per_second), "windows", "p50", "p99", "p50",
             "p99");
  print("before", phases.before);
  print("removing", phases.removing);
  print("giving the disk back", phases.reclaiming);
  print("after", phases.after);

  const size_t left = count_entries(store.engine(), buried);
  report.expect("left of it", left == 0, fmt::format("{} entries", left));
  const Figures neighbours = must(recount(store.engine(), tenant->id()));
  report.expect("its neighbour",
                neighbours == must(tenant->figures()) &&
                    neighbours.keys == static_cast<int64_t>(scale.neighbour_keys),
                fmt::format("has {} keys", neighbours.keys));
  const std::vector<Window> during = phases.during();
  judge("p99 of a neighbour's get", median_of(during, &Window::service_p99),
        median_of(phases.before, &Window::service_p99), report);
  // Who else uses the machine decides how long one waits for a core. If that changed meanwhile it
  // is seen afterwards.
  judge("p99 with its wait", median_of(during, &Window::response_p99),
        std::max(median_of(phases.before, &Window::response_p99),
                 median_of(phases.after, &Window::response_p99)),
        report);
}

}  // namespace trellis
