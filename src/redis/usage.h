// What the clients of one keyspace do, for INFO, SLOWLOG and LATENCY: figures of each command and
// kind of error, the slow log, latency events, and whether clients are paused.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "redis/command.h"

namespace trellis {

struct Session;

// By duration: bucket i has those of less than (1024 << i) ns. Their ends are those that Redis
// tells.
inline constexpr size_t duration_buckets = 24;
constexpr uint64_t bucket_end_ns(size_t bucket) {
  return (uint64_t{1024} << bucket) + (uint64_t{8} << bucket) - 1;
}

struct CommandFigures {
  uint64_t calls = 0;
  uint64_t us = 0;
  uint64_t rejected = 0;  // before they ran
  uint64_t failed = 0;
  std::array<uint64_t, duration_buckets> durations{};

  void ran(uint64_t took_us, bool has_failed);
  void add(const CommandFigures& other);
};

struct UsageFigures {
  std::unordered_map<const Command*, CommandFigures> commands;
  std::map<std::string, uint64_t, std::less<>> errors;  // by their first word
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t connections = 0;
  uint64_t expired = 0;
  uint64_t received_bytes = 0;
  uint64_t sent_bytes = 0;

  void rejected(const Command& command) { commands[&command].rejected++; }
  void error(std::string_view text);
  void add(const UsageFigures& other);
};

struct SlowCommand {
  uint64_t id;
  uint64_t unix_s;
  uint64_t us;
  std::vector<std::string> args;  // cut, and without secrets
  std::string address;
  std::string name;
};

struct LatencyEvent {
  struct Sample {
    uint64_t unix_s;
    uint64_t ms;
  };
  std::deque<Sample> samples;  // one a second, the oldest first
  uint64_t highest_ms = 0;
};

// Any thread.
class Usage {
 public:
  // Each thread counts in a part of its own, so that only a reader is ever in its way. Once for all
  // commands that ran together is cheap.
  template <class Count>
  void count(Count&& add) {
    Part& part = own_part();
    const std::lock_guard lock(part.mutex);
    add(part.figures);
  }
  UsageFigures figures() const;
  void reset_figures();

  // What it takes for a command to be noted, as CONFIG says.
  struct Limits {
    int64_t slow_us = 10'000;  // negative: never
    uint64_t slow_max = 128;
    uint64_t latency_ms = 0;  // 0: never
  };
  void set_limits(const Limits& limits);
  bool is_notable(uint64_t us) const;
  // REQUIRES: is_notable. What it ran is of the session, whose thread this is.
  void note(const Session& session, const Command& command, Args args, uint64_t us,
            uint64_t unix_s);

  std::vector<SlowCommand> slow_commands(size_t count) const;  // the latest first
  size_t slow_count() const;
  void forget_slow_commands();

  std::map<std::string, LatencyEvent, std::less<>> latency_events() const;
  bool forget_latency_event(std::string_view name);  // whether there was one

  // Until then commands wait: all, or those that write. Of one that still goes on the later end
  // holds, and all over writes.
  void pause(uint64_t until_ms, bool writes_only, uint64_t now_ms);
  void unpause() { pause_until_ms_ = 0; }
  bool is_paused(bool is_write, uint64_t now_ms) const {
    const uint64_t until_ms = pause_until_ms_.load(std::memory_order_relaxed);
    return until_ms > now_ms && (is_write || !pauses_writes_only_);
  }
  uint64_t pause_until_ms() const { return pause_until_ms_; }

 private:
  struct alignas(64) Part {
    mutable std::mutex mutex;
    UsageFigures figures;
  };
  Part& own_part();

  std::array<Part, 8> parts_;
  std::atomic<int64_t> slow_us_{10'000};
  std::atomic<uint64_t> latency_ms_{0};
  std::atomic<uint64_t> pause_until_ms_{0};
  std::atomic<bool> pauses_writes_only_{false};

  mutable std::mutex mutex_;  // of what follows
  uint64_t slow_max_ = 128;
  uint64_t slow_ids_ = 0;
  std::deque<SlowCommand> slow_;
  std::map<std::string, LatencyEvent, std::less<>> latency_;
};

}  // namespace trellis
