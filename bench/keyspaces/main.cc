// bench_keyspaces: what tenants cost, and what they feel of each other.
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

constexpr std::string_view usage = R"(Usage: bench_keyspaces [--quick] [--small-cache] [group...]

Keyspaces on the RocksDB engine, in this process. Groups, all of them by default:

  many      100,000 keyspaces: creating, loading, listing them, and what they cost when idle
  burial    a keyspace of a million keys is removed while a neighbour reads at a steady pace
  write     a counted write beside a bare one

  --quick        a tenth of the keyspaces and keys; no times are judged
  --small-cache  burial with a block cache that the removed keyspace does not fit: 32 MiB
  --help         this text

Exit code: 0 if all targets are met, 1 if one is missed, 2 if the benchmark could not run.
)";

struct Group {
  std::string_view name;
  void (*run)(const KeyspaceScale&, Report&);
  bool chosen = false;
};

int verdict(const std::vector<Miss>& misses) {
  fmt::print("\n{}\n", misses.empty() ? "All targets met." : "Missed:");
  for (const Miss& miss : misses) fmt::print("  {}: {}\n", miss.name, miss.why);
  return misses.empty() ? 0 : 1;
}

int run(const std::vector<std::string_view>& arguments) {
  std::array<Group, 3> groups{
      {{"many", &many_cases}, {"burial", &burial_case}, {"write", &write_case}}};
  KeyspaceScale scale;
  bool quick = false;
  bool some = false;
  for (const std::string_view argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", usage);
      return 0;
    }
    if (argument == "--quick") {
      quick = true;
      scale.keyspaces /= 10;
      scale.buried_keys /= 10;
      scale.neighbour_keys /= 10;
      scale.windows = 4;
      scale.writes = {.builds = 1, .rounds = 2, .turns = 4};
      continue;
    }
    if (argument == "--small-cache") {
      scale.cache_bytes = size_t{32} << 20;
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
    fmt::print(stderr, "bench_keyspaces: {}\n", gave_up.why);
    return 2;
  } catch (const std::exception& error) {  // of the standard library: no folder, no memory
    fmt::print(stderr, "bench_keyspaces: {}\n", error.what());
    return 2;
  }
}
