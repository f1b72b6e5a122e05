// bench_ranges: what it costs to know in which range a key is.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include "cases.h"

namespace trellis {
namespace {

constexpr std::string_view usage = R"(Usage: bench_ranges [--quick]

Looks up ranges in directories of 2^10 and 2^20 ranges in the memory engine, cold and through a warm
cache, by CPU time on one core; and in one of 2^36 ranges that is computed instead of stored.

  --quick   2^14 ranges, few rounds; times are not judged
  --help    this text

Exit code: 0 if all targets are met, 1 if one is missed, 2 if the benchmark could not run.
)";

constexpr RangeScale quick_scale{
    .few = 1 << 10, .many = 1 << 14, .lookups = 1 << 17, .rounds = 2, .huge_lookups = 10'000};

int run(const std::vector<std::string_view>& arguments) {
  bool quick = false;
  for (const std::string_view argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", usage);
      return 0;
    }
    if (argument != "--quick") give_up(fmt::format("unknown argument '{}'; see --help", argument));
    quick = true;
  }
  const RangeScale scale = quick ? quick_scale : RangeScale{};
  Report report(/*judge_time=*/!quick);
  std::vector<Miss> misses = judge("cache", report, [&] { cache_cases(scale, report); });
  for (const Miss& miss : judge("huge", report, [&] { huge_case(scale, report); }))
    misses.push_back(miss);
  if (misses.empty()) {
    fmt::print("\n{}\n", quick ? "All targets met; times were not judged." : "All targets met.");
    return 0;
  }
  fmt::print("\nMissed:\n");
  for (const Miss& miss : misses) fmt::print("  {}: {}\n", miss.name, miss.why);
  return 1;
}

}  // namespace
}  // namespace trellis

int main(int argc, char** argv) {
  try {
    return trellis::run({argv + 1, argv + argc});
  } catch (const trellis::GaveUp& gave_up) {
    fmt::print(stderr, "bench_ranges: {}\n", gave_up.why);
    return 2;
  } catch (const std::exception& error) {  // of the standard library: no memory
    fmt::print(stderr, "bench_ranges: {}\n", error.what());
    return 2;
  }
}
