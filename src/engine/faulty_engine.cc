#include "engine/faulty_engine.h"

#include <thread>

#include "base/assert.h"

namespace trellis {
namespace {

Error injected(const char* what) {
  return Error{Code::unavailable, std::string("injected: ") + what + " failed"};
}

Error crashed_error() { return Error{Code::unavailable, "crashed"}; }

}  // namespace

FaultyEngine::FaultyEngine(Engine& inner, FaultyOptions options)
    : inner_(&inner), blocks_(*this), options_(options), random_(options.seed) {}

void FaultyEngine::crash_at(CrashPoint point, uint64_t count) {
  std::lock_guard lock(mutex_);
  arrivals_left_[static_cast<size_t>(point)] = count;
}

void FaultyEngine::restart() {
  std::lock_guard lock(mutex_);
  arrivals_left_ = {};
  crashed_ = false;
}

void FaultyEngine::restart(Engine& inner) {
  inner_ = &inner;
  restart();
}

void FaultyEngine::set_options(FaultyOptions options) {
  std::lock_guard lock(mutex_);
  if (options.seed != options_.seed) random_ = Random(options.seed);
  options_ = options;
}

FaultCounts FaultyEngine::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

void FaultyEngine::delay() {
  uint64_t us = 0;
  Clock* clock = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (!random_.one_in(options_.delay_one_in)) return;
    counts_.delays++;
    us = random_.below(options_.delay_us_max + 1);
    clock = options_.clock;
  }
  if (clock != nullptr) {
    clock->pause_us(us);
  } else {
    std::this_thread::yield();
  }
}

bool FaultyEngine::arrive(CrashPoint point) {
  uint64_t& left = arrivals_left_[static_cast<size_t>(point)];
  if (left == 0 || --left != 0) return false;
  counts_.crashes++;
  crashed_ = true;
  return true;
}

// ---------------------------------------------------------------------------------------------
// Reads

Status FaultyEngine::read_fault() {
  delay();
  if (crashed_) return crashed_error();
  std::lock_guard lock(mutex_);
  if (!random_.one_in(options_.fail_read_one_in)) return {};
  counts_.reads++;
  return injected("read");
}

Status FaultyEngine::get(ByteView key, Value& value) {
  TRY(read_fault());
  return inner_->get(key, value);
}

Status FaultyEngine::multi_get(std::span<const ByteView> keys, std::span<Value> values) {
  TRY(read_fault());
  return inner_->multi_get(keys, values);
}

Result<ScanPage> FaultyEngine::scan(const ScanRequest& request, ScanVisitor visit) {
  Status fault = read_fault();
  if (fault.has_value()) return inner_->scan(request, visit);
  bool after_visits = false;
  if (!crashed_) {
    std::lock_guard lock(mutex_);
    after_visits = options_.fail_scans_late && random_.one_in(2);
  }
  if (after_visits) TRY(inner_->scan(request, visit));
  return std::move(fault).error();
}

std::optional<Bytes> FaultyEngine::evidence(const Value& value) const {
  return inner_->evidence(value);
}

// ---------------------------------------------------------------------------------------------
// Commits

FaultyEngine::Fate FaultyEngine::draw_fate(const Commit& commit) {
  if (crashed_ || arrive(CrashPoint::before_commit)) return Fate::crashed;
  if (arrive(CrashPoint::after_commit)) return Fate::lost;
  if (random_.one_in(options_.fail_commit_one_in)) {
    counts_.commits++;
    return Fate::fail;
  }
  if (!commit.expectations.empty() && random_.one_in(options_.conflict_one_in)) {
    counts_.conflicts++;
    return Fate::conflict;
  }
  if (random_.one_in(options_.maybe_one_in)) {
    const bool applied = random_.one_in(2);
    (applied ? counts_.maybes_applied : counts_.maybes_dropped)++;
    return applied ? Fate::maybe_applied : Fate::maybe_dropped;
  }
  return Fate::pass;
}

bool FaultyEngine::reaches_inner(Fate fate) {
  return fate == Fate::pass || fate == Fate::maybe_applied || fate == Fate::lost;
}

// What the caller hears; `outcome` is the inner engine's, of those that reached it.
Status FaultyEngine::answer(Fate fate, Status outcome) {
  switch (fate) {
    case Fate::pass: return outcome;
    case Fate::fail: return injected("commit");
    case Fate::conflict: return Error{Code::conflict, "injected: conflict"};
    case Fate::maybe_dropped: return Error{Code::maybe, "injected: outcome unknown"};
    case Fate::maybe_applied:
    case Fate::lost:
      if (!outcome.has_value()) return outcome;  // refused: nothing is unknown about it
      return Error{Code::maybe, "injected: outcome unknown"};
    case Fate::crashed: return crashed_error();
  }
  ASSERT(false);
}

CommitTicket FaultyEngine::commit_many(std::span<const Commit* const> commits,
                                       std::span<Status> outcomes) {
  ASSERT(commits.size() == outcomes.size());
  delay();
  std::vector<Fate> fates(commits.size());
  std::vector<const Commit*> passed;
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < commits.size(); i++) {
      fates[i] = draw_fate(*commits[i]);
      if (reaches_inner(fates[i])) passed.push_back(commits[i]);
    }
    if (crashed_) {  // it took with it the answers of those before it in this call
      for (Fate& fate : fates) {
        if (fate == Fate::pass) fate = Fate::lost;
      }
    }
  }
  std::vector<Status> inner_outcomes(passed.size());
  CommitTicket ticket = inner_->last_ticket();
  if (!passed.empty()) ticket = inner_->commit_many(passed, inner_outcomes);
  size_t next = 0;
  for (size_t i = 0; i < commits.size(); i++) {
    Status outcome;
    if (reaches_inner(fates[i])) outcome = std::move(inner_outcomes[next++]);
    outcomes[i] = answer(fates[i], std::move(outcome));
  }
  return ticket;
}

class FaultyEngine::FaultyLoad final : public Load {
 public:
  FaultyLoad(FaultyEngine& engine, std::unique_ptr<Load> inner)
      : engine_(engine), inner_(std::move(inner)) {}
  void put(WriteSet puts) override { inner_->put(std::move(puts)); }
  Status commit(Commit with) override {
    engine_.delay();
    Fate fate = Fate::pass;
    {
      const std::lock_guard lock(engine_.mutex_);
      fate = engine_.draw_fate(with);
    }
    Status outcome;
    if (reaches_inner(fate)) outcome = inner_->commit(std::move(with));
    return answer(fate, std::move(outcome));
  }

 private:
  FaultyEngine& engine_;
  const std::unique_ptr<Load> inner_;
};

std::unique_ptr<Load> FaultyEngine::begin_load() {
  std::unique_ptr<Load> load = inner_->begin_load();
  if (load == nullptr) return nullptr;
  return std::make_unique<FaultyLoad>(*this, std::move(load));
}

Status FaultyEngine::wait_durable(CommitTicket ticket) {
  delay();
  {
    std::lock_guard lock(mutex_);
    if (crashed_ || arrive(CrashPoint::before_durable)) return crashed_error();
    if (random_.one_in(options_.fail_durable_one_in)) {
      counts_.durables++;
      return injected("sync");
    }
  }
  return inner_->wait_durable(ticket);
}

Status FaultyEngine::reclaim(const std::vector<KeyInterval>& intervals,
                             std::atomic<bool>* canceled) {
  if (crashed_) return crashed_error();
  return inner_->reclaim(intervals, canceled);
}

Status FaultyEngine::checkpoint(const std::filesystem::path& folder) {
  if (crashed_) return crashed_error();
  return inner_->checkpoint(folder);
}

// ---------------------------------------------------------------------------------------------
// Blocks

Status FaultyEngine::block_fault(bool changes) {
  delay();
  std::lock_guard lock(mutex_);
  if (crashed_ || (changes && arrive(CrashPoint::before_block))) return crashed_error();
  if (!random_.one_in(options_.fail_block_one_in)) return {};
  counts_.blocks++;
  return injected("block call");
}

Status FaultyEngine::Blocks::read(std::span<const BlockId> blocks, std::span<Value> values) {
  TRY(engine_.block_fault(false));
  return engine_.inner_->blocks().read(blocks, values);
}

Status FaultyEngine::Blocks::write(std::span<const BlockWrite> writes) {
  TRY(engine_.block_fault(true));
  return engine_.inner_->blocks().write(writes);
}

Status FaultyEngine::Blocks::remove(KeyspaceId keyspace, DataId data, uint64_t first,
                                    uint64_t end) {
  TRY(engine_.block_fault(true));
  return engine_.inner_->blocks().remove(keyspace, data, first, end);
}

Result<BlockPage> FaultyEngine::Blocks::list(const BlockId& first, const BlockId& end,
                                             size_t blocks_max) {
  TRY(engine_.block_fault(false));
  return engine_.inner_->blocks().list(first, end, blocks_max);
}

Result<bool> FaultyEngine::Blocks::remove_all(KeyspaceId keyspace, size_t blocks_max) {
  TRY(engine_.block_fault(true));
  return engine_.inner_->blocks().remove_all(keyspace, blocks_max);
}

}  // namespace trellis
