// The map on an object store: range objects (range_object.h), shared by any number of clients.
//
//   auto engine = ClusterEngine::open(store, clock);
//
// Each open handle is an incarnation with a log of its own (transaction_log.h). One that died is
// fenced off and swept by sweep(), which somebody calls who knows that it is dead; until then
// whoever meets what it left helps.
//
// Keys from ff ff on, and those that have no address (codec/address.h), are not in the map: they
// are read as absent and refused with Code::invalid.
#pragma once

#include <memory>

#include "cluster_engine/cluster_commit.h"

namespace trellis {

struct ClusterEngineOptions {
  // How long others are waited for before they are helped, or what they began is given up.
  uint64_t patience_us = 1'000'000;
  size_t range_cache_bytes = 64 * 1024 * 1024;
};

class ClusterBlocks final : public BlockStore {
 public:
  explicit ClusterBlocks(ObjectStore& store) : store_(store) {}
  Status read(std::span<const BlockId> blocks, std::span<Value> values) override;
  Status write(std::span<const BlockWrite> writes) override;
  Status remove(KeyspaceId keyspace, DataId data, uint64_t first, uint64_t end) override;

 private:
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
  // Finishes what dead clients left. REQUIRES: is_dead is never true of one that lives; it is only
  // slower for that, and must be opened again.
  Status sweep(FunctionRef<bool(uint64_t incarnation)> is_dead);

  Status get(ByteView key, Value& value) override;
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override;
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override;
  std::optional<Bytes> evidence(const Value& value) const override;
  // One by one: what is done is durable.
  CommitTicket commit_many(std::span<const Commit* const> commits,
                           std::span<Status> outcomes) override;
  Status wait_durable(CommitTicket) override { return {}; }
  CommitTicket last_ticket() const override { return {last_ticket_}; }
  bool shared() const override { return true; }
  BlockStore& blocks() override { return blocks_; }
  Status checkpoint(const std::filesystem::path& folder) override;

 private:
  ClusterEngine(ObjectStore& store, std::unique_ptr<RangeRouter> router,
                std::unique_ptr<TransactionLog> log);

  ObjectStore& store_;
  const std::unique_ptr<RangeRouter> router_;
  const std::unique_ptr<TransactionLog> log_;
  ClusterReader reader_;
  ClusterCommitter committer_;
  ClusterBlocks blocks_;
  std::atomic<uint64_t> last_ticket_ = 0;
};

}  // namespace trellis
