// One keyspace at work in this process: its state, quota, rate and figures, in the path of the data.
//
//   TRY(tenant.admit(caller, Access::read));                       // then read the engine
//   TRY(tenant.write(caller, Model::raw, scope, [&](CountedView& view) -> Status { ... }));
//
// There is one Tenant per keyspace and process (Keyspaces::tenant), shared by all connections that
// are bound to it: what an admin changes holds for the next operation of each of them.
//
// The figures. Bytes are all stored entries of the keyspace, key and value, garbage included, its
// own counters not; keys are what the model calls so. Each write adds its difference to the
// counters ('k') in its own commit, so that they equal a recount at every instant. What a running
// transaction may add is reserved here before it commits: a quota is never passed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "codec/tenant_keys.h"
#include "map/map_handle.h"
#include "tenant/keyspace.h"
#include "tenant/rate.h"

namespace trellis {

struct Figures {
  int64_t bytes = 0;
  int64_t keys = 0;
  bool operator==(const Figures&) const = default;
};

// A view that keeps count. `old` is always what is stored under the key, as this transaction read
// it: a count that had to read again would cost a read for each write.
class CountedView {
 public:
  CountedView(View& view, KeyspaceId keyspace, Model model)
      : view_(view), keyspace_(keyspace), model_(model) {}

  Status get(ByteView key, Value& value) { return view_.get(key, value); }
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) {
    return view_.multi_get(keys, values);
  }
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) {
    return view_.scan(request, visit);
  }

  void put(ByteView key, ByteView value, const Value& old);
  void remove(ByteView key, const Value& old);
  void count_keys(int64_t difference) { difference_.keys += difference; }

  // A note for the collector: `target` may be collected once the GC safe point has passed due_ms,
  // which frees about `bytes`. The model's GarbageOwner (collector.h) knows what a target is.
  void leave_garbage(uint64_t due_ms, ByteView target, uint64_t bytes);
  // Takes a note back. REQUIRES: it is there, left with the same arguments.
  void forget_garbage(uint64_t due_ms, ByteView target);

  const Figures& difference() const { return difference_; }

 private:
  View& view_;
  const KeyspaceId keyspace_;
  const Model model_;
  Figures difference_;
};

// Garbage's stored value: | 01 | bytes u64be |
constexpr size_t garbage_value_bytes = 9;
Bytes encode_garbage_value(uint64_t bytes);
std::optional<uint64_t> decode_garbage_value(ByteView value);

// The due index has one entry per keyspace and minute: its due time is rounded down to it.
constexpr uint64_t due_bucket_ms = 60'000;

// What all slots of all models of a keyspace hold, read from the map.
Result<Figures> stored_figures(Engine& engine, KeyspaceId keyspace);
// The same by looking at every entry, and the keys that `is_key` says are ones. For checking.
Result<Figures> recount(Engine& engine, KeyspaceId keyspace);

// Any thread.
class Tenant {
 public:
  Tenant(MapHandle map, const Keyspace& keyspace, Figures figures);

  KeyspaceId id() const { return id_; }
  std::string name() const;
  KeyspaceState state() const { return state_.load(); }
  Quota quota() const;
  Figures figures();  // as of now; on a shared engine as of a moment ago
  const MapHandle& map() const { return map_; }

  // Role, state and rate. Call it before each operation that only reads, with how many operations
  // it is.
  Status admit(const Caller& caller, Access access, uint32_t operations = 1);

  // A transaction that writes: admits, runs, counts and keeps the quota. `scope` is of this
  // keyspace. The function may run several times.
  Status write(const Caller& caller, Model model, const Scope& scope,
               FunctionRef<Status(CountedView&)> fn, uint32_t operations = 1);
  // The same for the collector: no role, rate or quota, in every state.
  Status collect(Model model, const Scope& scope, FunctionRef<Status(CountedView&)> fn);

  // Operations per second lately, and since the process first used the keyspace.
  struct Load {
    double reads_per_second = 0;
    double writes_per_second = 0;
    uint64_t reads = 0;
    uint64_t writes = 0;
  };
  Load load() const;

  // --- for Keyspaces ---
  // Takes over what an admin changed. Called while nobody writes (the keyspace is held exclusively)
  // if the state changes.
  void apply(const Keyspace& keyspace);
  // For the time of a state change that may yet fail: refuses what either state would.
  void restrict_to(KeyspaceState state);

 private:
  Status transact(Model model, const Scope& scope, FunctionRef<Status(CountedView&)> fn,
                  bool keep_quota);
  Status refresh();  // on a shared engine: others may have changed the keyspace
  Status reload_figures();
  Status reserve(const Figures& difference, bool keep_quota);

  const MapHandle map_;
  const KeyspaceId id_;
  std::atomic<KeyspaceState> state_;
  std::atomic<uint64_t> quota_bytes_;
  std::atomic<uint64_t> quota_keys_;
  RateLimit rate_;
  LoadMeter reads_;
  LoadMeter writes_;

  std::atomic<int64_t> bytes_;
  std::atomic<int64_t> keys_;
  // Goes up with each reload: what was reserved before one must not be given back after it.
  std::atomic<uint64_t> epoch_{0};
  std::atomic<bool> stale_{false};  // a commit's outcome is unknown

  mutable std::mutex name_mutex_;
  std::string name_;
};

}  // namespace trellis
