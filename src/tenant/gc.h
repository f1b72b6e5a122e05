// When garbage of a keyspace may go: safe points and the holds on them (reference: PD).
//
//   g  GC safe point: garbage that became due before it may be collected
//   t  txn safe point: no transaction reads before it
//   b  service safe points, called barriers: a service holds t at or below b until its ttl ends
//
// Always g <= t <= every live b, and neither g nor t ever goes back. An advance of t goes as far as
// the barriers let it: t' = max(t, min(target, barriers)).
//
// Points are PD's timestamps: unix milliseconds * 2^18 + a logical part. State lies under PD's
// paths, in PD's forms:
//
//   '/keyspaces/gc_safe_point/{id}'                     -> {"keyspace_id":1,"safe_point":7}
//   '/keyspaces/tidb/{id}/tidb/store/gcworker/saved_safe_point' -> 7 in decimal
//   '/keyspaces/service_safe_point/{id}/{service}'      -> {"service_id":"backup-7","expired_at":s,
//                                             "safe_point":7,"keyspace_id":1,"set_at":s}
//
// Each keyspace has its own, and only its own lock: what the collector does for one waits for no
// other. What callers do is in the log of changes, which is one for all; renewing a hold is not.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "map/map_handle.h"
#include "tenant/change_log.h"
#include "tenant/keyspace.h"

namespace trellis {

// Of times that none can have, from the year 4199 on, it is the last one.
constexpr uint64_t timestamp_at_ms(uint64_t unix_ms) {
  return unix_ms >= uint64_t{1} << 46 ? UINT64_MAX : unix_ms << 18;
}
constexpr uint64_t ms_of_timestamp(uint64_t timestamp) { return timestamp >> 18; }

struct Barrier {
  std::string service;
  uint64_t safe_point = 0;
  uint64_t expires_at_s = 0;  // never_expires: until it is deleted
  uint64_t set_at_s = 0;
};
constexpr uint64_t never_expires = INT64_MAX;

struct GcState {
  uint64_t gc_safe_point = 0;
  uint64_t txn_safe_point = 0;
  std::vector<Barrier> barriers;  // live ones, lowest first
};

struct Advance {
  uint64_t before = 0;
  uint64_t after = 0;
  std::string blocker;  // empty, or what kept it below its target
};

// Why garbage of a keyspace is still there.
struct GcExplanation {
  GcState state;
  std::optional<Barrier> held_by;  // the lowest live barrier that holds garbage back
  bool is_burial = false;          // all of a tombstone waits, or is being removed
  uint64_t waiting_bytes = 0;      // of garbage that is due
  uint64_t waiting_notes = 0;
  uint64_t broken_notes = 0;  // which make no sense: the collector passes over them
  bool more = false;          // there is more than was counted: it stops after so many notes
  std::optional<uint64_t> oldest_due_ms;
  // Further ahead of the clock than any advance may go: some clock was wrong, then or now.
  bool ahead_of_clock = false;
  std::string text;  // "held at 2026-11-15T04:00:00Z by backup-7, 3 h old, 2.1 GiB waiting"
};

// Reasons: safe_point_back, safe_point_ahead_of_txn and barrier_behind (Code::refused: the state
// does not allow it), safe_point_in_future, reserved_service, illegal_service and illegal_ttl
// (Code::invalid), too_many_barriers (Code::too_large), barrier_not_found and keyspace_not_found
// (Code::not_found). A tombstone counts as not found by what advances and sets. Its holds can still
// be read and deleted: they hold its burial.
//
// Any thread.
class Gc {
 public:
  Gc(MapHandle map, ChangeLog& changes) : map_(map), changes_(changes) {}

  // t <= every barrier in it, whatever happens at the same time.
  Result<GcState> load(KeyspaceId keyspace);
  // A target further in the future than a minute is refused: it is a mistake, and there is no way
  // back.
  Result<Advance> advance_txn_safe_point(KeyspaceId keyspace, uint64_t target,
                                         const Caller& caller);
  Result<Advance> advance_gc_safe_point(KeyspaceId keyspace, uint64_t target, const Caller& caller);
  // Both, as far as the barriers let them; what the collector does. No error if it is behind. It is
  // not logged: there is no end to it.
  Result<GcState> advance_both(KeyspaceId keyspace, uint64_t target);
  // New or again: up or down, never below t. `ttl_s` > 0; never_expires holds until deleted. It
  // holds for ttl_s at least, and up to a second longer.
  Result<Barrier> set_barrier(KeyspaceId keyspace, std::string_view service, uint64_t safe_point,
                              uint64_t ttl_s, const Caller& caller);
  Result<Barrier> delete_barrier(KeyspaceId keyspace, std::string_view service,
                                 const Caller& caller);
  // `is_passed_over`: of the keys of notes that can be read, which the collector left all the same.
  Result<GcExplanation> explain(
      KeyspaceId keyspace,
      FunctionRef<bool(ByteView)> is_passed_over = [](ByteView) { return false; });

  // Called, from any thread, after a hold was loosened under which garbage or a burial waits: the
  // due index has an entry for it by then. `wake` must not block nor call the Gc; nullptr ends it.
  void on_due(std::function<void()> wake);

 private:
  struct Effects;
  Status transact_and_tell(const Scope& scope, const Effects& effects,
                           FunctionRef<Status(View&)> update);

  MapHandle map_;
  ChangeLog& changes_;
  std::mutex wake_mutex_;
  std::function<void()> wake_;
};

// Where the GC state of a keyspace lies: [begin, end) each. For its burial.
void append_gc_intervals(KeyspaceId keyspace, std::vector<std::pair<Bytes, Bytes>>& intervals);

}  // namespace trellis
