// For tests: a collector of what one model leaves, on a map with keyspaces (tenant_fixture.h).
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/tenant_fixture.h"

namespace trellis::collector_test {

inline constexpr uint64_t second_ms = 1'000;
inline constexpr uint64_t hour_ms = 3'600'000;

// A model whose garbage is one raw key per note.
class KeyRemover final : public GarbageOwner {
 public:
  Result<size_t> collect(Tenant& tenant, std::span<const Garbage> notes) override {
    const std::lock_guard lock(mutex_);
    if (on_collect_) on_collect_();
    spans_.push_back(notes.size());
    if (left_times_ > 0 && notes[0].target == left_) return left_times_--, size_t{0};
    for (const Garbage& note : notes)
      if (note.target == broken_) return Error{Code::corrupt, "a value without sense"};
    Scope scope = Scope::in(tenant.id());
    for (const Garbage& note : notes) scope.exclusive(encode(RawKey{tenant.id(), note.target}));
    TRY(tenant.collect(Model::raw, scope, [&](CountedView& view) -> Status {
      for (const Garbage& note : notes) {
        const Bytes key = encode(RawKey{tenant.id(), note.target});
        Value old;
        TRY(view.get(key, old));
        if (old.found()) view.count_keys(-1);
        view.remove(key, old);
        view.forget_garbage(note.due_ms, note.target);
      }
      return {};
    }));
    for (const Garbage& note : notes) collected_.insert(note.target);
    return notes.size();
  }
  bool is_at_once(const Garbage&) const override { return is_at_once_; }
  std::mutex mutex_;
  std::set<Bytes> collected_;
  bool is_at_once_ = false;
  std::function<void()> on_collect_;
  std::vector<size_t> spans_;    // how many came together
  std::optional<Bytes> broken_;  // this target cannot be collected
  std::optional<Bytes> left_;    // and this one not at once
  int left_times_ = 0;
};

class CollectorTest : public TenantFixture {
 protected:
  void SetUp() override {
    TenantFixture::SetUp();
    restart();
  }

  void restart(KeyspacesOptions options = {}, CollectorOptions collecting = {}) {
    collector_.reset();
    gc_.reset();
    open(options);
    gc_.emplace(map_, keyspaces_->changes());
    collector_.emplace(*keyspaces_, *gc_, collecting);
    collector_->own(Model::raw, owner_);
  }

  // Until nothing is due. Returns how many steps worked.
  int collect() {
    for (int steps = 0;; steps++) {
      const auto next_ms = collector_->step();
      EXPECT_OK(next_ms);
      if (!next_ms || !*next_ms || **next_ms > 0) return steps;
      if (steps > 10'000) ADD_FAILURE() << "never done";
      if (steps > 10'000) return steps;
    }
  }

  Status leave(Tenant& tenant, ByteView target) {
    return leave_at(tenant, clock_.unix_ms(), target);
  }
  Status leave_at(Tenant& tenant, uint64_t due_ms, ByteView target, uint64_t bytes = 100) {
    return tenant.write(writer, Model::raw, Scope::in(tenant.id()), [&](CountedView& view) {
      view.leave_garbage(due_ms, target, bytes);
      return Status();
    });
  }
  void store(ByteView key, ByteView value) {
    Commit one;
    one.writes.put(key, value);
    ASSERT_OK(commit(memory_, one));
  }

  size_t due_entries() { return entries_in("\x04/keyspaces/due/", "\x04/keyspaces/due0"); }

  void archive(const std::string& name) {
    ASSERT_OK(keyspaces_->set_state(name, KeyspaceState::disabled, root));
    ASSERT_OK(keyspaces_->set_state(name, KeyspaceState::archived, root));
  }
  void bury(const std::string& name) {
    archive(name);
    ASSERT_OK(keyspaces_->set_state(name, KeyspaceState::tombstone, root));
  }

  KeyRemover owner_;
  std::optional<Gc> gc_;
  std::optional<Collector> collector_;
};

}  // namespace trellis::collector_test
