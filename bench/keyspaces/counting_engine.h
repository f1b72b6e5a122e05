// An engine that counts the calls of another.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/engine.h"

namespace trellis {

struct EngineCalls {
  uint64_t gets = 0;  // each key of a multi_get is one
  uint64_t scans = 0;
  uint64_t commits = 0;

  EngineCalls operator-(const EngineCalls& other) const {
    return {gets - other.gets, scans - other.scans, commits - other.commits};
  }
};

// Any thread.
class CountingEngine final : public Engine {
 public:
  // `inner` must outlive the engine.
  explicit CountingEngine(Engine& inner) : inner_(inner) {}

  EngineCalls calls() const { return {gets_.load(), scans_.load(), commits_.load()}; }
  bool is_reclaiming() const { return reclaims_.load() > 0; }

  Status get(ByteView key, Value& value) override {
    gets_.fetch_add(1, std::memory_order_relaxed);
    return inner_.get(key, value);
  }
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override {
    gets_.fetch_add(keys.size(), std::memory_order_relaxed);
    return inner_.multi_get(keys, values);
  }
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override {
    scans_.fetch_add(1, std::memory_order_relaxed);
    return inner_.scan(request, visit);
  }
  std::optional<Bytes> evidence(const Value& value) const override {
    return inner_.evidence(value);
  }
  CommitTicket commit_many(std::span<const Commit* const> commits,
                           std::span<Status> outcomes) override {
    commits_.fetch_add(commits.size(), std::memory_order_relaxed);
    return inner_.commit_many(commits, outcomes);
  }
  Status wait_durable(CommitTicket ticket) override { return inner_.wait_durable(ticket); }
  CommitTicket last_ticket() const override { return inner_.last_ticket(); }
  bool shared() const override { return inner_.shared(); }
  BlockStore& blocks() override { return inner_.blocks(); }
  Status reclaim(ByteView begin, ByteView end, std::atomic<bool>* canceled) override {
    reclaims_++;
    Status status = inner_.reclaim(begin, end, canceled);
    reclaims_--;
    return status;
  }
  Status checkpoint(const std::filesystem::path& folder) override {
    return inner_.checkpoint(folder);
  }

 private:
  Engine& inner_;
  std::atomic<uint64_t> gets_{0};
  std::atomic<uint64_t> scans_{0};
  std::atomic<uint64_t> commits_{0};
  std::atomic<unsigned> reclaims_{0};  // that run now
};

}  // namespace trellis
