#include "benchmark.h"

#include <errno.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <span>

#include "base/log.h"

namespace trellis {
namespace {

template <class Named>
const Named* find(const std::vector<Named>& all, std::string_view name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Named& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

int verdict(const std::vector<Miss>& misses, bool quick) {
  if (misses.empty()) {
    fmt::print("\n{}\n", quick ? "All targets met; times were not judged." : "All targets met.");
    return 0;
  }
  fmt::print("\nMissed:\n");
  for (const Miss& miss : misses) fmt::print("  {}: {}\n", miss.name, miss.why);
  return 1;
}

int run(const Benchmark& benchmark, std::span<const char* const> arguments) {
  std::vector<const Benchmark::Group*> chosen;
  bool quick = false;
  for (const std::string_view argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", benchmark.usage);
      return 0;
    }
    if (argument == "--quick") {
      quick = true;
      benchmark.quick();
    } else if (const auto* const flag = find(benchmark.flags, argument)) {
      flag->set();
    } else if (const auto* const group = find(benchmark.groups, argument)) {
      chosen.push_back(group);
    } else {
      give_up(fmt::format("unknown argument '{}'; see --help", argument));
    }
  }
  Report report(/*judge_time=*/!quick);
  std::vector<Miss> misses;
  for (const Benchmark::Group& group : benchmark.groups) {
    if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), &group) == chosen.end())
      continue;
    for (Miss& miss : judge(group.name, report, [&] { group.run(report); }))
      misses.push_back(std::move(miss));
  }
  return verdict(misses, quick);
}

}  // namespace

int run_benchmark(const Benchmark& benchmark, int argc, const char* const* argv) {
  setup_log(LogLevel::error, LogFormat::text);
  std::string why;
  try {
    return run(benchmark, {argv + 1, argv + argc});
  } catch (const GaveUp& gave_up) {
    why = gave_up.why;
  } catch (const std::exception& error) {  // of the standard library: no folder, no memory
    why = error.what();
  }
  fmt::print(stderr, "{}: {}\n", program_invocation_short_name, why);
  return 2;
}

}  // namespace trellis
