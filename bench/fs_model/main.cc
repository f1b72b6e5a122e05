// bench_fs-model: what files cost, beside RocksDB doing the same gets and puts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "cases.h"

namespace trellis {
namespace {

constexpr std::string_view usage = R"(Usage: bench_fs-model [--quick] [group...]

A file system on the RocksDB engine, in this process. Groups, all of them by default:

  operations     creates, lookups, renames, writes and reads, beside RocksDB doing the same gets,
                 seeks and puts, which are written down as they are made
  amplification  what random overwrites of 4 KiB make the disk write
  trees          du and removal of trees of up to a million files, and a directory of a million
  threads        creates of 8 threads in one directory, beside 8 directories

  --quick        less of everything; no times are judged
  --help         this text

Exit code: 0 if all targets are met, 1 if one is missed, 2 if the benchmark could not run.
)";

struct Group {
  std::string_view name;
  void (*run)(const FsScale&, Report&);
  bool chosen = false;
};

int verdict(const std::vector<Miss>& misses) {
  fmt::print("\n{}\n", misses.empty() ? "All targets met." : "Missed:");
  for (const Miss& miss : misses) fmt::print("  {}: {}\n", miss.name, miss.why);
  return misses.empty() ? 0 : 1;
}

int run(const std::vector<std::string_view>& arguments) {
  std::array<Group, 4> groups{{{"operations", &operation_cases},
                               {"amplification", &amplification_case},
                               {"trees", &tree_cases},
                               {"threads", &thread_case}}};
  FsScale scale;
  bool quick = false;
  bool some = false;
  for (const std::string_view argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", usage);
      return 0;
    }
    if (argument == "--quick") {
      quick = true;
      scale.operations = {.builds = 1, .rounds = 2, .turns = 4};
      scale.file_bytes /= 8;
      scale.tree_files_max /= 100;
      scale.created_per_thread /= 10;
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
    const std::vector<Miss> more = judge(group.name, report, [&] { group.run(scale, report); });
    misses.insert(misses.end(), more.begin(), more.end());
  }
  return verdict(misses);
}

}  // namespace
}  // namespace trellis

int main(int argc, char** argv) {
  trellis::setup_log(trellis::LogLevel::error, trellis::LogFormat::text);
  try {
    const std::vector<std::string_view> arguments(argv + 1, argv + argc);
    return trellis::run(arguments);
  } catch (const trellis::GaveUp& gave_up) {
    fmt::print(stderr, "bench_fs-model: {}\n", gave_up.why);
    return 2;
  } catch (const std::exception& error) {  // of the standard library: no folder, no memory
    fmt::print(stderr, "bench_fs-model: {}\n", error.what());
    return 2;
  }
}
