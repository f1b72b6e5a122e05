// An engine whose calls fail as real ones do: for testing what stands on top of it.
//
//   FaultyEngine engine(memory, {.seed = seed, .fail_commit_one_in = 50, .maybe_one_in = 100});
//
// Every fault keeps the contract of engine.h: what is answered as failed or as a conflict was not
// applied, what is answered as maybe was applied or not. The dice are thrown in the order of the
// calls, so a seed repeats a run of one thread exactly.
//
// A crash point stops everything: from then on every call fails with Code::unavailable and
// changes nothing, until restart().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "engine/engine.h"

namespace trellis {

enum class CrashPoint : uint8_t {
  before_commit,   // the commit is not applied
  after_commit,    // it is applied, and its caller never learns of it
  before_durable,  // wait_durable was called and nothing was synced
  before_block,    // a block write or remove is not applied
};

// N in x_one_in: each call, commit or wait has a chance of 1 in N; 0 is never.
struct FaultyOptions {
  uint64_t seed = 1;
  uint64_t fail_read_one_in = 0;     // get, multi_get, scan
  uint64_t fail_commit_one_in = 0;   // refused with Code::unavailable, nothing applied
  uint64_t conflict_one_in = 0;      // only of commits with expectations: others cannot conflict
  uint64_t maybe_one_in = 0;         // half of them applied
  uint64_t fail_durable_one_in = 0;  // wait_durable
  uint64_t fail_block_one_in = 0;    // calls of the block store
  uint64_t delay_one_in = 0;         // a pause before the call
  uint64_t delay_us_max = 100;
  // A disk may fail in the middle of a page: half of the scans that fail do so after their visits.
  bool fail_scans_late = true;
  Clock* clock = nullptr;  // for delays; without one a delay only lets other threads run
};

// What was injected so far: a test that counts on faults asserts that there were some.
struct FaultCounts {
  uint64_t reads = 0;
  uint64_t commits = 0;
  uint64_t conflicts = 0;
  uint64_t maybes_applied = 0;
  uint64_t maybes_dropped = 0;
  uint64_t durables = 0;
  uint64_t blocks = 0;
  uint64_t delays = 0;
  uint64_t crashes = 0;
};

class FaultyEngine final : public Engine {
 public:
  // `inner` must outlive the engine, or be replaced by restart.
  explicit FaultyEngine(Engine& inner, FaultyOptions options = {});

  // The `count`-th arrival at the point from now on crashes; 1 is the next one.
  void crash_at(CrashPoint point, uint64_t count);
  bool crashed() const { return crashed_.load(); }
  // Serves again, from `inner` if it had to be opened anew. REQUIRES: no call is running.
  void restart();
  void restart(Engine& inner);

  void set_options(FaultyOptions options);  // a new seed starts the dice anew
  FaultCounts counts() const;

  Status get(ByteView key, Value& value) override;
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override;
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override;
  std::optional<Bytes> evidence(const Value& value) const override;
  CommitTicket commit_many(std::span<const Commit* const> commits,
                           std::span<Status> outcomes) override;
  std::unique_ptr<Load> begin_load() override;
  Status wait_durable(CommitTicket ticket) override;
  CommitTicket last_ticket() const override { return inner_->last_ticket(); }
  bool shared() const override { return inner_->shared(); }
  Status room() const override { return inner_->room(); }
  BlockStore& blocks() override { return blocks_; }
  Status reclaim(const std::vector<KeyInterval>& intervals, std::atomic<bool>* canceled) override;
  Status checkpoint(const std::filesystem::path& folder) override;

 private:
  class Blocks final : public BlockStore {
   public:
    explicit Blocks(FaultyEngine& engine) : engine_(engine) {}
    Status read(std::span<const BlockId> blocks, std::span<Value> values) override;
    Status write(std::span<const BlockWrite> writes) override;
    Status remove(KeyspaceId keyspace, DataId data, uint64_t first, uint64_t end) override;
    Result<BlockPage> list(const BlockId& first, const BlockId& end, size_t blocks_max) override;
    Result<bool> remove_all(KeyspaceId keyspace, size_t blocks_max) override;

   private:
    FaultyEngine& engine_;
  };

  class FaultyLoad;
  enum class Fate : uint8_t { pass, fail, conflict, maybe_applied, maybe_dropped, lost, crashed };

  void delay();
  Status read_fault();
  Status block_fault(bool changes);
  Fate draw_fate(const Commit& commit);  // REQUIRES: mutex_
  bool arrive(CrashPoint point);         // REQUIRES: mutex_. True: it crashes here
  static bool reaches_inner(Fate fate);
  static Status answer(Fate fate, Status outcome);

  Engine* inner_;
  Blocks blocks_;
  mutable std::mutex mutex_;  // of everything below but crashed_
  FaultyOptions options_;
  Random random_;
  FaultCounts counts_;
  std::array<uint64_t, 4> arrivals_left_{};  // by CrashPoint; 0: not armed
  std::atomic<bool> crashed_ = false;
};

}  // namespace trellis
