// Asks again where the answer was Code::unavailable, which says that nothing was applied. With it
// the suite runs on an engine that fails all the time, and so checks that this answer is true.
#pragma once

#include <type_traits>

#include "base/assert.h"
#include "engine/engine.h"

namespace trellis {

class RetryingEngine final : public Engine {
 public:
  explicit RetryingEngine(Engine& inner) : inner_(inner), blocks_(inner.blocks()) {}

  Status get(ByteView key, Value& value) override {
    return retry([&] { return inner_.get(key, value); });
  }
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override {
    return retry([&] { return inner_.multi_get(keys, values); });
  }
  // REQUIRES: the inner engine fails a scan before its first visit, or not at all.
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override {
    return retry([&] { return inner_.scan(request, visit); });
  }
  std::optional<Bytes> evidence(const Value& value) const override {
    return inner_.evidence(value);
  }
  CommitTicket commit_many(std::span<const Commit* const> commits,
                           std::span<Status> outcomes) override {
    ASSERT(commits.size() == outcomes.size());
    CommitTicket ticket = inner_.last_ticket();
    for (size_t i = 0; i < commits.size(); i++) {  // one by one: a retry must not change the order
      outcomes[i] = retry([&] {
        Status outcome;
        ticket = inner_.commit_many(commits.subspan(i, 1), {&outcome, 1});
        return outcome;
      });
    }
    return ticket;
  }
  Status wait_durable(CommitTicket ticket) override {
    return retry([&] { return inner_.wait_durable(ticket); });
  }
  CommitTicket last_ticket() const override { return inner_.last_ticket(); }
  bool shared() const override { return inner_.shared(); }
  BlockStore& blocks() override { return blocks_; }
  Status checkpoint(const std::filesystem::path& folder) override {
    return inner_.checkpoint(folder);
  }

 private:
  // More failures in a row than chance gives at any rate the suite uses.
  static constexpr int attempts_max = 1000;

  template <class Call>
  static std::invoke_result_t<Call> retry(Call call) {
    for (int attempt = 1;; attempt++) {
      auto answer = call();
      const bool again = !answer.has_value() && answer.error().code == Code::unavailable;
      if (!again || attempt == attempts_max) return answer;
    }
  }

  class Blocks final : public BlockStore {
   public:
    explicit Blocks(BlockStore& inner) : inner_(inner) {}
    Status read(std::span<const BlockId> blocks, std::span<Value> values) override {
      return retry([&] { return inner_.read(blocks, values); });
    }
    Status write(std::span<const BlockWrite> writes) override {
      return retry([&] { return inner_.write(writes); });
    }
    Status remove(KeyspaceId keyspace, DataId data, uint64_t first, uint64_t end) override {
      return retry([&] { return inner_.remove(keyspace, data, first, end); });
    }
    Result<BlockPage> list(const BlockId& first, const BlockId& end, size_t blocks_max) override {
      return retry([&] { return inner_.list(first, end, blocks_max); });
    }
    Result<bool> remove_all(KeyspaceId keyspace, size_t blocks_max) override {
      return retry([&] { return inner_.remove_all(keyspace, blocks_max); });
    }

   private:
    BlockStore& inner_;
  };

  Engine& inner_;
  Blocks blocks_;
};

}  // namespace trellis
