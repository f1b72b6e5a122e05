// A load of commands whose traces show, after a crash, which of them are there and each whole.
//
// A lane is one client with keys of its own. It says operation 1, 2, 3 ... in pipelines; one is a
// command, or MULTI to EXEC. What a crash leaves of a lane's keys must be what an engine in memory
// holds after a prefix of its operations. Across lanes: amounts are moved between hashes that all
// share, in transactions that also write them into the lane's own book, and a lane writes down how
// far the others were, so that nobody's operation is there without those before it.
//
// Beside them one client fills, flushes and swaps two databases of its own.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <set>

#include "base/random.h"
#include "engine/memory_engine.h"
#include "redis_client.h"

namespace trellis {

class CommandLoad {
 public:
  static constexpr size_t lanes = 4;
  using Positions = std::array<uint64_t, lanes>;
  using Time = std::chrono::steady_clock::time_point;

  CommandLoad();

  // Says operations until the server is gone or answers with an error of its own, which stays in
  // failure(lane). One thread per lane.
  void run_lane(RedisClient& client, size_t lane, uint64_t seed);
  // The same for the one that flushes.
  void run_flusher(RedisClient& client);
  // Any thread: how many answers there were, in all lanes and runs, and until there are so many. A
  // lane that ends keeps nobody waiting.
  uint64_t answers() const { return answers_; }
  void wait_for_answers(uint64_t wanted) const;

  struct Acknowledged {
    Time time;
    uint64_t n;
  };
  // Of the last run.
  const std::vector<Acknowledged>& acknowledged(size_t lane) const { return acknowledged_[lane]; }
  Bytes failure(size_t lane) const { return failures_[lane]; }
  uint64_t acknowledged_total() const;

  // What was promised by the last run if everything acknowledged before that time was.
  Positions promised(Time before = Time::max()) const;
  // How far each lane is: at least as far as promised, or Code::corrupt with what is wrong. From
  // there the next run goes on.
  Result<Positions> check(RedisClient& client, const Positions& promised);

 private:
  struct Operation {
    std::vector<Words> commands;
    std::vector<Bytes> keys;  // of the lane's own that it may change
  };
  class Draw;
  Status check_lane(RedisClient& client, size_t lane, uint64_t promised);
  Status check_seen(RedisClient& client, size_t lane);
  Status check_flushed(RedisClient& client);
  Status adopt(RedisClient& client);

  MemoryEngine memory_;
  SystemClock clock_;
  std::unique_ptr<RedisStack> model_stack_;
  std::unique_ptr<RedisClient> model_;
  Positions positions_{};  // where the last check found them
  uint64_t flushes_ = 0;
  std::array<std::vector<Operation>, lanes> said_;
  std::array<std::vector<Acknowledged>, lanes> acknowledged_;
  std::array<std::atomic<uint64_t>, lanes> answered_{};
  std::atomic<uint64_t> answers_{0};
  std::array<Bytes, lanes> failures_;
};

// That every key's records are as many as it says, and DBSIZE the number of keys.
Status check_counts(RedisClient& client);

}  // namespace trellis
