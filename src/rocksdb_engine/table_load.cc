#include "rocksdb_engine/table_load.h"

#include <fmt/format.h>
#include <rocksdb/convenience.h>
#include <rocksdb/sst_file_reader.h>

#include <exception>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "base/assert.h"
#include "codec/local_keys.h"
#include "codec/store_values.h"
#include "rocksdb_engine/rocksdb_status.h"
#include "rocksdb_engine/write_unsynced.h"

namespace trellis {
namespace {

constexpr size_t waiting_max = 6;  // beside the one that is being written
constexpr uint64_t first_table_bytes = 8 * 1024 * 1024;
constexpr uint64_t table_bytes_max = 64 * 1024 * 1024;
constexpr uint64_t tables_bytes_min = 8 * 1024 * 1024;  // less goes through the log
constexpr uint64_t kept_bytes_max = 64 * 1024 * 1024;   // in the page cache, and one table more
constexpr size_t log_part_bytes = 4 * 1024 * 1024;
constexpr double worth_compressing = 0.9;
constexpr std::string_view file_prefix = "load-";

// Of tables, not of the log: what became of them is known, it does not count.
Status written(const rocksdb::Status& status) {
  if (status.ok()) return {};
  Error error = write_error(status);
  if (error.code == Code::maybe) error = {Code::unavailable, status.ToString()};
  return error;
}

// Of tables that have nothing else. Nothing but a load's own entries was ever between its first key
// and its last: no older ones come to light.
Status drop_files(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family, ByteView begin,
                  ByteView end) {
  const rocksdb::Slice first = to_slice(begin);
  const rocksdb::Slice last = to_slice(end);
  return written(rocksdb::DeleteFilesInRange(&db, &family, &first, &last, /*include_end=*/false));
}

Status commit_all(Engine& store, const Commit& commit) {
  const Commit* const commits[] = {&commit};
  Status outcomes[1];
  store.commit_many(commits, outcomes);
  return std::move(outcomes[0]);
}

}  // namespace

TableLoad::TableLoad(const LoadPlace& place, uint64_t number)
    : place_(place),
      number_(number),
      options_(place.db.GetOptions(&place.family)),
      thread_([this] { run(); }) {}

TableLoad::~TableLoad() {
  discard(finish());
  table_.reset();
  // Those that the store took over are not there under this name.
  for (const std::string& path : paths_)
    place_.db.GetEnv()->DeleteFile(path).PermitUncheckedError();
}

// --- writing ---

void TableLoad::put(WriteSet puts) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.size() < waiting_max; });
  waiting_.push_back(std::move(puts));
  changed_.notify_all();
}

void TableLoad::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_all_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const WriteSet puts = std::move(waiting_.front());
    waiting_.pop_front();
    changed_.notify_all();
    if (!written_) continue;
    lock.unlock();
    Status status;
    try {
      status = write(puts);
    } catch (const std::exception& exception) {
      status = Error{Code::unavailable, exception.what()};
    }
    lock.lock();
    written_ = std::move(status);
  }
}

Status TableLoad::write(const WriteSet& puts) {
  for (const WriteSet::Write& put : puts) {
    ASSERT(put.op == WriteOp::put);
    if (table_ == nullptr) TRY(begin_table());
    TRY(written(table_->Put(to_slice(put.key), to_slice(put.value))));
    if (first_.empty()) first_ = put.key;
    table_bytes_ += put.key.size() + put.value.size();
    if (table_bytes_ < (paths_.size() == 1 ? first_table_bytes : table_bytes_max)) continue;
    TRY(finish_table());
  }
  return {};
}

Status TableLoad::begin_table() {
  TRY(place_.store.room());
  paths_.push_back(
      fmt::format("{}/{}{}-{}.part", place_.db.GetName(), file_prefix, number_, paths_.size()));
  // What is very large shall not push all else out of the system's page cache.
  const bool drops_pages = all_bytes_ >= kept_bytes_max;
  table_ = std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(options_), options_,
                                                    &place_.family, drops_pages);
  return written(table_->Open(paths_.back()));
}

Status TableLoad::finish_table() {
  rocksdb::ExternalSstFileInfo made;
  TRY(written(table_->Finish(&made)));
  table_.reset();
  last_ = made.largest_key;
  // Mostly the first one tells.
  if (static_cast<double>(made.file_size) > worth_compressing * static_cast<double>(table_bytes_)) {
    options_.compression = rocksdb::kNoCompression;
    options_.compression_per_level.clear();
    options_.bottommost_compression = rocksdb::kDisableCompressionOption;
  }
  all_bytes_ += std::exchange(table_bytes_, 0);
  return {};
}

Status TableLoad::finish() {
  {
    const std::lock_guard lock(mutex_);
    is_all_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  return written_;
}

// --- the commit ---

Status TableLoad::commit(Commit with) {
  TRY(finish());
  if (table_ != nullptr) TRY(finish_table());
  if (paths_.empty()) return commit_all(place_.store, with);
  Status status = commit_noted(std::move(with));
  if (!status && status.error().code != Code::maybe) undo();
  return status;
}

Status TableLoad::commit_noted(Commit with) {
  const Bytes note = encode(StoreLoadKey{number_});
  Commit noted;
  noted.writes.put(note, encode(StoreLoad{first_, last_}));
  TRY(commit_all(place_.store, noted));
  TRY(place_.store.wait_durable(place_.store.last_ticket()));
  const std::shared_lock lock(place_.taking_over);
  TRY(take_over());
  with.writes.remove(note);
  return commit_all(place_.store, with);
}

Status TableLoad::take_over() {
  if (all_bytes_ < tables_bytes_min) return commit_through_log();
  const rocksdb::Status status = ingest();
  // Something overlaps: it would need a sequence number.
  return status.IsInvalidArgument() ? commit_through_log() : written(status);
}

rocksdb::Status TableLoad::ingest() {
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  options.failed_move_fall_back_to_copy = true;
  options.snapshot_consistency = false;  // no snapshot may look there
  options.allow_global_seqno = false;
  options.allow_blocking_flush = false;
  place_.dead.revive(first_, successor(last_));
  const ReadEpochs::Reader reader(place_.epochs);  // RocksDB looks into the memtable
  const UncheckedCall unchecked;
  return place_.db.IngestExternalFile(&place_.family, paths_, options);
}

Status TableLoad::commit_through_log() {
  Commit part;
  for (const std::string& path : paths_) {
    rocksdb::SstFileReader table(options_);
    TRY(written(table.Open(path)));
    const std::unique_ptr<rocksdb::Iterator> at(table.NewIterator(rocksdb::ReadOptions()));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      part.writes.put(to_view(at->key()), to_view(at->value()));
      if (part.writes.bytes() < log_part_bytes) continue;
      TRY(commit_all(place_.store, part));
      part.writes.clear();
    }
    TRY(written(at->status()));
  }
  return commit_all(place_.store, part);
}

void TableLoad::undo() {
  // The disk may be full: files go without a commit.
  discard(drop_files(place_.db, place_.family, first_, successor(last_)));
  Commit undone;
  undone.writes.remove_range(first_, successor(last_));
  undone.writes.remove(encode(StoreLoadKey{number_}));
  discard(commit_all(place_.store, undone));  // the next start does it
}

// --- after a crash ---

namespace {

Status undo_load(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family, ByteView note,
                 const StoreLoad& load) {
  const Bytes end = successor(load.last);
  TRY(drop_files(db, family, load.first, end));
  rocksdb::WriteBatch batch;
  batch.DeleteRange(&family, to_slice(load.first), to_slice(end));
  batch.Delete(&family, to_slice(note));
  return written(write_unsynced(db, batch));
}

Result<std::map<Bytes, Bytes>> read_notes(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family) {
  std::map<Bytes, Bytes> notes;
  const Bytes end = encode(StoreLoadKey{UINT64_MAX});
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(options, &family));
  for (at->Seek(to_slice(encode(StoreLoadKey{0}))); at->Valid() && to_view(at->key()) < end;
       at->Next())
    notes.emplace(to_view(at->key()), to_view(at->value()));
  if (!at->status().ok()) return read_error(at->status());
  return notes;
}

}  // namespace

Status undo_loads(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family) {
  TRY_ASSIGN(const auto notes, read_notes(db, family));
  for (const auto& [note, value] : notes) {
    const auto load = decode<StoreLoad>(value);
    if (!load)
      return Error{Code::corrupt, "the note of a load does not make sense (" +
                                      load.error().message + "): restore from a backup"};
    TRY(undo_load(db, family, note, *load));
  }
  std::vector<std::string> names;
  if (const rocksdb::Status status = db.GetEnv()->GetChildren(db.GetName(), &names); !status.ok())
    return read_error(status);
  for (const std::string& name : names)
    if (name.starts_with(file_prefix))
      db.GetEnv()->DeleteFile(db.GetName() + "/" + name).PermitUncheckedError();
  return {};
}

}  // namespace trellis
