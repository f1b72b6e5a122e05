// Measures contenders in turns and judges what they cost.
//
// CPU time, not time: the machine may be shared, and then CPU time is noisy too, for others empty
// the caches. So turns are shorter than a time slice, and those of all contenders alternate. A
// round's figure is the lower quartile of its turns, for noise only ever adds. Stores are built
// anew several times, for two builds of the same data differ by some percent: skip lists are
// random, and so is where memory lies. What is judged is the median over the rounds of all builds
// of what each round says.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"

namespace trellis {

// Of one operation.
struct Cost {
  double thread_ns = 0;   // CPU of the thread that runs it
  double process_ns = 0;  // CPU of all threads, RocksDB's and the sync thread's among them
  double allocations = 0;
};

struct Contender {
  size_t operations;  // in one turn
  FunctionRef<void(size_t turn)> run;
  std::optional<FunctionRef<void(size_t turn)>> prepare = {};  // what costs nobody anything
};

struct Scale {
  size_t builds;
  size_t rounds;  // of each build
  size_t turns;   // of each contender in each round
};

// The costs of one contender, by round.
using Costs = std::vector<Cost>;

// Appends to costs, which has one for each contender, the rounds of one build.
void alternate(const Scale& scale, std::span<const Contender> contenders, std::span<Costs> costs);

// Ours and raw.
using Duel = std::array<Costs, 2>;

struct Spread {
  double median;
  double min;
  double max;
};

Spread spread(std::vector<double> numbers);
Cost median(const Costs& costs);

// Makes the compiler believe that somebody looks at it.
inline void keep(const void* pointer) { asm volatile("" : : "r"(pointer) : "memory"); }

// A benchmark that cannot do what it measures ends: main catches it, so that folders are removed.
struct GaveUp {
  std::string why;
};
[[noreturn]] void give_up(std::string_view why);
void must(const Status& status);

struct Target {
  std::optional<double> ratio_max;
  std::optional<double> extra_allocations_max;
};

struct Miss {
  std::string name;
  std::string why;
};

// Prints as the cases come in and remembers what missed its target.
class Report {
 public:
  // Of a quick run only what does not depend on time is judged.
  explicit Report(bool judge_time) : judge_time_(judge_time) {}

  void compare(std::string_view name, const Duel& duel, const Target& target);
  void expect(std::string_view name, bool met, std::string_view detail);
  // Like expect, but only where time is judged.
  void expect_time(std::string_view name, bool met, std::string_view detail);
  // Prints nothing.
  void expect_no_allocations(std::string_view name, double allocations);

  // Since the last call.
  std::vector<Miss> take_misses() { return std::exchange(misses_, {}); }

 private:
  void miss(std::string_view name, std::string why);

  const bool judge_time_;
  bool header_printed_ = false;
  std::vector<Miss> misses_;
};

// Runs a group of cases, and again if it missed a target: a busy machine can spoil one run, and
// where code and data come to lie is luck, which now and then costs one side a tenth. What misses
// twice, with other stores the second time, was not unlucky.
std::vector<Miss> judge(std::string_view group, Report& report, FunctionRef<void()> run);

}  // namespace trellis
