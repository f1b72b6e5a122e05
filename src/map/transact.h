// transact: the one way in which models change the map, the same on every engine.
//
//   const auto update = [&](View& view) -> Status {
//     Value value;
//     TRY(view.get(key, value));
//     view.put(key, next(value));
//     return {};
//   };
//   Status status = transactor.transact(Scope::in(keyspace).exclusive(key), update);
//
// The function sees the map with its own writes on top, and may run several times: it must have no
// effect but through the View. If it returns an error nothing is written and the error comes back.
// Transactions are strictly serializable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/random.h"
#include "engine/engine.h"
#include "map/scope.h"

namespace trellis {

class LatchTable;
class RecordCache;
class ScanLeaves;
class TrafficObserver;

// How transactions are kept apart. Both give the same results; tests run both.
enum class Way : uint8_t {
  latched,    // one process: the scope's granules are locked, nothing is validated
  expecting,  // shared engine: nothing is locked, everything read is validated by the commit
};

class View {
 public:
  // Reads see this transaction's writes. In the expecting way two reads may see two instants: the
  // commit then fails and the function runs again.
  Status get(ByteView key, Value& value);
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values);
  // They are going to be read, one by one: where there is a cache they are read into it, together.
  Status prefetch(std::span<const ByteView> keys);
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit);

  // What has all that scans of [begin, end) may see, for several threads at once, until this
  // transaction writes there or ends. Null: only this view has it.
  Result<Engine*> stored(ByteView begin, ByteView end);

  void put(ByteView key, ByteView value);
  // Each of them. REQUIRES: nothing but puts, in ascending order, of keys with one of the prefixes
  // that are committed ahead or none.
  void put_all(WriteSet puts);
  void remove(ByteView key);
  void remove_range(ByteView begin, ByteView end);
  // Of what nobody reads any more, whatever happens: caches, which would have to look at all that
  // they hold, may keep it until it is its turn to go.
  void remove_unread(ByteView begin, ByteView end);
  // To a counter ('k') that this transaction does not read.
  void add(ByteView key, int64_t delta);

  // Nothing was stored in this Redis collection (codec/redis_collection.h) before: it may be kept
  // in memory as it is written. Only a hint, and only of what is true.
  void begins(ByteView collection);

  // Calls it when all that was written is committed, while the latches are still held: so it knows
  // what is stored. Not where only expectations order transactions.
  void once_committed(std::function<void()> function) {
    once_committed_.push_back(std::move(function));
  }

  // Commits what was written to keys with these prefixes now, ahead of the transaction: for what
  // nobody else reads or writes before the transaction says where it is; so what it reads of it is
  // not validated. REQUIRES: no scan is under way, none of the keys was in a range that was
  // removed, and no prefix begins with another, of any call. What is much, and in order, may be
  // stored later, but as if it were now (Load, engine.h); not at all if the transaction fails. Then
  // there is what some call and those before it committed.
  Status commit_ahead(std::span<const ByteView> prefixes);

  View(const View&) = delete;
  View& operator=(const View&) = delete;

 private:
  friend class Transactor;
  class Merge;
  struct Buffered {
    std::optional<ByteView> value;  // absent: removed
    size_t room = 0;                // of the memory that the value has
  };
  using Points = std::pmr::map<ByteView, Buffered>;
  using Ranges = std::map<Bytes, Bytes, std::less<>>;  // disjoint; an empty end: to the end

  // What is kept in memory between transactions, where latches order them.
  struct Caches {
    RecordCache& records;
    ScanLeaves& leaves;
  };
  View(Engine& engine, const Caches* caches, const Scope& scope, Way way, bool check_scope,
       Durability durability)
      : engine_(engine),
        caches_(caches),
        scope_(scope),
        way_(way),
        check_scope_(check_scope),
        durability_(durability) {}

  bool overlays(ByteView begin, ByteView end) const;
  bool range_removed(ByteView key) const;
  // True if the transaction's own writes decide the key; then `value` holds what they say.
  bool read_own(ByteView key, Value& value) const;
  Status check_read(ByteView key) const;
  Status check_scan(ByteView begin, ByteView end) const;
  Result<ScanPage> scan_stored(const ScanRequest& request, ScanVisitor visit);
  Status read_stored(ByteView key, Value& value);
  Status read_stored(std::span<const ByteView> keys, std::span<Value> values);
  Status expect(Expectation expectation);
  Status expect_value(ByteView key, const Value& value);
  Status expect_page(const ScanRequest& request, ScanPage& page);
  bool has_room(size_t bytes);
  ByteView keep(ByteView bytes);
  void set_value(Buffered& buffered, ByteView value);
  Status violation(const char* what, ByteView key) const;
  void note_violation(const char* what, ByteView key);
  void forget_add(ByteView key);
  void begin_write(const char* what, ByteView key);
  void build_commit(Commit& commit);
  bool is_ahead(ByteView key) const;
  // What is to be committed ahead goes there, what has this prefix to the run; what stays moves, so
  // that no memory is left behind.
  void split_off(const std::optional<Bytes>& run_prefix, WriteSet& run, WriteSet& ahead);
  // Of writes that can be loaded: puts, in order behind all that was committed ahead, and most of
  // what there is.
  std::optional<Bytes> find_run(std::span<const ByteView> prefixes) const;
  Status commit_now(const Commit& commit);
  Status load_run(const Bytes& prefix, WriteSet run, const WriteSet& rest);
  // Whether it can be kept as it is for the load that is under way: nothing is written behind it.
  bool continues_load(ByteView key) const;
  void put_next(ByteView key, ByteView value);
  void put_next(WriteSet puts);
  // What was kept so becomes buffered as all else: before something else is done there.
  void buffer_next();
  void buffer_next(ByteView key);
  // Before what was committed ahead is read, or written otherwise.
  Status finish_load();
  Status finish_load_of(std::span<const ByteView> keys);
  bool is_loading(ByteView key) const;
  bool is_loading(ByteView begin, ByteView end) const;
  // REQUIRES of both: caches_.
  void cache_read(ByteView key, const Value& value);
  void forget_cached(ByteView key) const;
  // Tells the caches what became of the writes. REQUIRES: the latches are held.
  void settle_caches(bool committed) const;

  Engine& engine_;
  const Caches* const caches_;  // may be null
  const Scope& scope_;
  const Way way_;
  const bool check_scope_;
  const Durability durability_;
  // Keys, values and nodes of points_ and adds_: most transactions need no more than this.
  std::array<std::byte, 16 * 1024> first_memory_;
  std::pmr::monotonic_buffer_resource memory_{first_memory_.data(), first_memory_.size()};
  Points points_{&memory_};
  Ranges ranges_;
  bool removed_read_ = false;  // some of them are of what others may read
  std::pmr::map<ByteView, int64_t> adds_{&memory_};
  size_t buffered_bytes_ = 0;
  std::vector<Expectation> expectations_;
  std::set<Bytes, std::less<>> expected_keys_;
  size_t expected_bytes_ = 0;
  std::vector<Bytes> begun_;
  std::vector<std::function<void()>> once_committed_;
  // Prefixes of what was committed ahead, with the last key that was.
  std::map<Bytes, Bytes, std::less<>> ahead_;
  struct Loading {
    Bytes prefix;
    Bytes* last;                 // key that was put there, in ahead_
    std::unique_ptr<Load> load;  // null while it is so little that it may be one commit
    WriteSet run;                // then: what was committed ahead
    WriteSet rest;               // what belongs with it
    WriteSet next = {};          // puts that are to be committed ahead
  };
  std::optional<Loading> loading_;
  bool cached_absent_ = false;  // a record of something within a Redis key was, because of it
  std::vector<Bytes>* sampled_reads_ = nullptr;
  Status violated_;
};

struct TransactOptions {
  std::optional<Way> way = {};  // by default what the engine needs: expecting if it is shared
  bool check_scope = false;     // every access lies inside its scope: on in all tests
  uint64_t seed = 1;            // of the jitter between retries
  // Of records, a quarter of leaves; only where latches order transactions. 0: none.
  size_t record_cache_bytes = 0;
  TrafficObserver* observer = nullptr;  // is shown some transactions; outlives the transactor
  // One in so many, on average and by chance: no rhythm of a client is hidden. At least 1.
  unsigned observed_one_in = 16;
};

class Transactor {
 public:
  Transactor(Engine& engine, Clock& clock, TransactOptions options = {});
  ~Transactor();

  // Commits what fn wrote, with the answers of engine.h; conflicts are retried, up to
  // transact_attempts_max, then Code::conflict. Any thread.
  Status transact(const Scope& scope, FunctionRef<Status(View&)> fn,
                  Durability durability = Durability::everysec);

  Way way() const { return way_; }
  const RecordCache* record_cache() const { return records_.get(); }  // may be null
  const ScanLeaves* scan_leaves() const { return leaves_.get(); }     // may be null

 private:
  struct Attempt {
    Status status;
    bool conflict = false;  // the commit's, not one that fn returned
  };
  Attempt attempt(const Scope& scope, FunctionRef<Status(View&)> fn, Durability durability);
  void back_off(unsigned attempt);

  Engine& engine_;
  Clock& clock_;
  const Way way_;
  const bool check_scope_;
  const uint64_t seed_;
  TrafficObserver* const observer_;  // may be null
  const unsigned observed_one_in_;
  std::unique_ptr<LatchTable> latches_;
  std::unique_ptr<RecordCache> records_;
  std::unique_ptr<ScanLeaves> leaves_;
  std::optional<View::Caches> caches_;
};

}  // namespace trellis
