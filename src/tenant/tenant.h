// One keyspace at work in this process: its state, quota, rate and figures, in the path of the
// data.
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
// transaction may add is reserved here before it commits, and what it frees is free when it is
// done: a quota is never passed. (On a shared engine others write too: there the sums are up to a
// second old, and so are quotas.)
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

class Tenant;

// A note's stored value: | 01 | bytes u64be |
constexpr size_t garbage_value_bytes = 9;
Bytes encode_garbage_value(uint64_t bytes);
std::optional<uint64_t> decode_garbage_value(ByteView value);

// The due index has one entry per keyspace and minute with notes: the start of that minute.
constexpr uint64_t due_bucket_ms = 60'000;
constexpr uint64_t due_bucket(uint64_t due_ms) { return due_ms - due_ms % due_bucket_ms; }
inline constexpr ByteView due_entry_value = "\x01";
// One per second with notes that are collected at once: the end of that second, which is the last
// that it stands for. Of those that are due in more than some hours one stands for a longer time:
// it is due when that begins, and its end is the detail (u64be). So there are only so many,
// whatever times clients name and take back.
constexpr uint64_t expire_bucket_ms = 1'000;
constexpr uint64_t expire_bucket(uint64_t due_ms) {
  const uint64_t over_ms = due_ms % expire_bucket_ms;
  return over_ms == 0 || due_ms > UINT64_MAX - expire_bucket_ms
             ? due_ms
             : due_ms - over_ms + expire_bucket_ms;
}
struct ExpireSpan {
  uint64_t due_ms;  // of the entry
  uint64_t end_ms;  // the first that it does not stand for
  bool is_far;
  bool operator==(const ExpireSpan&) const = default;
};
// That of a note which is left now.
ExpireSpan expire_span(uint64_t note_due_ms, uint64_t now_ms);
Bytes encode_expire_span(KeyspaceId keyspace, const ExpireSpan& span);

// A view that keeps count. `old` is always what is stored under the key, as this transaction read
// it: a count that had to read again would cost a read for each write.
class CountedView {
 public:
  // Without a tenant nothing can be committed ahead.
  CountedView(View& view, KeyspaceId keyspace, Model model, Tenant* tenant = nullptr)
      : view_(view), keyspace_(keyspace), model_(model), tenant_(tenant) {}

  Status get(ByteView key, Value& value) { return view_.get(key, value); }
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) {
    return view_.multi_get(keys, values);
  }
  Status prefetch(std::span<const ByteView> keys) { return view_.prefetch(keys); }
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) {
    return view_.scan(request, visit);
  }
  Result<Engine*> stored(ByteView begin, ByteView end) { return view_.stored(begin, end); }

  void begins(ByteView collection) { view_.begins(collection); }
  void once_committed(std::function<void()> function) { view_.once_committed(std::move(function)); }
  void put(ByteView key, ByteView value, const Value& old);
  // New entries, with keys in ascending order.
  void put_new(WriteSet puts);
  // What is written down so that much more can go. It counts as a note does, and is not held up by
  // the quota of bytes if nothing else is added.
  void put_note(ByteView key, ByteView value, const Value& old);
  void remove(ByteView key, const Value& old);
  // Of one that a scan found, with so many bytes of value.
  void remove_found(ByteView key, size_t value_bytes);
  // Of all in [begin, end), which have so many bytes, keys and values, and which nobody reads any
  // more.
  void remove_unread(ByteView begin, ByteView end, uint64_t bytes);
  // Models that number what their keys are in (databases) count them apart, by slot.
  void count_keys(int64_t difference, uint16_t slot = 0);
  // Bytes that are stored beside the map (blocks of files) for a record that this transaction
  // writes: counted() finds them in it.
  void count_outside(int64_t bytes) { difference_.bytes += bytes; }
  // A slot that is not used any more. REQUIRES: it counts none.
  void forget_slot(uint16_t slot);

  // A note for the collector: `target` may be collected once the GC safe point has passed due_ms,
  // or at once, as soon as it is due, which frees about `bytes`. The model's GarbageOwner
  // (collector.h) knows what a target is. REQUIRES: the note is not there.
  enum class When : uint8_t { behind_safe_point, at_once };
  void leave_garbage(uint64_t due_ms, ByteView target, uint64_t bytes,
                     When when = When::behind_safe_point);
  // Takes a note back. REQUIRES: it is there.
  void forget_garbage(uint64_t due_ms, ByteView target);

  // View::commit_ahead, with what these writes made of the bytes, which the quota must have room
  // for. What becomes of them if the transaction fails is up to the caller: a note for the
  // collector, committed with them.
  Status commit_ahead(std::vector<ByteView> prefixes, int64_t bytes);

  bool has_committed_ahead() const { return committed_ahead_; }

  const Figures& difference() const { return difference_; }
  // Whether less is stored than before, but for notes, which lead to more that goes; or nothing was
  // written.
  bool makes_room() const { return !wrote_ || difference_.bytes < note_bytes_ || frees_by_note(); }
  // Whether put_note is all that it adds to.
  bool frees_by_note() const { return put_note_ && difference_.bytes <= note_bytes_; }
  struct SlotKeys {
    uint16_t slot;
    int64_t difference;
  };
  std::span<const SlotKeys> slot_keys() const { return slot_keys_; }
  // The first due time of notes that it left to be collected at once.
  uint64_t first_at_once_ms() const { return first_at_once_ms_; }

 private:
  View& view_;
  const KeyspaceId keyspace_;
  const Model model_;
  Tenant* const tenant_;
  Figures difference_;
  int64_t note_bytes_ = 0;  // of notes that were left
  bool wrote_ = false;
  bool put_note_ = false;
  bool committed_ahead_ = false;
  uint64_t last_due_ms_ = UINT64_MAX;    // of the entry that was left
  std::optional<ExpireSpan> last_span_;  // the same for what goes at once
  uint64_t now_ms_ = 0;                  // when it was first asked for
  uint64_t first_at_once_ms_ = UINT64_MAX;
  std::vector<SlotKeys> slot_keys_;
};

// What all counters of a keyspace hold, summed.
Result<Figures> stored_figures(Engine& engine, KeyspaceId keyspace);
// What one stored entry counts for; absent: nothing, it is a counter.
struct Counted {
  Model model;
  Figures figures;
};
std::optional<Counted> counted(ByteView key, ByteView value);
// The same as the counters, by looking at every entry. For checking.
Result<Figures> recount(Engine& engine, KeyspaceId keyspace);

// Any thread.
class Tenant {
 public:
  // Reads nothing before it is used.
  Tenant(MapHandle map, KeyspaceId id) : map_(map), id_(id) {}

  KeyspaceId id() const { return id_; }
  const MapHandle& map() const { return map_; }
  // As of now; on a shared engine as of a moment ago.
  Result<Keyspace> keyspace();
  Result<Figures> figures();

  // Role, state and rate. Call it before each operation that only reads, with how many operations
  // it is; 0: one that was counted before.
  Status admit(const Caller& caller, Access access, uint32_t operations = 1);

  // A transaction that only reads, of one instant: admits and runs. The function may run several
  // times, and must not write.
  Status read(const Caller& caller, Model model, const Scope& scope,
              FunctionRef<Status(CountedView&)> fn, uint32_t operations = 1);
  // A transaction that writes: admits, runs, counts and keeps the quota. `scope` is of this
  // keyspace. The function may run several times. Reason of a quota's error: quota_exceeded; of the
  // rate's: rate_exceeded. While the disk is nearly full only what makes room is written, else
  // Code::no_space.
  Status write(const Caller& caller, Model model, const Scope& scope,
               FunctionRef<Status(CountedView&)> fn, uint32_t operations = 1);
  // The same for the collector: no role, rate or quota, in every state.
  Status collect(Model model, const Scope& scope, FunctionRef<Status(CountedView&)> fn);

  // Somebody else changed what is stored: the figures are read before they are used again.
  void doubt_figures();

  // Operations per second lately, and since this process first used the keyspace.
  struct Load {
    double reads_per_second = 0;
    double writes_per_second = 0;
    uint64_t reads = 0;
    uint64_t writes = 0;
  };
  Load load() const;
  // Whether it was used since the last call: those that were not may be forgotten.
  bool take_used() { return used_.exchange(false, std::memory_order_relaxed); }

  // --- for the collector ---
  // The first due time of notes to be collected at once that this process left since the last
  // forget_at_once(); before that, of all times.
  uint64_t first_at_once_ms() const { return first_at_once_ms_.load(std::memory_order_relaxed); }
  // REQUIRES: a transaction that holds the keyspace alone, so that none is about to leave one.
  void forget_at_once() { first_at_once_ms_.store(UINT64_MAX, std::memory_order_relaxed); }
  // What collect() freed since this process first used the keyspace.
  uint64_t collected_bytes() const { return collected_bytes_.load(std::memory_order_relaxed); }

  // --- for Keyspaces ---
  // Something about it changes, in a transaction that may yet fail: for inside of it, where latches
  // order transactions. Refuses from now on what either state would; the next operation reads what
  // is stored, and waits for the transaction to do so.
  void doubt(KeyspaceState next);
  // False as long as that is not known for sure.
  bool is_named(std::string_view name) const;

 private:
  friend class CountedView;
  Status refresh_if_needed();
  Status refresh();
  void take_over(const Keyspace& keyspace);  // REQUIRES: mutex_ is held
  Status check_stored_state(View& view, const Caller& caller);
  Status transact(Model model, const Scope& scope, FunctionRef<Status(View&)> check,
                  FunctionRef<Status(CountedView&)> fn, bool keep_quota);
  Status load_figures();
  // Of a transaction that goes on.
  Status commit_ahead(Model model, View& view, std::vector<ByteView> prefixes, int64_t bytes);
  // What a transaction will add, if the quota allows it.
  enum class Kept : uint8_t { nothing, keys, all };
  Status reserve(const Figures& added, Kept kept, uint64_t& epoch);
  // What it did not add after all, or what it removed.
  void give_back(const Figures& freed, uint64_t epoch);
  void note_at_once(uint64_t due_ms);

  const MapHandle map_;
  const KeyspaceId id_;
  std::atomic<KeyspaceState> state_{KeyspaceState::tombstone};
  std::atomic<bool> doubtful_{true};  // what is known of the keyspace must be read first
  std::atomic<bool> used_{true};
  std::atomic<uint64_t> first_at_once_ms_{0};
  std::atomic<uint64_t> collected_bytes_{0};
  RateLimit rate_;
  LoadMeter reads_;
  LoadMeter writes_;

  mutable std::mutex mutex_;
  Keyspace keyspace_;

  std::mutex figures_mutex_;
  Figures figures_;
  // Goes up with each load: what was reserved before one must not be given back after it.
  uint64_t figures_epoch_ = 0;
  uint64_t figures_loaded_us_ = 0;
  bool figures_doubtful_ = true;  // not loaded yet, or a commit's outcome is unknown
};

}  // namespace trellis
