// An engine that calls back at chosen moments: for tests of what happens in between.
//
//   HookedEngine engine(memory);
//   engine.on_durable = [&] { ... return Status(); };  // a commit is visible, its latches are free
//
// A hook is called once, and may use the engine itself: it is taken off before.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/engine.h"

namespace trellis {

// Hooks are set while no other thread uses the engine.
class HookedEngine final : public Engine {
 public:
  // `inner` must outlive the engine.
  explicit HookedEngine(Engine& inner) : inner_(inner) {}

  std::function<void()> after_get;     // what was read is not yet returned
  std::function<Status()> on_commit;   // before it is applied; an error is its outcome
  std::function<Status()> on_durable;  // an error is the answer of wait_durable
  std::function<void()> on_reclaim;
  std::function<Status()> on_room;  // each time

  std::atomic<int> reclaims = 0;  // so many were asked for
  std::atomic<int> loads = 0;     // so many were begun

  Status get(ByteView key, Value& value) override {
    Status status = inner_.get(key, value);
    if (const auto hook = take(after_get)) hook();
    return status;
  }
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override {
    return inner_.multi_get(keys, values);
  }
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override {
    return inner_.scan(request, visit);
  }
  std::optional<Bytes> evidence(const Value& value) const override {
    return inner_.evidence(value);
  }
  CommitTicket commit_many(std::span<const Commit* const> commits,
                           std::span<Status> outcomes) override {
    if (const auto hook = take(on_commit)) {
      if (const Status status = hook(); !status) {
        for (Status& outcome : outcomes) outcome = status.error();
        return inner_.last_ticket();
      }
    }
    return inner_.commit_many(commits, outcomes);
  }
  std::unique_ptr<Load> begin_load() override {
    loads++;
    return inner_.begin_load();
  }
  Status wait_durable(CommitTicket ticket) override {
    if (const auto hook = take(on_durable)) TRY(hook());
    return inner_.wait_durable(ticket);
  }
  CommitTicket last_ticket() const override { return inner_.last_ticket(); }
  bool shared() const override { return inner_.shared(); }
  Status room() const override { return on_room ? on_room() : inner_.room(); }
  BlockStore& blocks() override { return inner_.blocks(); }
  Status reclaim(const std::vector<KeyInterval>& intervals, std::atomic<bool>* canceled) override {
    reclaims++;
    if (const auto hook = take(on_reclaim)) hook();
    return inner_.reclaim(intervals, canceled);
  }
  Status checkpoint(const std::filesystem::path& folder) override {
    return inner_.checkpoint(folder);
  }

 private:
  template <class Hook>
  Hook take(Hook& hook) {
    const std::lock_guard lock(mutex_);
    return std::exchange(hook, nullptr);
  }

  Engine& inner_;
  std::mutex mutex_;
};

}  // namespace trellis
