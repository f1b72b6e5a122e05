// The collector: does what the due index says, a little at a time.
//
// The due index (04 '/keyspaces/due/') names every keyspace with work to do, and when; one that is
// not in it costs nothing. A step looks at the first entry that is due and does one bounded slice:
//
//   garbage  moves the safe points as far as barriers and gc_life_time_ms let them, then hands the
//            notes ('g') below them to the models that left them
//   retire   an archived keyspace whose retention is over becomes a tombstone
//   purge    removes everything of a tombstone, page by page, and writes down how far it is
//   request  forgets the id of a create request after a day
//
// An entry goes, in a transaction that holds the keyspace alone, when nothing is left that it
// stands for; until then it may move to a later time, never be lost. A crash at any point repeats a
// slice.
//
// Pace: after each slice the thread rests for rest_factor times as long as the slice took.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "codec/system_keys.h"
#include "codec/tenant_keys.h"
#include "tenant/gc.h"
#include "tenant/keyspaces.h"

namespace trellis {

// A model that leaves garbage.
class GarbageOwner {
 public:
  virtual ~GarbageOwner() = default;
  // Collects one target, or a bounded part of it, and takes the note back in the transaction that
  // removes the last of it. True if the note is gone.
  virtual Result<bool> collect(Tenant& tenant, uint64_t due_ms, ByteView target) = 0;
};

struct CollectorOptions {
  uint64_t gc_life_time_ms = 60'000;
  unsigned rest_factor = 4;
  size_t slice_notes = 256;
  // Of a burial. Large, because each slice leaves a range delete, and the first read after one
  // sorts all that are in RocksDB's memtable: many small ones cost the neighbours more (bench
  // keyspaces).
  size_t slice_entries = 20'000;
  size_t slice_bytes = 4 * 1024 * 1024;
};

struct PurgeProgress {
  uint64_t started_ms = 0;
  uint64_t updated_ms = 0;
  uint64_t finished_ms = 0;  // 0: not yet
  uint64_t bytes_total = 0;  // what the counters said at the start
  uint64_t bytes_done = 0;
  uint64_t entries_done = 0;
  Bytes cursor;         // everything before it is removed
  std::string blocker;  // empty, or the barrier that it waits for
};

// Absent: no purge of this keyspace was begun.
Result<std::optional<PurgeProgress>> load_purge(Engine& engine, KeyspaceId keyspace);

class Collector {
 public:
  Collector(Keyspaces& keyspaces, Gc& gc, CollectorOptions options = {});
  ~Collector() { stop(); }
  // REQUIRES: before the first step.
  void own(Model model, GarbageOwner& owner);

  // One slice of the work that is due. How many milliseconds until there may be more: 0 is now;
  // absent: the due index is empty. One thread at a time.
  Result<std::optional<uint64_t>> step();

  // A thread that steps until stop.
  void start();
  void stop();
  void wake();  // the due index changed

  // Since the start of the process.
  struct Totals {
    uint64_t steps = 0;
    uint64_t failed_steps = 0;
    uint64_t notes = 0;  // of garbage that is collected
    uint64_t purged_bytes = 0;
  };
  Totals totals() const;  // any thread

 private:
  struct Entry {
    Bytes key;
    uint64_t due_ms;
    KeyspaceId keyspace;
    DueJob job;
    Bytes detail;
  };
  Result<std::optional<Entry>> next_entry();
  Status run(const Entry& entry);
  Status forget_request(const Entry& entry);
  Status collect_garbage(const Entry& entry);
  Status leave_to_burial(const Entry& entry);
  Result<uint64_t> collectable_before_ms(KeyspaceId keyspace, uint64_t oldest_due_ms);
  Status finish_garbage(const Entry& entry);
  Status purge(const Entry& entry);
  Status purge_page(const Entry& entry, PurgeProgress progress);
  Status hold_purge(const Entry& entry, PurgeProgress progress, const Barrier& barrier);
  Status store_progress(KeyspaceId keyspace, const PurgeProgress& progress,
                        FunctionRef<void(View&)> also);
  void thread();

  Keyspaces& keyspaces_;
  Gc& gc_;
  const MapHandle map_;
  const CollectorOptions options_;
  std::array<GarbageOwner*, 4> owners_{};
  // Where the next look at the index begins, so that a long burial does not hold up the rest.
  Bytes cursor_;
  // Where the next slice of a keyspace's garbage begins, if not at its first note.
  std::unordered_map<KeyspaceId, Bytes> notes_from_;
  std::atomic<uint64_t> steps_{0};
  std::atomic<uint64_t> failed_steps_{0};
  std::atomic<uint64_t> notes_{0};
  std::atomic<uint64_t> purged_bytes_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool woken_ = false;
  std::thread thread_;
};

}  // namespace trellis
