// An engine that writes down what is asked of another, so that somebody else can do the same.
#pragma once

#include <deque>
#include <vector>

#include "engine/engine.h"

namespace trellis {

// One call of an engine, or of its block store.
struct EngineCall {
  enum class Kind : uint8_t { get, scan, commit, read_block, write_blocks };
  struct Write {
    WriteOp op;
    Bytes key;
    Bytes value;
    bool is_patch = false;  // of a block
  };
  Kind kind;
  Bytes key = {};
  Bytes end = {};
  size_t entries_max = 0;
  bool reverse = false;
  std::vector<Write> writes = {};
};
using Trace = std::vector<EngineCall>;

class TracedBlocks final : public BlockStore {
 public:
  TracedBlocks(BlockStore& inner, Trace& trace) : inner_(inner), trace_(trace) {}
  Status read(std::span<const BlockId> blocks, std::span<Value> values) override;
  Status write(std::span<const BlockWrite> writes) override;
  Status remove(KeyspaceId keyspace, DataId data, uint64_t first, uint64_t end) override {
    return inner_.remove(keyspace, data, first, end);
  }
  Result<BlockPage> list(const BlockId& first, const BlockId& end, size_t blocks_max) override {
    return inner_.list(first, end, blocks_max);
  }
  Result<bool> remove_all(KeyspaceId keyspace, size_t blocks_max) override {
    return inner_.remove_all(keyspace, blocks_max);
  }

 private:
  BlockStore& inner_;
  Trace& trace_;
};

// One thread, while it is tracing.
class TracedEngine final : public Engine {
 public:
  // `inner` must outlive the engine.
  explicit TracedEngine(Engine& inner) : inner_(inner), blocks_(inner.blocks(), trace_) {}

  void set_tracing(bool on) { is_tracing_ = on; }
  Trace take_trace() { return std::exchange(trace_, {}); }

  Status get(ByteView key, Value& value) override;
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override;
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override;
  std::optional<Bytes> evidence(const Value& value) const override {
    return inner_.evidence(value);
  }
  CommitTicket commit_many(std::span<const Commit* const> commits,
                           std::span<Status> outcomes) override;
  Status wait_durable(CommitTicket ticket) override { return inner_.wait_durable(ticket); }
  CommitTicket last_ticket() const override { return inner_.last_ticket(); }
  bool shared() const override { return inner_.shared(); }
  Status checkpoint(const std::filesystem::path& folder) override {
    return inner_.checkpoint(folder);
  }
  BlockStore& blocks() override { return is_tracing_ ? blocks_ : inner_.blocks(); }

 private:
  Engine& inner_;
  bool is_tracing_ = false;
  Trace trace_;
  TracedBlocks blocks_;
};

}  // namespace trellis
