#include "net/loop_balance.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

namespace trellis {
namespace {

constexpr double busy_all_the_time = 0.85;
// Less is what a client leaves that waits for its answers now and then.
constexpr double idle_cores_min = 0.5;
// What loops have to do in all, for each of those that would be left.
constexpr double little_to_do = 0.6;
constexpr uint64_t load_age_us_max = 200'000;  // then it has had no turns since
constexpr uint64_t idle_age_us_max = 40'000;
// How long it is counted what is served: before a trial, at least and at most, and in it, once
// connections have moved.
constexpr uint64_t served_us_min = 150'000;
constexpr uint64_t served_us_max = 500'000;
constexpr uint64_t settling_us = 50'000;
constexpr uint64_t trial_us = 200'000;
constexpr uint64_t trial_us_max = 500'000;  // it had no turns then
constexpr double gain_min = 1.15;
constexpr uint64_t pause_us_min = 1'000'000;
constexpr uint64_t pause_us_max = 10'000'000;

}  // namespace

LoopBalance::LoopBalance(size_t loops, std::function<double()> idle_cores, const Clock& clock)
    : ask_idle_cores_(std::move(idle_cores)),
      clock_(clock),
      loads_(loops),
      pause_us_(pause_us_min) {}

size_t LoopBalance::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

size_t LoopBalance::take(size_t loop, const LoopLoad& load) {
  const std::lock_guard lock(mutex_);
  const uint64_t now_us = clock_.monotonic_us();
  loads_[loop] = {load.busy, now_us};
  served_.count += load.served;
  if (busy_in_all(now_us) < little_to_do * static_cast<double>(used_ - 1)) {
    --used_;
    trial_.reset();
    served_ = {.since_us = now_us};
  } else if (trial_) {
    judge_trial(now_us);
  } else {
    const bool needs_more = loop < used_ && used_ < loads_.size() && load.busy >= busy_all_the_time;
    const uint64_t age_us = now_us - served_.since_us;
    // What is served while they could do more says nothing.
    const bool has_time = loop < used_ && load.busy < busy_all_the_time;
    if (age_us > served_us_max || has_time)
      served_ = {.since_us = now_us};
    else if (needs_more && idle_cores(now_us) >= idle_cores_min && age_us >= served_us_min &&
             now_us >= next_trial_us_)
      begin_trial(now_us);
  }
  return used_;
}

void LoopBalance::begin_trial(uint64_t now_us) {
  trial_ = {.used_before = used_, .rate_before = served_.rate(now_us)};
  served_ = {.since_us = now_us};
  used_ = std::min(2 * used_, loads_.size());
}

void LoopBalance::judge_trial(uint64_t now_us) {
  const uint64_t age_us = now_us - served_.since_us;
  if (!trial_->is_settled && age_us >= settling_us) {
    trial_->is_settled = true;
    served_ = {.since_us = now_us};
  } else if (trial_->is_settled && age_us >= trial_us) {
    const bool is_worth_it = served_.rate(now_us) >= gain_min * trial_->rate_before;
    const bool is_told = age_us <= trial_us_max;
    if (!is_worth_it) used_ = trial_->used_before;
    if (!is_worth_it && is_told) next_trial_us_ = now_us + pause_us_;
    if (is_told) pause_us_ = is_worth_it ? pause_us_min : std::min(2 * pause_us_, pause_us_max);
    trial_.reset();
    served_ = {.since_us = now_us};
  }
}

// Over a while, for the system counts in ticks of 10 ms, but not since long ago.
double LoopBalance::idle_cores(uint64_t now_us) {
  const uint64_t age_us = now_us - idle_at_us_;
  if (age_us >= idle_age_us_max) {
    const double since_last = ask_idle_cores_();
    idle_cores_ = age_us <= load_age_us_max ? since_last : 0;
    idle_at_us_ = now_us;
  }
  return idle_cores_;
}

double LoopBalance::busy_in_all(uint64_t now_us) const {
  double busy = 0;
  for (const Load& load : loads_)
    if (now_us - load.at_us <= load_age_us_max) busy += load.busy;
  return busy;
}

std::function<double()> make_idle_cores() {
  using Clock = std::chrono::steady_clock;
  return [ticks_before = int64_t{0}, before = Clock::time_point()]() mutable -> double {
    std::string cpu;
    int64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0;
    std::ifstream stat("/proc/stat");
    // Who cannot know takes them for idle.
    if (!(stat >> cpu >> user >> nice >> system >> idle >> waiting))
      return std::numeric_limits<double>::max();
    const Clock::time_point now = Clock::now();
    const int64_t ticks = idle + waiting - std::exchange(ticks_before, idle + waiting);
    const double since_s = std::chrono::duration<double>(now - std::exchange(before, now)).count();
    return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK)) / since_s;
  };
}

}  // namespace trellis
