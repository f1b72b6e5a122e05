// bench_micro: what our engine and map cost over raw RocksDB, and what keys cost to write and read.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

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

struct Group {
  std::string_view name;
  void (*run)(const Scale&, Report&);
  bool chosen = false;
};

constexpr Scale full_scale{.builds = 8, .rounds = 3, .turns = 16};
constexpr Scale quick_scale{.builds = 1, .rounds = 2, .turns = 4};

int verdict(const std::vector<Miss>& misses, bool quick) {
  fmt::print("\n");
  if (misses.empty()) {
    fmt::print("{}\n", quick ? "All targets met; times were not judged." : "All targets met.");
    return 0;
  }
  fmt::print("Missed:\n");
  for (const Miss& miss : misses) fmt::print("  {}: {}\n", miss.name, miss.why);
  return 1;
}

int run(std::span<const std::string_view> arguments) {
  std::array<Group, 6> groups{{{"get", &get_cases},
                               {"multi_get", &multi_get_cases},
                               {"scan", &scan_cases},
                               {"commit", &commit_cases},
                               {"transact", &transact_cases},
                               {"codec", &codec_cases}}};
  bool quick = false;
  bool some = false;
  for (const std::string_view argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", usage);
      return 0;
    }
    if (argument == "--quick") {
      quick = true;
      continue;
    }
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const Group& each) { return each.name == argument; });
    if (group == groups.end()) give_up(fmt::format("unknown argument '{}'; see --help", argument));
    group->chosen = some = true;
  }

  Report report(/*judge_time=*/!quick);
  std::vector<Miss> misses;
  for (const Group& group : groups) {
    if (some && !group.chosen) continue;
    const std::vector<Miss> more =
        judge(group.name, report, [&] { group.run(quick ? quick_scale : full_scale, report); });
    misses.insert(misses.end(), more.begin(), more.end());
  }
  return verdict(misses, quick);
}

}  // namespace
}  // namespace trellis

int main(int argc, char** argv) {
  try {
    const std::vector<std::string_view> arguments(argv + 1, argv + argc);
    return trellis::run(arguments);
  } catch (const trellis::GaveUp& gave_up) {
    fmt::print(stderr, "bench_micro: {}\n", gave_up.why);
    return 2;
  } catch (const std::exception& error) {  // of the standard library: no folder, no memory
    fmt::print(stderr, "bench_micro: {}\n", error.what());
    return 2;
  }
}
