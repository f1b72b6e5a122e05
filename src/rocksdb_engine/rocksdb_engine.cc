#include "rocksdb_engine/rocksdb_engine.h"

#include <fmt/format.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <system_error>

#include "base/assert.h"
#include "base/log.h"
#include "base/shared_mutex.h"
#include "codec/counter_value.h"
#include "codec/local_keys.h"
#include "engine/page_evidence.h"
#include "rocksdb_engine/batch_bytes.h"
#include "rocksdb_engine/block_store.h"
#include "rocksdb_engine/checkpoint.h"
#include "rocksdb_engine/data_directory.h"
#include "rocksdb_engine/dead_intervals.h"
#include "rocksdb_engine/parallel_reads.h"
#include "rocksdb_engine/read_sampler.h"
#include "rocksdb_engine/rocksdb_crc32c.h"
#include "rocksdb_engine/rocksdb_status.h"
#include "rocksdb_engine/room_watch.h"
#include "rocksdb_engine/scan_page.h"
#include "rocksdb_engine/slice_pin.h"
#include "rocksdb_engine/store_file_system.h"
#include "rocksdb_engine/store_options.h"
#include "rocksdb_engine/table_load.h"
#include "rocksdb_engine/wal_check.h"
#include "rocksdb_engine/wal_sync.h"
#include "rocksdb_engine/write_unsynced.h"

namespace trellis {

namespace {

constexpr size_t prefetched_writes_max = 512;  // what they read fits into the nearer caches
constexpr size_t seen_in_reclaimed_max = 32;   // of more there is little to gain

// DeleteRange has no "to the end": this is greater than every key. It is long, but deleting to the
// end of the map is rare: every area of the map has an area behind it.
const Bytes& beyond_all_keys() {
  static const Bytes key(key_bytes_max + 1, '\xff');
  return key;
}

// RocksDB and what it needs to live, in the order in which it goes down.
struct Database {
  explicit Database(const std::string& path) : logs(path) {}
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() {
    if (db == nullptr) return;
    for (rocksdb::ColumnFamilyHandle* family : families) {
      db->DestroyColumnFamilyHandle(family).PermitUncheckedError();
    }
    db->Close().PermitUncheckedError();
  }

  LogFiles logs;
  WriteFence fence;
  std::unique_ptr<rocksdb::Env> env;
  std::unique_ptr<WalPrefixFilter> filter;
  std::shared_ptr<rocksdb::Cache> cache;
  std::shared_ptr<ReadEpochs> main_epochs;
  std::shared_ptr<const TreeMemTableFactory> main_memtables;
  std::shared_ptr<DeadIntervals> main_dead;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
};

class Store final : public RocksdbEngine {
 public:
  Store(std::unique_ptr<Database> database, const RocksdbOptions& options, StoreIdentity identity)
      : database_(std::move(database)),
        db_(*database_->db),
        main_(*database_->families[0]),
        blocks_family_(*database_->families[1]),
        epochs_(*database_->main_epochs),
        dead_(*database_->main_dead),
        identity_(identity),
        wal_(db_, database_->logs, options.everysec_period),
        room_(*database_->env, store_path(options.path), options.disk_reserve_bytes,
              options.room_period),
        blocks_(db_, blocks_family_, sampler_, wal_, room_) {}
  ~Store() override;

  Status get(ByteView key, Value& value) override;
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override;
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override;
  std::optional<Bytes> evidence(const Value& value) const override;
  CommitTicket commit_many(std::span<const Commit* const> commits,
                           std::span<Status> outcomes) override;
  std::unique_ptr<Load> begin_load() override;
  Status wait_durable(CommitTicket ticket) override { return wal_.wait_durable(ticket.value); }
  CommitTicket last_ticket() const override { return {wal_.last_ticket()}; }
  bool shared() const override { return false; }
  Status room() const override { return room_.check(); }
  BlockStore& blocks() override { return blocks_; }
  Status checkpoint(const std::filesystem::path& folder) override;

  EngineFigures figures() const override;
  const StoreIdentity& identity() const override { return identity_; }
  Status reclaim(const std::vector<KeyInterval>& intervals, std::atomic<bool>* canceled) override;
  Status compact() override;

 private:
  using Commits = std::span<const Commit* const>;
  using Outcomes = std::span<Status>;
  Status check_writable(const Commit& commit) const;
  Status check_expectations(const Commit& commit);
  Status check_expectation(const Expectation& expectation);
  void prefetch(const WriteSet& writes) const;
  void append(BatchBytes& batch, const WriteSet& writes);
  void write(BatchBytes& bytes, Commits commits, Outcomes outcomes);
  void commit_in_order(Commits commits, Outcomes outcomes);
  Status bury_unseen(const std::vector<KeyInterval>& intervals);
  Result<bool> has_tables_in(const KeyInterval& interval);
  Status revive_seen(const KeyInterval& interval);
  Status compact_interval(const KeyInterval& interval, std::atomic<bool>* canceled);

  const std::unique_ptr<Database> database_;
  rocksdb::DB& db_;
  rocksdb::ColumnFamilyHandle& main_;
  rocksdb::ColumnFamilyHandle& blocks_family_;
  ReadEpochs& epochs_;   // of all who read or write the main family: tree_memtable.h
  DeadIntervals& dead_;  // of the main family
  const StoreIdentity identity_;
  // Held shared by commits that expect nothing, and alone from checking an expectation to the write
  // that relies on it.
  SharedMutex commit_mutex_;
  std::mutex checkpoint_mutex_;     // one at a time: two could be of one name
  std::mutex dead_mutex_;           // of whoever watches dead_
  std::atomic<uint64_t> noted_{0};  // the highest sync note in the log
  std::atomic<uint64_t> loads_{0};  // how many were begun
  SharedMutex taking_over_;         // LoadPlace
  ReadSampler sampler_;
  ParallelReads reads_{db_, main_};
  WalSync wal_;
  RoomWatch room_;
  RocksdbBlockStore blocks_;
};

Store::~Store() {
  // Twice, so that the note about the first is itself durable and the next start can tell a log
  // that rots in the meantime from one that was never synced. Best effort: nobody can be told.
  if (!wal_.wait_durable(wal_.last_ticket()).has_value() || !wal_.check().has_value()) return;
  rocksdb::WriteBatch batch;
  batch.PutLogData(encode_sync_note(wal_.durable())).PermitUncheckedError();
  if (write_unsynced(db_, batch).ok()) discard(wal_.sync());
}

Status Store::get(ByteView key, Value& value) {
  const ReadSampler::Sample sample(sampler_);
  const ReadEpochs::Reader reader(epochs_);
  static const rocksdb::ReadOptions options;
  SlicePin& pin = value.pin<SlicePin>();
  pin.slice.Reset();
  pin.skip = 0;
  const rocksdb::Status status = db_.Get(options, &main_, to_slice(key), &pin.slice);
  if (status.ok()) {
    value.set_found({pin.data(), pin.size()});
    return {};
  }
  value.set_absent();
  if (status.IsNotFound()) return {};
  return read_error(status);
}

Status Store::multi_get(std::span<const ByteView> keys, std::span<Value> values) {
  ASSERT(keys.size() == values.size());
  if (keys.size() == 1) return get(keys[0], values[0]);
  const ReadSampler::Sample sample(sampler_);
  const ReadEpochs::Reader reader(epochs_);
  return reads_.read(keys, values);
}

Result<ScanPage> Store::scan(const ScanRequest& request, ScanVisitor visit) {
  const ReadSampler::Sample sample(sampler_);
  const ReadEpochs::Reader reader(epochs_);
  return scan_page(db_, main_, request, visit);
}

std::optional<Bytes> Store::evidence(const Value& value) const {
  if (!value.found()) return std::nullopt;
  return Bytes(value.bytes());
}

Status Store::check_expectation(const Expectation& expectation) {
  bool holds = false;
  if (expectation.end.has_value()) {
    TRY_ASSIGN(holds, interval_unchanged(db_, main_, expectation.begin, *expectation.end,
                                         *expectation.seen));
  } else {
    Value value;
    TRY(get(expectation.begin, value));
    holds = value.found() == expectation.seen.has_value() &&
            (!value.found() || value.bytes() == *expectation.seen);
  }
  if (holds) return {};
  return Error{Code::conflict, "changed since it was read: " + quote(expectation.begin)};
}

Status Store::check_expectations(const Commit& commit) {
  for (const Expectation& expectation : commit.expectations) TRY(check_expectation(expectation));
  return {};
}

// RocksDB inserts one entry after the other, and would wait for the memory of each.
void Store::prefetch(const WriteSet& writes) const {
  if (writes.count() < 2) return;
  std::vector<ByteView> keys;
  keys.reserve(std::min(writes.count(), prefetched_writes_max));
  for (auto write = writes.begin(); write != writes.end() && keys.size() < keys.capacity(); ++write)
    if ((*write).op != WriteOp::remove_range) keys.push_back((*write).key);
  TreeMemTableFactory::Newest(*database_->main_memtables).expect(keys);
}

void Store::append(BatchBytes& batch, const WriteSet& writes) {
  prefetch(writes);
  dead_.revive(writes);
  batch.reserve(writes.bytes());
  for (const WriteSet::Write& write : writes) {
    switch (write.op) {
      case WriteOp::put: batch.put(write.key, write.value); break;
      case WriteOp::remove: batch.remove(write.key); break;
      case WriteOp::remove_range:
        batch.remove_range(write.key, write.value.empty() ? beyond_all_keys() : write.value);
        break;
      case WriteOp::add: batch.merge(write.key, encode_counter_value(write.delta)); break;
    }
  }
}

Status Store::check_writable(const Commit& commit) const {
  if (commit.writes.empty()) return {};
  TRY(wal_.check());
  return room_.check_floor();
}

// Writes what the batch has from these commits; those that were refused before have an error.
void Store::write(BatchBytes& bytes, Commits commits, Outcomes outcomes) {
  if (bytes.count() == 0) return;
  rocksdb::WriteBatch batch = bytes.take();
  const uint64_t durable = wal_.durable();
  if (durable > noted_.load(std::memory_order_relaxed)) {
    noted_.store(durable, std::memory_order_relaxed);
    batch.PutLogData(encode_sync_note(durable)).PermitUncheckedError();
  }
  const rocksdb::Status status = write_unsynced(db_, batch);
  TreeMemTableFactory::Newest::forget_expected();
  bool everysec = false;
  for (size_t i = 0; i < commits.size(); i++) {
    if (!outcomes[i].has_value()) continue;
    if (!status.ok()) outcomes[i] = write_error(status);
    everysec = everysec || commits[i]->durability == Durability::everysec;
  }
  if (status.ok() && everysec) wal_.sync_soon();
}

void Store::commit_in_order(Commits commits, Outcomes outcomes) {
  BatchBytes batch;
  size_t written = 0;  // everything before this is answered
  const auto write_up_to = [&](size_t end) {
    write(batch, commits.subspan(written, end - written), outcomes.subspan(written, end - written));
    written = end;
  };
  for (size_t i = 0; i < commits.size(); i++) {
    outcomes[i] = check_commit(*commits[i]);
    if (outcomes[i].has_value()) outcomes[i] = check_writable(*commits[i]);
    if (!outcomes[i].has_value()) continue;
    const bool expecting = !commits[i]->expectations.empty();
    if (expecting) {
      write_up_to(i);  // so that the check sees them
      outcomes[i] = check_expectations(*commits[i]);
      if (!outcomes[i].has_value()) continue;
    }
    append(batch, commits[i]->writes);
    if (expecting || batch.size() >= commit_bytes_max) write_up_to(i + 1);
  }
  write_up_to(commits.size());
}

CommitTicket Store::commit_many(Commits commits, Outcomes outcomes) {
  ASSERT(commits.size() == outcomes.size());
  const ReadEpochs::Reader reader(epochs_);
  const bool expecting = std::any_of(commits.begin(), commits.end(), [](const Commit* commit) {
    return !commit->expectations.empty();
  });
  if (expecting) {
    const std::unique_lock lock(commit_mutex_);
    commit_in_order(commits, outcomes);
  } else {
    const std::shared_lock lock(commit_mutex_);
    commit_in_order(commits, outcomes);
  }
  return last_ticket();
}

std::unique_ptr<Load> Store::begin_load() {
  try {
    return std::make_unique<TableLoad>(LoadPlace{*this, db_, main_, epochs_, dead_, taking_over_},
                                       loads_++);
  } catch (const std::system_error&) {
    return nullptr;  // no thread is to be had
  }
}

Status Store::checkpoint(const std::filesystem::path& folder) {
  const std::lock_guard lock(checkpoint_mutex_);
  const std::unique_lock no_load(taking_over_);
  return make_checkpoint(db_, Marker{identity_.uuid}, store_path(folder));
}

EngineFigures Store::figures() const {
  EngineFigures figures;
  figures.sampled = sampler_.figures();
  const auto sum = [&](const std::string& property) {
    uint64_t value = 0;
    db_.GetAggregatedIntProperty(property, &value);
    return value;
  };
  using Properties = rocksdb::DB::Properties;
  figures.keys_estimate = sum(Properties::kEstimateNumKeys);
  figures.live_bytes = sum(Properties::kEstimateLiveDataSize);
  figures.memtable_bytes = sum(Properties::kCurSizeAllMemTables);
  figures.compaction_pending_bytes = sum(Properties::kEstimatePendingCompactionBytes);
  figures.cache_used_bytes = database_->cache->GetUsage();
  figures.writes_stopped = sum(Properties::kIsWriteStopped) != 0;
  db_.GetIntProperty(Properties::kBackgroundErrors, &figures.background_errors);
  figures.wal_syncs = wal_.syncs();
  figures.disk_free_bytes = free_bytes(*database_->env, db_.GetName());
  figures.disk_reserve_bytes = room_.reserve_bytes();
  figures.adds_refused = room_.is_low();
  return figures;
}

Status Store::compact() {
  for (rocksdb::ColumnFamilyHandle* family : {&main_, &blocks_family_}) {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    const rocksdb::Status status = db_.CompactRange(options, family, nullptr, nullptr);
    if (!status.ok()) return read_error(status);
  }
  return {};
}

Result<bool> Store::has_tables_in(const KeyInterval& interval) {
  const rocksdb::Range range(to_slice(interval.begin), to_slice(interval.end));
  uint64_t bytes = 0;
  const rocksdb::Status sized = db_.GetApproximateSizes({}, &main_, &range, 1, &bytes);
  if (!sized.ok()) return read_error(sized);
  return bytes > 0;
}

Status Store::revive_seen(const KeyInterval& interval) {
  TRY_ASSIGN(const ScanPage page, scan({.begin = interval.begin,
                                        .end = interval.end,
                                        .entries_max = seen_in_reclaimed_max,
                                        .reading = ScanRequest::Reading::once},
                                       [&](ByteView key, ByteView) {
                                         dead_.revive(key, successor(key));
                                         return Visit::go_on;
                                       }));
  if (page.resume) dead_.revive(interval.begin, interval.end);
  return {};
}

// Finds out where in the intervals nothing is seen (dead_intervals.h). Whatever hides it there, a
// range delete of ours hides it too, so that nothing depends on what is passed over.
Status Store::bury_unseen(const std::vector<KeyInterval>& intervals) {
  std::vector<KeyInterval> stored;
  for (KeyInterval interval : intervals) {
    if (empty_interval(interval.begin, interval.end)) continue;
    if (interval.end.empty()) interval.end = beyond_all_keys();
    TRY_ASSIGN(const bool is_stored, has_tables_in(interval));
    if (is_stored) stored.push_back(std::move(interval));
  }
  if (stored.empty()) return {};
  {
    // Who is writing is done with it or will tell. For a moment: they wait.
    const std::unique_lock no_load(taking_over_);
    const std::unique_lock no_commit(commit_mutex_);
    for (const KeyInterval& interval : stored) dead_.watch(interval.begin, interval.end);
  }
  for (const KeyInterval& interval : stored) TRY(revive_seen(interval));
  {
    // A load that was begun has told and is seen, or it meets the range delete.
    const std::unique_lock no_load(taking_over_);
    const std::unique_lock no_commit(commit_mutex_);
    TRY(wal_.check());
    rocksdb::WriteBatch batch;
    for (const auto& [begin, end] : dead_.watched()) batch.DeleteRange(&main_, begin, end);
    if (const rocksdb::Status status = write_unsynced(db_, batch); !status.ok())
      return write_error(status);
  }
  const CommitTicket hidden = last_ticket();
  TRY(wait_durable(hidden));
  // Whoever reads many keys as of one instant may have begun before.
  uint64_t oldest_read = 0;
  db_.GetIntProperty(rocksdb::DB::Properties::kOldestSnapshotSequence, &oldest_read);
  if (oldest_read == 0 || oldest_read >= hidden.value) dead_.bury();
  return {};
}

// Only what lies in the interval is rewritten, beside other work: what range deletes cover there
// goes from the disk, which otherwise waits until enough is written around it.
Status Store::compact_interval(const KeyInterval& interval, std::atomic<bool>* canceled) {
  const rocksdb::Slice first = to_slice(interval.begin);
  const rocksdb::Slice last = to_slice(interval.end);
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  // What goes is above the last level, or in it below the range delete that comes down.
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kSkip;
  // Much of what they do may be to read what goes; but not on every core that there is.
  options.max_subcompactions = db_.GetDBOptions().max_background_jobs > 1 ? 2 : 1;
  options.canceled = canceled;
  for (rocksdb::ColumnFamilyHandle* family : {&main_, &blocks_family_}) {
    const rocksdb::Status status =
        db_.CompactRange(options, family, &first, interval.end.empty() ? nullptr : &last);
    if (status.IsManualCompactionPaused()) return {};  // canceled
    if (!status.ok()) return read_error(status);
  }
  return {};
}

Status Store::reclaim(const std::vector<KeyInterval>& intervals, std::atomic<bool>* canceled) {
  const auto is_canceled = [&] { return canceled != nullptr && *canceled; };
  if (is_canceled()) return {};
  // One at a time: what comes meanwhile is read. So is what cannot be hidden, on a full disk.
  const std::unique_lock alone(dead_mutex_, std::try_to_lock);
  std::optional<DeadIntervals::Watch> watch;
  if (alone.owns_lock() && room_.check_floor().has_value()) {
    watch.emplace(dead_);
    const Status buried = bury_unseen(intervals);
    if (!buried) {
      watch.reset();
      log_warn("what was removed is read to leave the disk", {{"why", buried.error().message}});
    }
  }
  for (const KeyInterval& interval : intervals) {
    if (empty_interval(interval.begin, interval.end)) continue;
    if (is_canceled()) break;
    TRY(compact_interval(interval, canceled));
  }
  return {};
}

Result<std::unique_ptr<Database>> open_database(const RocksdbOptions& options, rocksdb::Env& env) {
  const std::string path = store_path(options.path);
  auto database = std::make_unique<Database>(path);
  database->env = rocksdb::NewCompositeEnv(
      make_store_file_system(env.GetFileSystem(), database->logs, database->fence));
  database->filter = std::make_unique<WalPrefixFilter>(*database->env, path, database->fence);
  StoreOptions store = make_store_options(options, *database->env);
  store.db.wal_filter = database->filter.get();
  database->cache = store.cache;
  database->main_epochs = store.main_epochs;
  database->main_memtables = store.main_memtables;
  database->main_dead = store.main_dead;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(
      store.db, path, {{main_family_name, store.main}, {blocks_family_name, store.blocks}},
      &database->families, &db);
  TRY(database->filter->verdict());
  if (!status.ok()) return open_error(status, free_bytes(env, path));
  database->db.reset(db);
  if (!rocksdb_uses_our_crc32c())
    log_warn("RocksDB computes the checksums of its log by its own code, which may be slow");
  ASSERT(database->logs.count() > 0);  // or nothing would ever be synced
  // Log files of before a crash are gone from now on, whatever happens: check_wals relies on it.
  TRY(sync_folder(env, path));
  return database;
}

StoreIdentity make_identity(const Clock& clock) {
  StoreIdentity identity{{}, clock.unix_ms()};
  std::random_device random;
  for (uint8_t& byte : identity.uuid) byte = static_cast<uint8_t>(random());
  identity.uuid[6] = static_cast<uint8_t>((identity.uuid[6] & 0x0f) | 0x40);  // RFC 4122, version 4
  identity.uuid[8] = static_cast<uint8_t>((identity.uuid[8] & 0x3f) | 0x80);
  return identity;
}

Error lost_files(std::string_view why) {
  return {Code::corrupt,
          fmt::format("{}: files of this store are missing or come from another one; "
                      "put them back or restore from a backup",
                      why)};
}

Result<StoreIdentity> load_or_make_identity(Database& database, const std::string& path,
                                            const Marker& marker, const Clock& clock) {
  const Bytes key = encode(StoreKey{StoreKey::ident});
  std::string stored;
  rocksdb::Status status = database.db->Get({}, database.families[0], to_slice(key), &stored);
  if (status.ok()) {
    auto identity = decode<StoreIdentity>(stored);
    if (identity && marker.store.value_or(identity->uuid) != identity->uuid)
      return lost_files("the store and its file TRELLIS name different identities");
    if (identity) return identity;
    return Error{Code::corrupt, "the store's identity record does not make sense (" +
                                    identity.error().message + "): restore from a backup"};
  }
  if (!status.IsNotFound()) return read_error(status);
  if (marker.store.has_value()) return lost_files("the store's identity is gone");
  const StoreIdentity identity = make_identity(clock);
  rocksdb::WriteOptions options;
  options.sync = true;
  status = database.db->Put(options, database.families[0], to_slice(key), encode(identity));
  if (!status.ok()) return open_error(status, free_bytes(*database.env, path));
  return identity;
}

Result<std::unique_ptr<RocksdbEngine>> open_store(const RocksdbOptions& options) {
  rocksdb::Env& env = options.env != nullptr ? *options.env : *rocksdb::Env::Default();
  const std::string path = store_path(options.path);
  TRY_ASSIGN(const Marker marker, prepare_data_directory(env, path, options.create_if_missing));
  TRY_ASSIGN(std::unique_ptr<Database> database, open_database(options, env));
  TRY_ASSIGN(const StoreIdentity identity,
             load_or_make_identity(*database, path, marker, options.clock));
  if (!marker.store.has_value()) TRY(write_marker(env, path, {identity.uuid}));
  TRY(undo_loads(*database->db, *database->families[0]));
  return std::make_unique<Store>(std::move(database), options, identity);
}

}  // namespace

Result<std::unique_ptr<RocksdbEngine>> open_rocksdb_engine(const RocksdbOptions& options) {
  auto opened = open_store(options);
  if (!opened.has_value()) {
    return with_context("open " + options.path.string(), std::move(opened).error());
  }
  return opened;
}

}  // namespace trellis
