// bench_ranges: what it costs to know in which range a key is.
#include "benchmark.h"
#include "cases.h"

namespace trellis {
namespace {

constexpr std::string_view usage = R"(Usage: bench_ranges [--quick] [group...]

Looks up ranges in directories of 2^10 and 2^20 ranges in the memory engine, cold and through a warm
cache, by CPU time on one core; and in one of 2^36 ranges that is computed instead of stored.
Groups: cache, huge; both by default.

  --quick   2^14 ranges, few rounds; times are not judged
  --help    this text

Exit code: 0 if all targets are met, 1 if one is missed, 2 if the benchmark could not run.
)";

constexpr RangeScale quick_scale{
    .few = 1 << 10, .many = 1 << 14, .lookups = 1 << 17, .rounds = 2, .huge_lookups = 10'000};

int run(int argc, char** argv) {
  RangeScale scale;
  return run_benchmark({.usage = usage,
                        .groups = {{"cache", [&](Report& report) { cache_cases(scale, report); }},
                                   {"huge", [&](Report& report) { huge_case(scale, report); }}},
                        .quick = [&] { scale = quick_scale; }},
                       argc, argv);
}

}  // namespace
}  // namespace trellis

int main(int argc, char** argv) { return trellis::run(argc, argv); }
