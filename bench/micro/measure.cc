#include "measure.h"

#include <fmt/format.h>
#include <rocksdb/perf_level.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

#include "allocations.h"

namespace trellis {

namespace {

double cpu_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The turns of one contender in one round.
class Turns {
 public:
  void run(const Contender& contender, size_t turn) {
    if (contender.prepare) (*contender.prepare)(turn);
    // Our engine switches RocksDB's counters off in its threads; without them raw RocksDB is faster
    // too, and that is the one to be compared with.
    rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
    const uint64_t allocations = allocations_of_this_thread();
    const double process_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    const double thread_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    contender.run(turn);
    const double thread_end_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    process_ns_ += cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - process_ns;
    allocations_ += static_cast<double>(allocations_of_this_thread() - allocations);
    thread_ns_.push_back(thread_end_ns - thread_ns);  // allocates, so it comes last
  }

  Cost per_operation(const Contender& contender) {
    std::sort(thread_ns_.begin(), thread_ns_.end());
    const auto turns = static_cast<double>(thread_ns_.size());
    const auto operations = static_cast<double>(contender.operations);
    return {thread_ns_[thread_ns_.size() / 4] / operations, process_ns_ / turns / operations,
            allocations_ / turns / operations};
  }

 private:
  std::vector<double> thread_ns_;
  double process_ns_ = 0;
  double allocations_ = 0;
};

double median_of(const Costs& costs, double Cost::*figure) {
  std::vector<double> numbers;
  numbers.reserve(costs.size());
  for (const Cost& cost : costs) numbers.push_back(cost.*figure);
  return spread(std::move(numbers)).median;
}

}  // namespace

void alternate(const Scale& scale, std::span<const Contender> contenders, std::span<Costs> costs) {
  size_t number = 0;
  for (const Contender& contender : contenders) {  // warms up
    if (contender.prepare) (*contender.prepare)(number);
    contender.run(number);
  }
  for (size_t round = 0; round < scale.rounds; round++) {
    std::vector<Turns> turns(contenders.size());
    for (size_t turn = 0; turn < scale.turns; turn++) {
      number++;
      for (size_t i = 0; i < contenders.size(); i++) {
        const size_t at = (number + i) % contenders.size();
        turns[at].run(contenders[at], number);
      }
    }
    for (size_t i = 0; i < contenders.size(); i++)
      costs[i].push_back(turns[i].per_operation(contenders[i]));
  }
}

Spread spread(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const size_t middle = numbers.size() / 2;
  const double median =
      numbers.size() % 2 == 1 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
  return {median, numbers.front(), numbers.back()};
}

Cost median(const Costs& costs) {
  return {median_of(costs, &Cost::thread_ns), median_of(costs, &Cost::process_ns),
          median_of(costs, &Cost::allocations)};
}

void must(const Status& status) {
  if (!status.has_value()) give_up(to_string(status.error()));
}

void give_up(std::string_view why) { throw GaveUp{std::string(why)}; }

void Report::compare(std::string_view name, const Duel& duel, const Target& target) {
  if (!std::exchange(header_printed_, true))
    fmt::print("{:<34} {:>10} {:>10} {:>6} {:>12} {:>7} {:>7}  {}\n", "CPU per operation",
               "ours ns", "raw ns", "ratio", "min..max", "allocs", "raw", "target");
  const auto& [ours, raw] = duel;
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); i++) ratios.push_back(ours[i].thread_ns / raw[i].thread_ns);
  const Spread ratio = spread(std::move(ratios));
  const Cost our_cost = median(ours);
  const Cost raw_cost = median(raw);
  const double extra_allocations = our_cost.allocations - raw_cost.allocations;

  std::string wanted = target.ratio_max ? fmt::format("<= {:.2f}", *target.ratio_max) : "";
  if (target.extra_allocations_max) wanted += ", no extra allocs";
  fmt::print("{:<34} {:>10.0f} {:>10.0f} {:>6.3f} {:>5.2f}..{:<5.2f} {:>7.2f} {:>7.2f}  {}\n", name,
             our_cost.thread_ns, raw_cost.thread_ns, ratio.median, ratio.min, ratio.max,
             our_cost.allocations, raw_cost.allocations, wanted);
  std::fflush(stdout);

  if (target.ratio_max && judge_time_ && ratio.median > *target.ratio_max)
    miss(name, fmt::format("{:.3f} times raw, over {:.2f}", ratio.median, *target.ratio_max));
  if (target.extra_allocations_max && extra_allocations > *target.extra_allocations_max)
    miss(name, fmt::format("{:.2f} extra allocations", extra_allocations));
}

void Report::expect(std::string_view name, bool met, std::string_view detail) {
  fmt::print("{:<34} {}: {}\n", name, met ? "ok" : "MISSED", detail);
  std::fflush(stdout);
  if (!met) miss(name, std::string(detail));
}

void Report::expect_time(std::string_view name, bool met, std::string_view detail) {
  if (judge_time_) return expect(name, met, detail);
  fmt::print("{:<34} not judged: {}\n", name, detail);
}

void Report::expect_no_allocations(std::string_view name, double allocations) {
  if (allocations > 0) miss(name, fmt::format("{:.3f} allocations", allocations));
}

void Report::miss(std::string_view name, std::string why) {
  misses_.push_back({std::string(name), std::move(why)});
}

std::vector<Miss> judge(std::string_view group, Report& report, FunctionRef<void()> run) {
  run();
  const std::vector<Miss> first = report.take_misses();
  if (first.empty()) return {};
  fmt::print("{} missed a target and is measured again\n", group);
  run();
  std::vector<Miss> again = report.take_misses();
  std::erase_if(again, [&](const Miss& miss) {
    return std::none_of(first.begin(), first.end(),
                        [&](const Miss& before) { return before.name == miss.name; });
  });
  return again;
}

}  // namespace trellis
