#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "base/random.h"
#include "bench_store.h"
#include "cases.h"
#include "process_figures.h"

namespace trellis {

namespace {

constexpr size_t loads = 20'000;
constexpr size_t page_keyspaces = 1'000;
constexpr uint64_t extra_bytes_max = 16 << 20;
constexpr size_t wake_ups = 40;
constexpr uint64_t wake_up_us = 100'000;

std::string tenant_name(size_t index) { return fmt::format("tenant-{:06}", index); }

void create_some(Keyspaces& keyspaces, size_t first, size_t end) {
  for (size_t i = first; i < end; i++)
    must(keyspaces.create(
        {.name = tenant_name(i), .id = {}, .config = {{"plan", "free"}}, .request_id = {}},
        bench_caller));
}

void create_all(BenchStore& store, size_t count, size_t threads) {
  const double cpu_us = process_cpu_us();
  const double begin_us = now_us();
  std::vector<std::thread> running;
  for (size_t i = 0; i < threads; i++)
    running.emplace_back(
        [&, i] { create_some(store.keyspaces(), count * i / threads, count * (i + 1) / threads); });
  for (std::thread& thread : running) thread.join();
  const double each_us = (now_us() - begin_us) / static_cast<double>(count);
  fmt::print("{:<34} {:>10.0f} per second, {:.1f} us CPU each\n",
             fmt::format("create {}, {} threads", count, threads), 1e6 / each_us,
             (process_cpu_us() - cpu_us) / static_cast<double>(count));
  std::fflush(stdout);
}

void load_some(BenchStore& store, size_t count, Report& report) {
  Random random(2);
  std::vector<double> times_us;
  const EngineCalls before = store.engine().calls();
  const double cpu_us = thread_cpu_us();
  for (size_t i = 0; i < loads; i++) {
    const std::string name = tenant_name(random.below(count));
    const double begin_us = now_us();
    const Keyspace keyspace = must(store.keyspaces().load(name));
    times_us.push_back(now_us() - begin_us);
    if (keyspace.name != name) give_up("another keyspace was loaded");
  }
  const double each_us = (thread_cpu_us() - cpu_us) / loads;
  const EngineCalls calls = store.engine().calls() - before;
  std::sort(times_us.begin(), times_us.end());
  fmt::print("{:<34} {:>10.2f} us CPU; p50 {:.1f} us, p99 {:.1f} us\n", "load by name", each_us,
             times_us[loads / 2], times_us[loads * 99 / 100]);
  const double gets = static_cast<double>(calls.gets) / loads;
  report.expect("engine calls of a load", gets <= 2 && calls.scans == 0 && calls.commits == 0,
                fmt::format("{:.2f} gets, {} scans, target at most 2 gets", gets, calls.scans));
}

// How many there are.
size_t list_pages(Keyspaces& keyspaces) {
  size_t count = 0;
  std::optional<KeyspaceId> from = KeyspaceId{0};
  while (from) {
    const Keyspaces::Page page = must(keyspaces.list(*from, page_keyspaces));
    count += page.keyspaces.size();
    from = page.next;
  }
  return count;
}

// Twice, because the first time fills the block cache, which has its own limit.
void list_all(BenchStore& store, size_t count, Report& report) {
  uint64_t extra_bytes = 0;
  for (const std::string_view which : {"first", "second"}) {
    reset_peak_resident();
    const uint64_t resident = resident_bytes();
    const double begin_us = now_us();
    const size_t listed = list_pages(store.keyspaces());
    const double took_us = now_us() - begin_us;
    const uint64_t peak = peak_resident_bytes();
    extra_bytes = peak - std::min(peak, resident);
    if (listed != count + 1) give_up(fmt::format("{} keyspaces are listed", listed));  // DEFAULT
    fmt::print("{:<34} {:>10.0f} ms, {:.2f} us each; {:.1f} MiB more memory at its peak\n",
               fmt::format("list in pages of {}, {}", page_keyspaces, which), took_us / 1e3,
               took_us / static_cast<double>(count), static_cast<double>(extra_bytes) / (1 << 20));
  }
  report.expect("memory of a list", extra_bytes <= extra_bytes_max,
                fmt::format("{:.1f} MiB more, target at most {} MiB",
                            static_cast<double>(extra_bytes) / (1 << 20), extra_bytes_max >> 20));
}

// The collector of a store where nothing is due, woken now and then, as a change of any keyspace
// does.
void idle(BenchStore& store, size_t count, Report& report) {
  const EngineCalls before = store.engine().calls();
  const double cpu_us = process_cpu_us();
  const double begin_us = now_us();
  store.collector().start();
  for (size_t i = 0; i < wake_ups; i++) {
    store.clock().pause_us(wake_up_us);
    store.collector().wake();
  }
  store.clock().pause_us(wake_up_us);
  store.collector().stop();
  const EngineCalls calls = store.engine().calls() - before;
  const double busy = (process_cpu_us() - cpu_us) / (now_us() - begin_us);
  // Each wake-up, and the look at the start.
  report.expect(fmt::format("{} idle keyspaces", count),
                calls.scans <= wake_ups + 1 && calls.gets == 0 && calls.commits == 0,
                fmt::format("{} wake-ups: {} seeks, {} gets, {} commits; {:.2f} % of a core; "
                            "target one seek for each and no more",
                            wake_ups, calls.scans, calls.gets, calls.commits, busy * 100));
}

}  // namespace

void many_cases(const KeyspaceScale& scale, Report& report) {
  {
    BenchStore store;
    idle(store, 0, report);
    create_all(store, scale.keyspaces, 1);
  }
  BenchStore store;
  create_all(store, scale.keyspaces, 4);
  must(store.rocksdb().compact());  // so that none runs while something else is measured
  load_some(store, scale.keyspaces, report);
  list_all(store, scale.keyspaces, report);
  idle(store, scale.keyspaces, report);
}

}  // namespace trellis
