#include "backup/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <random>

#include "backup.pb.h"
#include "backup/block_walk.h"
#include "backup/sense.h"
#include "base/log.h"
#include "codec/fs_keys.h"
#include "codec/fs_values.h"
#include "codec/stored_message.h"
#include "codec/system_keys.h"

namespace trellis {
namespace {

constexpr size_t restore_parts = 16;  // with a cursor each
constexpr size_t due_entries_at_once = 1'000;
constexpr size_t damage_told_max = 100;
constexpr KeyspaceId whole_record{0};  // the record of a restore of everything

Error bad_backup(std::string message) {
  return {Code::corrupt, std::move(message), "backup_damaged"};
}

// That a chunk holds what the backup says, and what the map may hold.
Status check_plain(const ChunkFacts& facts, ByteView plain) {
  uint64_t entries = 0;
  TRY(for_each_entry(plain, [&](ByteView key, ByteView value) -> Status {
    if (entries++ == 0 && key != facts.first_key)
      return bad_backup("a chunk does not begin with the key that the backup says");
    if (facts.of_blocks ? !block_of_entry(key, value) : !makes_sense(key, value))
      return bad_backup(fmt::format("it holds {}, which no map does", to_hex(key)));
    return {};
  }));
  if (entries != facts.entries)
    return bad_backup("a chunk has not as many entries as the backup says");
  return {};
}

uint64_t bytes_of_chunks(const std::vector<ChunkFacts>& chunks) {
  uint64_t bytes = 0;
  for (const ChunkFacts& chunk : chunks) bytes += chunk.bytes;
  return bytes;
}

// Whose entries are written, and to whom; absent: all, as they are.
struct Owners {
  KeyspaceId source;
  KeyspaceId target;
};

// A superblock of files as it is after a restore: of another era, whose inodes nobody takes for
// those of the same number that were made since the backup. Absent: it is none.
std::optional<Bytes> with_new_era(ByteView key, ByteView value) {
  static const size_t key_bytes = encode(FsSuperblockKey{KeyspaceId{0}}).size();
  if (key.size() != key_bytes || !decode<FsSuperblockKey>(key)) return std::nullopt;
  auto superblock = decode<FsSuperblock>(value);
  if (!superblock) return std::nullopt;
  // By chance: a backup may be restored twice.
  std::random_device random;
  superblock->era = std::uniform_int_distribution<uint32_t>(2)(random);
  return encode(*superblock);
}

class ChunkWriter {
 public:
  ChunkWriter(Engine& engine, const Repository& repository, std::vector<ChunkFacts> chunks,
              std::optional<Owners> owners, JobControl& control)
      : engine_(engine),
        repository_(repository),
        chunks_(std::move(chunks)),
        owners_(owners),
        control_(control) {
    if (owners_)
      for (const auto& interval : keyspace_intervals(owners_->source))
        prefixes_.push_back(interval.first);
  }

  Status run(unsigned threads) {
    return run_in_parallel(threads, restore_parts, [&](size_t part) { return run_part(part); });
  }

 private:
  Bytes cursor_key(size_t part) const {
    return encode(
        KeyspaceRestoreKey{owners_ ? owners_->target : whole_record, fmt::format("{:02}", part)});
  }

  Result<size_t> load_cursor(size_t part, size_t by_default) {
    Value value;
    TRY(engine_.get(cursor_key(part), value));
    if (!value.found()) return by_default;
    if (value.bytes().size() != 8) return bad_backup("a cursor of the restore makes no sense");
    return static_cast<size_t>(load_be(value.bytes().data(), 8));
  }

  // Chunks in order, each with the cursor in one commit.
  Status run_part(size_t part) {
    const size_t begin = chunks_.size() * part / restore_parts;
    const size_t end = chunks_.size() * (part + 1) / restore_parts;
    TRY_ASSIGN(const size_t from, load_cursor(part, begin));
    for (size_t i = begin; i < end; i++) {
      if (i < from) {
        control_.skip(chunks_[i].bytes);
        continue;
      }
      TRY_ASSIGN(const Bytes plain, repository_.get_chunk(chunks_[i]));
      TRY(engine_.room());
      Commit commit;
      if (chunks_[i].of_blocks) {  // before the cursor, which is not durable without them
        TRY(write_blocks(plain));
      } else {
        TRY(for_each_entry(plain, [&](ByteView key, ByteView value) {
          put(commit, key, value);
          return Status();
        }));
      }
      Bytes next;
      append_be64(next, i + 1);
      commit.writes.put(cursor_key(part), next);
      TRY(trellis::commit(engine_, commit));
      TRY(control_.step("chunk restored"));
      TRY(control_.pass(chunks_[i].bytes));
    }
    return {};
  }

  Status write_blocks(ByteView plain) {
    std::vector<BlockWrite> writes;
    TRY(for_each_entry(plain, [&](ByteView key, ByteView value) -> Status {
      TRY_ASSIGN(BlockId block, block_of_entry(key, value));
      if (owners_ && block.keyspace != owners_->source) return {};
      if (owners_) block.keyspace = owners_->target;
      writes.push_back({block, std::nullopt, value});
      return {};
    }));
    return engine_.blocks().write(writes);
  }

  void put(Commit& commit, ByteView key, ByteView value) const {
    const auto changed = with_new_era(key, value);
    if (changed) value = *changed;
    if (!owners_) {
      commit.writes.put(key, value);
      return;
    }
    const auto is_owned = [&](const Bytes& prefix) { return key.starts_with(prefix); };
    if (std::ranges::none_of(prefixes_, is_owned)) return;
    Bytes moved(key.substr(0, 1));
    append_be24(moved, owners_->target.value);
    moved += key.substr(4);
    commit.writes.put(moved, value);
  }

  Engine& engine_;
  const Repository& repository_;
  const std::vector<ChunkFacts> chunks_;
  const std::optional<Owners> owners_;
  std::vector<Bytes> prefixes_;
  JobControl& control_;
};

std::vector<ChunkFacts> chunks_needed(const RestorePlan& plan, const Manifest& manifest) {
  return plan.whole ? manifest.chunks : chunks_in(manifest.chunks, keyspace_intervals(plan.source));
}

const Keyspace* find_source(const Manifest& manifest, KeyspaceId source) {
  const auto found = std::ranges::find(manifest.keyspaces, source, &Keyspace::id);
  return found == manifest.keyspaces.end() ? nullptr : &*found;
}

Result<Keyspace> source_of(const RestorePlan& plan, const Manifest& manifest) {
  const Keyspace* found = find_source(manifest, plan.source);
  if (found == nullptr)
    return Error{Code::not_found,
                 fmt::format("the backup {} has no keyspace {}", plan.backup, plan.source.value),
                 "keyspace_not_found"};
  return *found;
}

// Some of the keys at a time: in a transaction of the keyspace, beside its other work.
Status put_due_entries(const MapHandle& map, KeyspaceId keyspace, std::vector<Bytes>& keys) {
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  TRY(map.transact(Scope::in(keyspace), [&](View& view) {
    for (const Bytes& key : keys) view.put(key, due_entry_value);
    return Status();
  }));
  keys.clear();
  return {};
}

Status index_notes(const MapHandle& map, const Collector& collector, KeyspaceId keyspace) {
  Bytes prefix;
  append_keyspace_prefix(prefix, KeyMode::txn, keyspace);
  prefix.push_back('g');
  const Bytes end = prefix_end(prefix);
  Bytes from = prefix;
  std::vector<Bytes> due;
  const auto visit = [&](ByteView key, ByteView) {
    const auto note = decode<GarbageKey>(key);
    if (!note) return Visit::go_on;
    Bytes entry = collector.due_entry_of(
        keyspace, {.due_ms = note->due_ms, .target = Bytes(note->target), .model = note->model});
    if (due.empty() || due.back() != entry) due.push_back(std::move(entry));
    return Visit::go_on;
  };
  for (;;) {
    TRY_ASSIGN(
        ScanPage page,
        map.engine.scan({.begin = from, .end = end, .entries_max = due_entries_at_once}, visit));
    if (!due.empty()) TRY(put_due_entries(map, keyspace, due));
    if (!page.resume) return {};
    from = std::move(*page.resume);
  }
}

Status remove_records(Engine& engine, KeyspaceId keyspace) {
  const Bytes records = encode(KeyspaceRestoreKey{keyspace, {}});
  Commit commit;
  commit.writes.remove_range(records, prefix_end(records));
  commit.durability = Durability::always;
  return trellis::commit(engine, commit);
}

}  // namespace

Bytes encode_plan(const RestorePlan& plan) {
  stored::Restore message;
  message.set_repository(plan.repository);
  message.set_backup(plan.backup);
  message.set_source(plan.source.value);
  message.set_whole(plan.whole);
  message.set_is_spool(plan.is_spool);
  message.set_bytes_per_second(plan.bytes_per_second);
  message.set_threads(plan.threads);
  message.set_paused(plan.paused);
  message.set_is_published(plan.is_published);
  message.set_job(plan.job);
  message.set_name(plan.name);
  return encode_message(message);
}

Result<RestorePlan> decode_plan(ByteView stored) {
  stored::Restore message;
  TRY(decode_message(stored, message, "record of a restore"));
  return RestorePlan{.repository = message.repository(),
                     .backup = message.backup(),
                     .source = KeyspaceId{message.source()},
                     .whole = message.whole(),
                     .is_spool = message.is_spool(),
                     .bytes_per_second = message.bytes_per_second(),
                     .threads = message.threads(),
                     .paused = message.paused(),
                     .is_published = message.is_published(),
                     .job = message.job(),
                     .name = message.name()};
}

Result<std::vector<std::string>> find_damage(const Repository& repository,
                                             const std::vector<ChunkFacts>& chunks,
                                             unsigned threads, JobControl& control) {
  std::mutex mutex;
  std::vector<std::string> damage;
  control.begin_phase("checking", bytes_of_chunks(chunks));
  TRY(run_in_parallel(threads, chunks.size(), [&](size_t i) -> Status {
    const auto plain = repository.get_chunk(chunks[i]);
    const Status checked = plain ? check_plain(chunks[i], *plain) : Status(plain.error());
    if (!checked) {
      const Code code = checked.error().code;
      if (code != Code::corrupt && code != Code::unsupported && code != Code::too_large)
        return checked;
      const std::lock_guard lock(mutex);
      if (damage.size() < damage_told_max) damage.push_back(checked.error().message);
    }
    return control.pass(chunks[i].bytes);
  }));
  std::ranges::sort(damage);
  return damage;
}

Status check_chunks_of(const Repository& repository, const std::vector<ChunkFacts>& chunks,
                       unsigned threads, JobControl& control) {
  TRY_ASSIGN(const auto damage, find_damage(repository, chunks, threads, control));
  if (damage.empty()) return {};
  return bad_backup(fmt::format("the backup is damaged, and nothing was written: {}{}",
                                damage.front(),
                                damage.size() == 1 ? "" : ", and other chunks too"));
}

Status check_restore(const RestorePlan& plan, JobControl& control) {
  TRY_ASSIGN(const Repository repository, Repository::open(plan.repository));
  TRY_ASSIGN(const Manifest manifest, repository.get_manifest(plan.backup));
  if (!plan.whole) TRY(source_of(plan, manifest));
  return check_chunks_of(repository, chunks_needed(plan, manifest), plan.threads, control);
}

Result<Keyspace> begin_restore(const RestorePlan& plan, const RestoreContext& context,
                               const Caller& caller) {
  TRY_ASSIGN(const Repository repository, Repository::open(plan.repository));
  TRY_ASSIGN(const Manifest manifest, repository.get_manifest(plan.backup));
  TRY_ASSIGN(const Keyspace source, source_of(plan, manifest));
  return context.keyspaces.create({.name = plan.name,
                                   .id = {},
                                   .config = source.config,
                                   .request_id = {},
                                   .quota = source.quota,
                                   .restore_record = encode_plan(plan)},
                                  caller);
}

Status run_restore(KeyspaceId target, const RestoreContext& context, const Caller& caller,
                   JobControl& control) {
  const MapHandle& map = context.keyspaces.map();
  Value record;
  TRY(map.engine.get(encode(KeyspaceRestoreKey{target, {}}), record));
  if (!record.found()) return {};  // it was done before
  TRY_ASSIGN(RestorePlan plan, decode_plan(record.bytes()));
  if (!plan.is_published) {
    TRY_ASSIGN(const Repository repository, Repository::open(plan.repository));
    TRY_ASSIGN(const Manifest manifest, repository.get_manifest(plan.backup));
    TRY_ASSIGN(const Keyspace source, source_of(plan, manifest));
    std::vector<ChunkFacts> chunks = chunks_needed(plan, manifest);
    control.begin_phase("writing", bytes_of_chunks(chunks));
    TRY(control.pass(0));
    ChunkWriter writer(map.engine, repository, std::move(chunks), Owners{plan.source, target},
                       control);
    TRY(writer.run(plan.threads));
    TRY(context.skip_redis_versions(manifest.redis_versions_end));
    TRY(control.step("versions skipped"));
    plan.is_published = true;
    const KeyspaceState state =
        source.state == KeyspaceState::enabled ? KeyspaceState::enabled : KeyspaceState::disabled;
    TRY(context.keyspaces.finish_restore(target, state, encode_plan(plan), caller));
    TRY(control.step("published"));
  }
  control.begin_phase("indexing", 0);
  // The keyspace is there and may be in use: whoever cancels it now comes too late.
  if (const Status passed = control.pass(0); !passed && passed.error().reason != job_canceled)
    return passed;
  TRY(index_notes(map, context.collector, target));
  TRY(control.step("indexed"));
  TRY(remove_records(map.engine, target));
  log_info("keyspace restored", {{"id", target.value}, {"backup", plan.backup}});
  return {};
}

// With the record or not at all: what is left behind by a restore nobody would remove.
Status store_pause(KeyspaceId target, Engine& engine, bool paused) {
  const Bytes record_key = encode(KeyspaceRestoreKey{target, {}});
  const Bytes pause_key = encode(KeyspaceRestoreKey{target, restore_pause_part});
  for (;;) {
    Value record;
    TRY(engine.get(record_key, record));
    if (!record.found()) return Error{Code::conflict, "the restore is done", "job_over"};
    Commit commit;
    commit.expectations.push_back(
        {.begin = record_key, .end = {}, .seen = engine.evidence(record)});
    if (paused)
      commit.writes.put(pause_key, "1");
    else
      commit.writes.remove(pause_key);
    commit.durability = Durability::always;
    const Status stored = trellis::commit(engine, commit);
    if (stored || stored.error().code != Code::conflict) return stored;
  }
}

// The cursors first: without them whoever goes on begins at the beginning, which does no harm.
Status abandon_restore(KeyspaceId target, const RestoreContext& context, const Caller& caller) {
  const Bytes record = encode(KeyspaceRestoreKey{target, {}});
  Commit commit;
  commit.writes.remove_range(successor(record), prefix_end(record));
  TRY(trellis::commit(context.keyspaces.map().engine, commit));
  return context.keyspaces.abandon_restore(target, caller);
}

Status restore_store(const RestorePlan& plan, Engine& engine, JobControl& control) {
  const Bytes record_key = encode(KeyspaceRestoreKey{whole_record, {}});
  Value record;
  TRY(engine.get(record_key, record));
  if (record.found()) {
    TRY_ASSIGN(const RestorePlan begun, decode_plan(record.bytes()));
    if (begun.backup != plan.backup)
      return Error{Code::invalid,
                   fmt::format("a restore of the backup {} was begun there: go on with it, or "
                               "remove that folder",
                               begun.backup),
                   "other_restore"};
  } else {
    TRY(check_restore(plan, control));
    Commit commit;
    commit.writes.put(record_key, encode_plan(plan));
    TRY(trellis::commit(engine, commit));
  }
  TRY_ASSIGN(const Repository repository, Repository::open(plan.repository));
  TRY_ASSIGN(const Manifest manifest, repository.get_manifest(plan.backup));
  control.begin_phase("writing", manifest.bytes());
  ChunkWriter writer(engine, repository, manifest.chunks, std::nullopt, control);
  TRY(writer.run(plan.threads));
  return remove_records(engine, whole_record);
}

Status check_store_is_whole(Engine& engine) {
  Value record;
  TRY(engine.get(encode(KeyspaceRestoreKey{whole_record, {}}), record));
  if (!record.found()) return {};
  return Error{Code::invalid,
               "a backup is being restored into this folder and is not whole: run `trellis backup "
               "restore` to its end"};
}

}  // namespace trellis
