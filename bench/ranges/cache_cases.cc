#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <vector>

#include "base/random.h"
#include "bench_map.h"
#include "cases.h"
#include "range/range_cache.h"

namespace trellis {

namespace {

constexpr size_t cache_bytes_max = size_t{1} << 30;
constexpr size_t ring_addresses = 1 << 18;
constexpr size_t cold_lookups = 1000;
constexpr size_t sequential_steps = 16;  // in one range before the next
constexpr size_t meta2_records = 1 << 15;

constexpr double uniform_p50_ns_max = 600;
constexpr double uniform_per_second_min = 1.5e6;
constexpr double local_per_second_min = 5e6;
constexpr double growth_max = 5;

double thread_cpu_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double now_ns() {
  return static_cast<double>(std::chrono::steady_clock::now().time_since_epoch() /
                             std::chrono::nanoseconds(1));
}

// Ranks by popularity, theta 0.99, by inverting the integral of 1 / x^theta.
size_t zipf(Random& random, size_t count) {
  constexpr double theta = 0.99;
  const double u = static_cast<double>(random.next() >> 11) / 9007199254740992.0;
  const double top = std::pow(static_cast<double>(count) + 1, 1 - theta) - 1;
  const double rank = std::pow(u * top + 1, 1 / (1 - theta)) - 1;
  return std::min(static_cast<size_t>(rank), count - 1);
}

enum class Workload { uniform, scattered_zipf, zipf, sequential };

AddressRing addresses_of(const BenchMap& map, Workload workload) {
  Random random(1);
  AddressRing ring;
  for (size_t i = 0; i < ring_addresses; i++) {
    size_t range = 0;
    switch (workload) {
      case Workload::uniform: range = random.below(map.ranges()); break;
      case Workload::scattered_zipf:  // the popular ones are anywhere
        range = zipf(random, map.ranges()) * 0x9e3779b1 % map.ranges();
        break;
      case Workload::zipf:  // they are neighbours
        range = zipf(random, map.ranges());
        break;
      case Workload::sequential: range = i / sequential_steps % map.ranges(); break;
    }
    ring.push(map.address_in(range, workload == Workload::sequential ? i : random.next()));
  }
  return ring;
}

void look_up(RangeCache& cache, ByteView address) {
  const Result<RangeRef> range = cache.find(address);
  if (!range.has_value()) give_up(to_string(range.error()));
  const uint64_t generation = range->generation();  // as whoever goes there does
  keep(&generation);
}

struct Warm {
  double cpu_ns;
  double p50_ns;
  double p99_ns;
};

Warm measure(RangeCache& cache, const AddressRing& ring, const RangeScale& scale) {
  std::vector<double> rounds;
  for (size_t round = 0; round < scale.rounds; round++) {
    const double begin_ns = thread_cpu_ns();
    for (size_t i = 0; i < scale.lookups; i++) look_up(cache, ring[i % ring.size()]);
    rounds.push_back((thread_cpu_ns() - begin_ns) / static_cast<double>(scale.lookups));
  }
  std::vector<double> times_ns;
  for (size_t i = 0; i < ring.size(); i++) {
    const double clock_ns = now_ns();
    const double begin_ns = now_ns();
    look_up(cache, ring[i]);
    // Without what asking for the time takes.
    times_ns.push_back(now_ns() - begin_ns - (begin_ns - clock_ns));
  }
  std::sort(times_ns.begin(), times_ns.end());
  return {spread(std::move(rounds)).median, times_ns[times_ns.size() / 2],
          times_ns[times_ns.size() * 99 / 100]};
}

void cold(BenchMap& map, Report& report) {
  EngineMetaReader reader(map.engine());
  Directory directory(reader);
  Random random(2);
  uint64_t most = 0;
  for (size_t i = 0; i < cold_lookups; i++) {
    RangeCache cache(directory, cache_bytes_max);
    look_up(cache, map.address_in(random.below(map.ranges()), 0));
    most = std::max(most, cache.figures().directory_reads);
  }
  report.expect(fmt::format("cold lookup, {} ranges", map.ranges()), most <= 2,
                fmt::format("{} reads of the directory and one of the data (at most 3)", most));
}

// CPU of a uniform lookup.
double warm(BenchMap& map, const RangeScale& scale, Report& report) {
  EngineMetaReader reader(map.engine());
  Directory directory(reader);
  RangeCache cache(directory, cache_bytes_max);
  const double begin_ns = thread_cpu_ns();
  for (const RangeDescriptor& range : map.all()) cache.insert(range);
  const double insert_ns = (thread_cpu_ns() - begin_ns) / static_cast<double>(map.all().size());
  const RangeCacheFigures filled = cache.figures();
  fmt::print(
      "{} ranges: {:.0f} bytes per cached descriptor, {:.0f} per record, inserted in {:.0f} "
      "ns each\n",
      map.ranges(), static_cast<double>(filled.bytes) / static_cast<double>(filled.entries),
      map.record_bytes(), insert_ns);
  fmt::print("{:<34} {:>10} {:>12} {:>10} {:>10}\n", "warm lookup", "CPU ns", "per second",
             "p50 ns", "p99 ns");
  struct Case {
    std::string_view name;
    Workload workload;
    double per_second_min;
  };
  double uniform_ns = 0;
  for (const Case& each :
       {Case{"uniform", Workload::uniform, uniform_per_second_min},
        Case{"zipf 0.99, scattered", Workload::scattered_zipf, uniform_per_second_min},
        Case{"zipf 0.99", Workload::zipf, local_per_second_min},
        Case{"sequential, 16 per range", Workload::sequential, local_per_second_min}}) {
    const Warm figures = measure(cache, addresses_of(map, each.workload), scale);
    const std::string name = fmt::format("{}, {} ranges", each.name, map.ranges());
    fmt::print("{:<34} {:>10.0f} {:>12.0f} {:>10.0f} {:>10.0f}\n", name, figures.cpu_ns,
               1e9 / figures.cpu_ns, figures.p50_ns, figures.p99_ns);
    report.expect_time(name + ", rate", 1e9 / figures.cpu_ns >= each.per_second_min,
                       fmt::format("{:.1f} M/s per core, at least {:.1f}", 1e3 / figures.cpu_ns,
                                   each.per_second_min / 1e6));
    if (each.workload != Workload::uniform) continue;
    uniform_ns = figures.cpu_ns;
    report.expect_time(
        name + ", p50", figures.p50_ns <= uniform_p50_ns_max,
        fmt::format("{:.0f} ns, at most {:.0f}", figures.p50_ns, uniform_p50_ns_max));
  }
  report.expect(fmt::format("warm lookups, {} ranges", map.ranges()),
                cache.figures().directory_reads == 0,
                fmt::format("{} reads of the directory", cache.figures().directory_reads));
  return uniform_ns;
}

}  // namespace

void cache_cases(const RangeScale& scale, Report& report) {
  double uniform_ns[2];
  const size_t sizes[2] = {scale.few, scale.many};
  for (size_t i = 0; i < 2; i++) {
    BenchMap map(sizes[i], meta2_records);
    cold(map, report);
    uniform_ns[i] = warm(map, scale, report);
  }
  report.expect_time(
      fmt::format("growth from {} to {} ranges", scale.few, scale.many),
      uniform_ns[1] <= growth_max * uniform_ns[0],
      fmt::format("{:.1f}x, at most {:.0f}x", uniform_ns[1] / uniform_ns[0], growth_max));
}

}  // namespace trellis
