// bench_micro: what our engine and map cost over raw RocksDB, and what keys cost to write and read.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "cases.h"

namespace {

constexpr std::string_view usage = R"(Usage: bench_micro [--quick] [group...]

Compares the RocksDB engine with raw RocksDB of the same options on the same data, in turns, by CPU
time per operation, and judges the medians. Groups: get, multi_get, scan, commit, transact, codec;
all of them by default.

  --quick   few rounds; only allocations are judged
  --help    this text

Exit code: 0 if all targets are met, 1 if one is missed, 2 if the benchmark could not run.
)";

struct Group {
  std::string_view name;
  void (*run)(const trellis::Scale&, trellis::Report&);
  bool chosen = false;
};

}  // namespace

int main(int argc, char** argv) {
  std::array<Group, 6> groups{{{"get", &trellis::get_cases},
                               {"multi_get", &trellis::multi_get_cases},
                               {"scan", &trellis::scan_cases},
                               {"commit", &trellis::commit_cases},
                               {"transact", &trellis::transact_cases},
                               {"codec", &trellis::codec_cases}}};
  bool quick = false;
  bool some = false;
  for (int i = 1; i < argc; i++) {
    const std::string_view argument = argv[i];
    bool known = argument == "--quick";
    quick = quick || known;
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", usage);
      return 0;
    }
    for (Group& group : groups) {
      if (group.name != argument) continue;
      group.chosen = some = known = true;
    }
    if (!known) trellis::give_up(fmt::format("unknown argument '{}'; see --help", argument));
  }

  const trellis::Scale scale{.rounds = quick ? size_t{3} : size_t{31}};
  trellis::Report report(/*judge_time=*/!quick);
  report.begin_comparisons();
  for (const Group& group : groups)
    if (group.chosen || !some) group.run(scale, report);
  return report.verdict();
}
