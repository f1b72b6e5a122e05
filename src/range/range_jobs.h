// Long jobs over all ranges, several at once: counting them, and checking that what is stored reads
// the same twice. A job tells how far it is, can be paused and canceled, and keeps to a limit.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "range/range_home.h"

namespace trellis {

// What a range holds, in whatever order it is visited: the sum of a 128-bit hash of each entry.
struct RangeSum {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  unsigned __int128 hash = 0;

  void add(ByteView key, ByteView value);
  bool operator==(const RangeSum&) const = default;
};
std::string to_hex(const RangeSum& sum);

enum class RangeJobKind : uint8_t {
  recount,  // the figures of each range become exact
  check,    // each range is read until two walks in turn agree, at most three times
};
std::string_view to_string(RangeJobKind kind);

enum class RangeJobState : uint8_t { running, paused, done, canceled, failed };
std::string_view to_string(RangeJobState state);

struct RangeJobRequest {
  RangeJobKind kind;
  unsigned threads = 2;
  uint64_t bytes_per_s = 0;  // 0: no limit
};

struct RangeJobFinding {
  RangeDescriptor range;
  std::string what;  // for people
};

struct RangeJobStatus {
  uint64_t id = 0;
  RangeJobRequest request;
  RangeJobState state = RangeJobState::running;
  uint64_t started_ms = 0;
  uint64_t finished_ms = 0;  // 0: not yet
  uint64_t ranges_done = 0;
  uint64_t ranges_total = 0;
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;  // as they were thought to be at the start
  RangeSum sum;              // of all ranges together
  std::vector<RangeJobFinding> findings;
  std::string error;  // why it failed
};

// Of one range, as a job found it.
struct CheckedRange {
  RangeDescriptor range;
  RangeSum sum;
};

// Any thread.
class RangeJobs {
 public:
  struct Hooks {
    std::function<void(const RangeDescriptor&, const RangeSum&)> counted;
    std::function<uint64_t()> bytes_total;
  };
  RangeJobs(RangeHome& home, Clock& clock, Hooks hooks);
  ~RangeJobs();

  // Code::busy while one is running or paused; corrupt if the ranges do not hold all of the map.
  Result<RangeJobStatus> start(const RangeJobRequest& request);
  // The last ones, newest first.
  std::vector<RangeJobStatus> list() const;
  Result<RangeJobStatus> find(uint64_t id) const;
  // Of the ranges that it is done with, by start, from the one that holds the address on: what a
  // copy of the store must have too.
  Result<std::vector<CheckedRange>> checked(uint64_t id, ByteView from, size_t limit) const;
  // Of a job that has ended nothing is changed. bytes_per_s: absent, as it was.
  Result<RangeJobStatus> set_paused(uint64_t id, bool paused);
  Result<RangeJobStatus> set_limit(uint64_t id, uint64_t bytes_per_s);
  Result<RangeJobStatus> cancel(uint64_t id);
  void stop();  // all of them

 private:
  class Job;
  Result<std::shared_ptr<Job>> job(uint64_t id) const;

  RangeHome& home_;
  Clock& clock_;
  const Hooks hooks_;
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<Job>> jobs_;
  uint64_t last_id_ = 0;
};

}  // namespace trellis
