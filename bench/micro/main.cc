// bench_micro: what our engine and map cost over raw RocksDB, and what keys cost to write and read.
#include "benchmark.h"
#include "cases.h"

namespace trellis {
namespace {

constexpr std::string_view usage = R"(Usage: bench_micro [--quick] [group...]

Compares the RocksDB engine with raw RocksDB of the same options on the same data, in turns, by CPU
time per operation, and judges the medians; a group that misses a target is measured once more.
Groups: get, multi_get, scan, commit, transact, codec; all of them by default.

  --quick   few rounds; only allocations are judged
  --help    this text

Exit code: 0 if all targets are met, 1 if one is missed, 2 if the benchmark could not run.
)";

int run(int argc, char** argv) {
  Scale scale{.builds = 8, .rounds = 3, .turns = 16};
  return run_benchmark(
      {.usage = usage,
       .groups = {{"get", [&](Report& report) { get_cases(scale, report); }},
                  {"multi_get", [&](Report& report) { multi_get_cases(scale, report); }},
                  {"scan", [&](Report& report) { scan_cases(scale, report); }},
                  {"commit", [&](Report& report) { commit_cases(scale, report); }},
                  {"transact", [&](Report& report) { transact_cases(scale, report); }},
                  {"codec", [&](Report& report) { codec_cases(scale, report); }}},
       .quick = [&] { scale = {.builds = 1, .rounds = 2, .turns = 4}; }},
      argc, argv);
}

}  // namespace
}  // namespace trellis

int main(int argc, char** argv) { return trellis::run(argc, argv); }
