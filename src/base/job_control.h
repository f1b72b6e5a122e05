// How a long job is steered and watched: paused, slowed down, canceled, and how far it is. The
// threads of a job share one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/result.h"

namespace trellis {

// Reasons of the errors that pass() gives.
inline constexpr std::string_view job_canceled = "job_canceled";
inline constexpr std::string_view job_stopped = "job_stopped";

// Any thread.
class JobControl {
 public:
  JobControl();  // by the clock of the system
  explicit JobControl(Clock& clock) : clock_(clock) {}

  // Done with so many bytes. Waits while the job is paused, or as long as it was too fast; an error
  // if it is to end.
  Status pass(uint64_t bytes);
  // Likewise of bytes that are no progress, as those that are read once more.
  Status pass_again(uint64_t bytes);
  // For those who must not wait: done with so many bytes. In how many us it may go on.
  uint64_t charge(uint64_t bytes);
  // They were done before, and are not waited for.
  void skip(uint64_t bytes);

  void pause(bool paused);
  void set_bytes_per_second(uint64_t bytes);  // 0: as fast as it goes
  void cancel() { end(job_canceled); }
  void stop() { end(job_stopped); }  // the server stops; the next one goes on
  void begin_phase(std::string_view name, uint64_t bytes_total);  // static text
  // For tests: called at named points between two steps; an error is a crash there.
  std::function<Status(std::string_view point)> at_step = {};
  Status step(std::string_view point) const { return at_step ? at_step(point) : Status(); }

  struct Progress {
    std::string_view phase;
    uint64_t bytes_total = 0;  // 0: not known; never less than what is done
    uint64_t bytes_done = 0;
    bool paused = false;
    uint64_t bytes_per_second = 0;
  };
  Progress progress() const;

 private:
  void end(std::string_view reason);
  void pay(uint64_t bytes);  // REQUIRES: mutex_ is held, as below
  uint64_t wait_us() const;
  Status wait(std::unique_lock<std::mutex>& lock);

  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string_view ended_;  // the reason
  std::string_view phase_ = "waiting";
  bool paused_ = false;
  uint64_t bytes_per_second_ = 0;
  uint64_t bytes_total_ = 0;
  uint64_t bytes_done_ = 0;
  uint64_t free_us_ = 0;  // when the next may pass
};

// work(0), work(1) ... work(count - 1), as many at a time as there are threads. The first error
// ends it, when those that run are done.
Status run_in_parallel(unsigned threads, size_t count, FunctionRef<Status(size_t)> work);

}  // namespace trellis
