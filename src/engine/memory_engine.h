// The map in memory: for tests, and as the model of a shared engine.
//
//   MemoryEngine engine;                                  // alone on a store of its own
//
//   auto store = std::make_shared<MemoryStore>();         // several servers on one cluster
//   MemoryEngine one(store, MemoryEngine::Use::shared);
//   MemoryEngine two(store, MemoryEngine::Use::shared);
//
// Evidence is what was read: the value of a get, all entries of a page, length-prefixed.
//
// A crashable store remembers how to take back what nobody waited for, and so shows what a power
// cut may leave: crash() keeps a prefix of the order of all commits and block writes. The handles
// that were open at the crash answer nothing but Code::unavailable from then on.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "base/random.h"
#include "engine/engine.h"

namespace trellis {

class MemoryStore {
 public:
  enum class Crashable : bool { no, yes };
  explicit MemoryStore(Crashable crashable = Crashable::no)
      : crashable_(crashable == Crashable::yes) {}

  struct CrashReport {
    size_t kept = 0;     // commits and block writes that were not durable and survived
    size_t dropped = 0;  // those that did not
  };
  // REQUIRES: crashable. Any thread.
  CrashReport crash(Random& random);

  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

 private:
  friend class MemoryEngine;
  friend class MemoryBlocks;
  // Readers keep what they found by sharing it: a later write replaces the pointer, not the bytes.
  using Stored = std::shared_ptr<const Bytes>;
  using Entries = std::map<Bytes, Stored, std::less<>>;
  using Blocks = std::map<BlockId, Stored>;

  // What one commit or one block write replaced; null: there was nothing.
  struct Undo {
    uint64_t sequence;
    std::vector<std::pair<Bytes, Stored>> entries;
    std::vector<std::pair<BlockId, Stored>> blocks;
  };

  // All below REQUIRE mutex_: shared for reading, exclusive for the rest.
  Status check_open(uint64_t generation) const;
  bool holds(const Expectation& expectation) const;
  bool interval_holds(ByteView begin, ByteView end, ByteView seen) const;
  void apply(const WriteSet& writes);
  void set_entry(ByteView key, Stored value, Undo& undo);
  void remove_range(ByteView begin, ByteView end, Undo& undo);
  void add(ByteView key, int64_t delta, Undo& undo);
  void write_block(const BlockWrite& write);
  void set_block(const BlockId& block, Stored value, Undo& undo);
  void remove_blocks(Blocks::iterator from, Blocks::iterator to);
  void remember(Undo undo);
  void revert(Undo& undo);
  Entries::const_iterator end_of(ByteView end) const;

  const bool crashable_;
  mutable std::shared_mutex mutex_;
  Entries entries_;
  Blocks blocks_;
  uint64_t sequence_ = 0;    // of the latest commit or block write
  uint64_t generation_ = 0;  // crashes so far
  std::deque<Undo> undurable_;
};

class MemoryBlocks final : public BlockStore {
 public:
  MemoryBlocks(MemoryStore& store, uint64_t generation) : store_(store), generation_(generation) {}

  Status read(std::span<const BlockId> blocks, std::span<Value> values) override;
  Status write(std::span<const BlockWrite> writes) override;
  Status remove(KeyspaceId keyspace, DataId data, uint64_t first, uint64_t end) override;
  Result<BlockPage> list(const BlockId& first, const BlockId& end, size_t blocks_max) override;
  Result<bool> remove_all(KeyspaceId keyspace, size_t blocks_max) override;

 private:
  MemoryStore& store_;
  const uint64_t generation_;
};

class MemoryEngine : public Engine {
 public:
  enum class Use : bool { alone, shared };
  MemoryEngine() : MemoryEngine(std::make_shared<MemoryStore>(), Use::alone) {}
  MemoryEngine(std::shared_ptr<MemoryStore> store, Use use);

  Status get(ByteView key, Value& value) override;
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override;
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override;
  std::optional<Bytes> evidence(const Value& value) const override;
  CommitTicket commit_many(std::span<const Commit* const> commits,
                           std::span<Status> outcomes) override;
  std::unique_ptr<Load> begin_load() override;
  Status wait_durable(CommitTicket ticket) override;
  CommitTicket last_ticket() const override;
  bool shared() const override { return use_ == Use::shared; }
  BlockStore& blocks() override { return blocks_; }
  Status checkpoint(const std::filesystem::path& folder) override;

 private:
  class WholeLoad;
  struct Page;
  Status load_page(const ScanRequest& request, Page& page) const;
  Status commit_one(const Commit& commit);

  const std::shared_ptr<MemoryStore> store_;
  const Use use_;
  const uint64_t generation_;
  MemoryBlocks blocks_;
};

}  // namespace trellis
