// The map on an object store: range objects (range_object.h), shared by any number of clients.
//
//   auto engine = ClusterEngine::open(store, clock);
//
// Each open handle is an incarnation with a log of its own (transaction_log.h), and a heartbeat. Of
// one whose heartbeat stands still the others finish what it had decided, and fence it off: if it
// lives, it refuses to commit from when it notices until it has started again as a new incarnation.
// Meanwhile whoever meets what it left helps.
//
// Keys from ff ff on, and those that have no address (codec/address.h), are not in the map: they
// are read as absent and refused with Code::invalid.
#pragma once

#include <memory>

#include "cluster_engine/cluster_commit.h"
#include "cluster_engine/commit_order.h"
#include "cluster_engine/log_watch.h"

namespace trellis {

struct ClusterEngineOptions {
  // How long others that do not move are waited for before they are helped, or what they began is
  // given up.
  uint64_t patience_us = 1'000'000;
  size_t range_cache_bytes = 64 * 1024 * 1024;
  // Of the heartbeat; 0: the caller beats and watches. A client is taken for dead whose heartbeat
  // was the same at so many looks, of which whoever watches takes one in each interval.
  uint64_t beat_interval_us = 2'000'000;
  unsigned unchanged_beats_max = 5;
  size_t commit_threads = 8;  // besides the caller, for batches of commits
};

class ClusterBlocks final : public BlockStore {
 public:
  explicit ClusterBlocks(ObjectStore& store) : store_(store) {}
  Status read(std::span<const BlockId> blocks, std::span<Value> values) override;
  Status write(std::span<const BlockWrite> writes) override;
  Status remove(KeyspaceId keyspace, DataId data, uint64_t first, uint64_t end) override;
  Result<BlockPage> list(const BlockId& first, const BlockId& end, size_t blocks_max) override;
  Result<bool> remove_all(KeyspaceId keyspace, size_t blocks_max) override;

 private:
  Result<std::vector<BlockId>> first_blocks(const BlockId& first, const BlockId& end,
                                            size_t blocks_max);
  Status remove_object(ByteView object);

  ObjectStore& store_;
};

class ClusterEngine final : public Engine {
 public:
  // Makes the first range if there is none. Store and clock must outlive it.
  static Result<std::unique_ptr<ClusterEngine>> open(ObjectStore& store, Clock& clock,
                                                     ClusterEngineOptions options = {});
  // Removes its log, if it can.
  ~ClusterEngine() override;

  uint64_t incarnation() const { return log_->incarnation(); }
  // Says that this one lives, or starts it again if others took it for dead. Like watch, for one
  // thread at a time, which is the engine's own if it has an interval.
  Status beat();
  // Looks who is dead, and sweeps what they left. The first error, after what could be done is.
  Status watch();
  // Fences these clients off and finishes what they left. The first error, after all of them.
  Status sweep(FunctionRef<bool(uint64_t incarnation)> is_dead);

  Status get(ByteView key, Value& value) override;
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override;
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override;
  std::optional<Bytes> evidence(const Value& value) const override;
  // At the same time where they touch different keys. What is done is durable.
  CommitTicket commit_many(std::span<const Commit* const> commits,
                           std::span<Status> outcomes) override;
  Status wait_durable(CommitTicket) override { return {}; }
  CommitTicket last_ticket() const override { return {last_ticket_}; }
  bool shared() const override { return true; }
  BlockStore& blocks() override { return blocks_; }
  Status checkpoint(const std::filesystem::path& folder) override;

 private:
  ClusterEngine(ObjectStore& store, const ClusterEngineOptions& options,
                std::unique_ptr<RangeRouter> router, std::unique_ptr<TransactionLog> log);
  Status sweep_logs(std::span<const uint64_t> incarnations);
  void repeat(uint64_t interval_us, Status (ClusterEngine::*task)());

  ObjectStore& store_;
  const std::unique_ptr<RangeRouter> router_;
  const std::unique_ptr<TransactionLog> log_;
  ClusterReader reader_;
  ClusterCommitter committer_;
  ClusterBlocks blocks_;
  LogWatch watch_;
  CommitPool pool_;
  std::atomic<uint64_t> last_ticket_ = 0;

  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::vector<std::thread> repeating_;  // a sweep may take long, and must not keep the beat waiting
};

}  // namespace trellis
