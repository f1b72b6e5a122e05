// main() of a benchmark whose cases come in groups: what the command line says is run and judged.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "measure.h"

namespace trellis {

struct Benchmark {
  struct Group {
    std::string_view name;
    std::function<void(Report&)> run;
  };
  struct Flag {
    std::string_view name;
    std::function<void()> set;
  };
  std::string_view usage;
  std::vector<Group> groups;  // all are run unless some are named
  std::function<void()> quick;
  std::vector<Flag> flags = {};  // beside --help and --quick, with which no times are judged
};

// Exit code: 0 if all targets are met, 1 if one is missed, 2 if the benchmark could not run.
int run_benchmark(const Benchmark& benchmark, int argc, const char* const* argv);

}  // namespace trellis
