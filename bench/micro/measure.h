// Measures contenders in turns and judges what they cost.
//
// CPU time, not time: the machine may be shared. All contenders of a case run in every round, in an
// order that rotates, and a figure that is judged is the median over the rounds of what one round
// says. So a slow moment hits everybody, or one round only.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  FunctionRef<void(size_t round)> run;
};

// The costs of one contender, by round.
using Costs = std::vector<Cost>;

// After an unmeasured round.
std::vector<Costs> alternate(size_t rounds, std::span<const Contender> contenders);

struct Spread {
  double median;
  double min;
  double max;
};

Spread spread(std::vector<double> numbers);
Cost median(const Costs& costs);

// Makes the compiler believe that somebody looks at it.
inline void keep(const void* pointer) { asm volatile("" : : "r"(pointer) : "memory"); }

// A benchmark that cannot do what it measures ends.
void must(const Status& status);
[[noreturn]] void give_up(std::string_view why);

struct Target {
  std::optional<double> ratio_max;
  bool no_extra_allocations = false;
};

// Prints as the cases come in and remembers what missed its target.
class Report {
 public:
  // Of a quick run only what does not depend on time is judged.
  explicit Report(bool judge_time) : judge_time_(judge_time) {}

  void begin_comparisons();
  void compare(std::string_view name, const Costs& ours, const Costs& raw, const Target& target);
  void expect(std::string_view name, bool met, std::string_view detail);
  // Like expect, but only where time is judged.
  void expect_time(std::string_view name, bool met, std::string_view detail);
  // Prints nothing.
  void expect_no_allocations(std::string_view name, double allocations);

  // Names what failed; the exit code.
  int verdict() const;

 private:
  bool judge_time_;
  std::vector<std::string> failures_;
};

}  // namespace trellis
