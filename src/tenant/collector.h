// The collector: does what the due index says, a little at a time.
//
// The due index (04 '/keyspaces/due/') names every keyspace with work to do, and when; one that is
// not in it costs nothing. A step looks at the first entry that is due and does one bounded slice:
//
//   garbage  moves the safe points as far as barriers and gc_life_time_ms let them, then hands the
//            notes ('g') below them to the models that left them
//   expire   hands over the notes of a second that no reader of the past needs, when it is over
//   retire   an archived keyspace whose retention is over becomes a tombstone
//   purge    removes everything of a tombstone, blocks of files first, then the map's entries page
//            by page, and writes down how far it is
//   request  forgets the id of a create request after a day
//
// An entry goes, in a transaction that holds the keyspace alone, when nothing is left that it
// stands for; until then it may move to a later time, never be lost. A crash at any point repeats a
// slice.
//
// What makes no sense (a key or value that cannot be decoded, a note that no model can collect) is
// passed over, counted and told once: it must not hold up the rest.
//
// Several threads take a slice: its notes, or parts of what is large (a burial, a note of which its
// owner says so), cut where the ranges are.
//
// Pace: after each slice the thread rests for rest_factor times as long as the slice took, up to
// rest_ms_max. It rests less after slices of a keyspace whose garbage comes faster than it goes, or
// with large notes that take several, and longer where a limit of bytes per second says so. Paused
// it does nothing at all.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codec/system_keys.h"
#include "codec/tenant_keys.h"
#include "tenant/gc.h"
#include "tenant/keyspaces.h"

namespace trellis {

// A note, which CountedView::leave_garbage left.
struct Garbage {
  uint64_t due_ms = 0;
  Bytes target;
  Model model = Model::raw;
  uint64_t bytes = 0;  // about so many are freed
};

// Keys inside of (begin, end), in order, at which to cut the interval for several to work on. It
// lies in one mode of one keyspace.
using KeyBorders = std::function<std::vector<Bytes>(ByteView begin, ByteView end)>;

// An interval of keys that one works on at a time.
struct KeyPart {
  Bytes from;  // nothing is left before it
  Bytes end;
};
// Appends it, cut at the borders. No borders: in one piece.
void append_parts(std::vector<KeyPart>& parts, const KeyBorders& borders, Bytes begin, Bytes end);

// A model that leaves garbage. Any thread, for several notes at once.
class GarbageOwner {
 public:
  virtual ~GarbageOwner() = default;
  // Collects these targets, or a bounded part of them, and takes each note back in the transaction
  // that removes the last of its target. How many of the notes are gone. One transaction should do:
  // they are few, and about as many bytes as one should read. Code::corrupt: one of them cannot be
  // collected, and none of them was.
  // REQUIRES: all are different, and of this model.
  virtual Result<size_t> collect(Tenant& tenant, std::span<const Garbage> notes) = 0;
  // Whether the note was left with When::at_once. Those of one time come before the model's others.
  virtual bool is_at_once(const Garbage&) const { return false; }
  // Whether these are to be collected now.
  virtual bool expires() const { return true; }
  // Whether several threads may collect this note at the same time, each a part.
  virtual bool is_shared(const Garbage&) const { return false; }
  // Intervals of which so much was removed that the disk should have it back now; each once.
  // No two overlap.
  virtual Result<std::vector<KeyInterval>> take_removed(Engine&) {
    return std::vector<KeyInterval>();
  }
};

struct CollectorPace {
  bool paused = false;
  uint64_t bytes_per_s = 0;  // 0: no limit
  unsigned threads = 2;      // of one slice
};
inline constexpr unsigned collector_threads_max = 16;
struct CollectorPacePatch {
  std::optional<bool> paused;
  std::optional<uint64_t> bytes_per_s;
  std::optional<unsigned> threads;
};

// Of a keyspace whose garbage is being collected. What is left is in Gc::explain.
struct GarbageProgress {
  uint64_t since_ms = 0;
  uint64_t notes = 0;
  uint64_t bytes = 0;
};

struct CollectorOptions {
  uint64_t gc_life_time_ms = 60'000;
  unsigned rest_factor = 4;
  uint64_t rest_ms_max = 250;
  size_t slice_notes = 256;
  // In one transaction, of which one alone costs as much as many notes do.
  size_t span_notes = 32;
  size_t span_bytes = 1024 * 1024;  // of what they name; more if it is one note's
  // Behind it, if a note larger than a span takes more than this slice, no other such note begins:
  // several would make a slice so long that its neighbours notice, and rest_ms_max is no rest.
  uint64_t large_us_max = 20'000;
  // Of a burial. Large, because each slice leaves a range delete, and the first read after one
  // sorts all that are in RocksDB's memtable: many small ones cost the neighbours more (bench
  // keyspaces).
  size_t slice_entries = 20'000;
  size_t slice_bytes = 4 * 1024 * 1024;  // for each thread
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
  // Where burials are cut; without it nowhere. REQUIRES: before the first step.
  void cut_at(KeyBorders borders) { borders_ = std::move(borders); }

  // As it was set last, which is stored: before start().
  Status load_pace();
  CollectorPace pace() const;  // any thread
  // Code::invalid: more or fewer threads than there can be.
  Result<CollectorPace> set_pace(const CollectorPacePatch& patch, const Caller& caller);
  // Why garbage is still there; what the collector passes over does not wait. Any thread.
  Result<GcExplanation> explain(KeyspaceId keyspace);
  // Absent: nothing of it is being collected. Any thread.
  std::optional<GarbageProgress> progress(KeyspaceId keyspace) const;

  // The key of the entry of the due index that a note needs.
  Bytes due_entry_of(KeyspaceId keyspace, const Garbage& note) const;

  // One slice of the work that is due. How many milliseconds until there may be more: 0 is now;
  // absent: the due index is empty. One thread at a time.
  Result<std::optional<uint64_t>> step();
  // How long the neighbours get after the last step. Of the thread that steps.
  uint64_t rest_us() const { return rest_us_; }

  // A thread that steps until stop.
  void start();
  void stop();
  void wake();  // the due index changed

  // Since the start of the process.
  struct Totals {
    uint64_t steps = 0;
    uint64_t failed_steps = 0;
    uint64_t notes = 0;  // of garbage that is collected
    uint64_t passed_over =
        0;  // notes and due entries without sense; no more than 1,000 are counted
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
  struct Slice;
  // A keyspace with garbage that takes more than a slice.
  struct UnderWay {
    Bytes from = {};      // where the next slice begins
    uint64_t lag_ms = 0;  // how long the last note of this one was due
    uint64_t rest_percent = 0;
  };
  Result<std::optional<Entry>> next_entry();
  Result<std::optional<Entry>> first_entry(ByteView begin, ByteView end);
  Status run(const Entry& entry);
  Status forget_request(const Entry& entry);
  Status collect_garbage(const Entry& entry);
  Result<std::shared_ptr<Tenant>> tenant_of(const Entry& entry);
  Status expire(const Entry& entry);
  Status cut_far_entry(const Entry& entry);
  template <class Map>
  Status read_at_once(Map& map, const Entry& entry, Bytes begin, uint64_t until_ms,
                      size_t notes_max, std::vector<Garbage>& notes);
  bool expires() const;
  uint64_t life_time_ago_ms() const;
  Result<Slice> read_slice(ByteView begin, ByteView end);
  std::vector<std::span<const Garbage>> spans_of(std::span<const Garbage> notes,
                                                 size_t threads) const;
  Result<bool> collect_slice(Tenant& tenant, std::span<const Garbage> notes);
  Status reclaim_removed();
  Result<bool> collect_span(Tenant& tenant, std::span<const Garbage> notes);
  template <class Map>
  Result<std::optional<uint64_t>> first_due_ms(Map& map, ByteView begin, ByteView end);
  void note_progress(KeyspaceId keyspace, uint64_t notes, uint64_t bytes);
  void forget_progress(KeyspaceId keyspace);
  void go_on_from(KeyspaceId keyspace, const Slice& slice, ByteView from);
  void pass_over(ByteView key, std::string_view why);
  Status leave_to_burial(const Entry& entry);
  Result<uint64_t> collectable_before_ms(KeyspaceId keyspace, uint64_t oldest_due_ms);
  Status finish_garbage(const Entry& entry);
  Status purge(const Entry& entry);
  std::vector<KeyPart>& parts_of_burial(KeyspaceId keyspace, ByteView cursor);
  struct PurgedPage;
  PurgedPage read_purged(const KeyPart& part, size_t bytes_max);
  Result<bool> has_blocks(KeyspaceId keyspace);
  Status purge_blocks(const Entry& entry, const PurgeProgress& progress);
  Status purge_pages(const Entry& entry, PurgeProgress progress);
  Status finish_purge(const Entry& entry, PurgeProgress progress);
  Status hold_purge(const Entry& entry, PurgeProgress progress, const Barrier& barrier);
  Status store_progress(KeyspaceId keyspace, const PurgeProgress& progress,
                        FunctionRef<void(View&)> also);
  void thread();

  Keyspaces& keyspaces_;
  Gc& gc_;
  const MapHandle map_;
  const CollectorOptions options_;
  std::array<GarbageOwner*, 4> owners_{};
  KeyBorders borders_;
  // Where the next look at the index begins, so that a long burial does not hold up the rest.
  Bytes cursor_;
  bool round_worked_ = false;  // a step did since the index was last looked at from its start
  bool all_failed_ = false;    // none did in the round before
  uint64_t rest_us_ = 0;
  uint64_t rest_percent_ = 0;  // of what the step takes
  uint64_t step_bytes_ = 0;    // freed by the step
  std::unordered_map<KeyspaceId, UnderWay> under_way_;
  // Where the next slice of expire begins, of those entries (by due time) that are under way.
  std::map<std::pair<KeyspaceId, uint64_t>, Bytes> expired_to_;
  // What is left of burials, in order: the counters come last.
  std::unordered_map<KeyspaceId, std::vector<KeyPart>> burials_;
  std::mutex passed_over_mutex_;
  std::unordered_set<size_t> passed_over_;  // hashes of keys
  std::atomic<uint64_t> steps_{0};
  std::atomic<uint64_t> failed_steps_{0};
  std::atomic<uint64_t> notes_{0};
  std::atomic<uint64_t> passed_over_count_{0};
  std::atomic<uint64_t> purged_bytes_{0};

  std::mutex pace_mutex_;  // held while it is changed
  mutable std::mutex progress_mutex_;
  std::unordered_map<KeyspaceId, GarbageProgress> progress_;

  mutable std::mutex mutex_;
  CollectorPace pace_;
  bool pace_changed_ = false;
  std::condition_variable changed_;
  std::atomic<bool> stopping_{false};  // changes under mutex_; ends a reclaim that is under way
  bool woken_ = false;
  std::thread thread_;
};

}  // namespace trellis
