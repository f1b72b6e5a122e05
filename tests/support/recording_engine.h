// An engine that remembers which keys and intervals were touched: for proving that what works for
// one tenant stays inside it.
//
//   RecordingEngine engine(memory);
//   engine.take();                                     // forgets what setting up did
//   ... one tenant at work ...
//   EXPECT_EQ(outside_of(engine.take(), keyspace), "");
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/keyspace_keys.h"
#include "codec/pretty_key.h"
#include "codec/system_keys.h"
#include "engine/engine.h"

namespace trellis {

struct EngineAccess {
  enum class Kind : uint8_t { read, scan, write, remove_range, expect };
  Kind kind;
  Bytes begin;               // the key, or the start of the interval
  std::optional<Bytes> end;  // absent: a single key. Empty: to the end of the map
};

// Any thread. Blocks are passed on and not remembered.
class RecordingEngine final : public Engine {
 public:
  // `inner` must outlive the engine.
  explicit RecordingEngine(Engine& inner) : inner_(inner) {}

  // What was touched since the last call.
  std::vector<EngineAccess> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(accesses_, {});
  }

  Status get(ByteView key, Value& value) override {
    note(EngineAccess::Kind::read, key);
    return inner_.get(key, value);
  }
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override {
    for (const ByteView key : keys) note(EngineAccess::Kind::read, key);
    return inner_.multi_get(keys, values);
  }
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override {
    note(EngineAccess::Kind::scan, request.begin, Bytes(request.end));
    return inner_.scan(request, visit);
  }
  std::optional<Bytes> evidence(const Value& value) const override {
    return inner_.evidence(value);
  }
  CommitTicket commit_many(std::span<const Commit* const> commits,
                           std::span<Status> outcomes) override {
    for (const Commit* commit : commits) note_commit(*commit);
    return inner_.commit_many(commits, outcomes);
  }
  Status wait_durable(CommitTicket ticket) override { return inner_.wait_durable(ticket); }
  CommitTicket last_ticket() const override { return inner_.last_ticket(); }
  bool shared() const override { return inner_.shared(); }
  BlockStore& blocks() override { return inner_.blocks(); }
  Status checkpoint(const std::filesystem::path& folder) override {
    return inner_.checkpoint(folder);
  }

 private:
  void note(EngineAccess::Kind kind, ByteView begin, std::optional<Bytes> end = {}) {
    const std::lock_guard lock(mutex_);
    accesses_.push_back({kind, Bytes(begin), std::move(end)});
  }
  void note_commit(const Commit& commit) {
    for (const WriteSet::Write write : commit.writes) {
      if (write.op == WriteOp::remove_range)
        note(EngineAccess::Kind::remove_range, write.key, Bytes(write.value));
      else
        note(EngineAccess::Kind::write, write.key);
    }
    for (const Expectation& expectation : commit.expectations)
      note(EngineAccess::Kind::expect, expectation.begin, expectation.end);
  }

  Engine& inner_;
  std::mutex mutex_;
  std::vector<EngineAccess> accesses_;
};

inline bool is_inside(const EngineAccess& access, KeyspaceId keyspace) {
  for (const KeyMode mode : {KeyMode::raw, KeyMode::txn}) {
    const auto [begin, end] = keyspace_interval(mode, keyspace);
    if (access.begin < begin || access.begin >= end) continue;
    return !access.end || (!access.end->empty() && *access.end <= end);
  }
  return false;
}

// Its meta record may be read, and its entries of the due index be written.
inline bool is_own_system_key(const EngineAccess& access, KeyspaceId keyspace) {
  if (access.end) return false;
  if (access.begin == encode(KeyspaceMetaKey{keyspace}))
    return access.kind != EngineAccess::Kind::write;
  const auto due = decode<KeyspaceDueKey>(access.begin);
  return due && due->keyspace == keyspace && access.kind == EngineAccess::Kind::write;
}

// The first access that is none of the keyspace's business, for people; empty if there is none.
inline std::string outside_of(const std::vector<EngineAccess>& accesses, KeyspaceId keyspace) {
  constexpr std::string_view names[] = {"read", "scan", "write", "remove_range", "expect"};
  for (const EngineAccess& access : accesses) {
    if (is_inside(access, keyspace) || is_own_system_key(access, keyspace)) continue;
    std::string text(names[static_cast<size_t>(access.kind)]);
    text += " of " + pretty_key(access.begin);
    if (access.end) text += " to " + pretty_key(*access.end);
    return text;
  }
  return {};
}

}  // namespace trellis
