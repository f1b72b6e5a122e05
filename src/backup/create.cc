#include "backup/create.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <random>

#include "backup.pb.h"
#include "backup/files.h"
#include "backup/sense.h"
#include "backup/stored_chunk.h"
#include "codec/local_keys.h"
#include "codec/store_values.h"
#include "codec/stored_message.h"
#include "codec/system_keys.h"
#include "tenant/tenant.h"

namespace trellis {
namespace {

constexpr size_t job_bytes_max = 1024 * 1024;
constexpr size_t unit_bytes_max = size_t{1} << 30;
constexpr size_t units_max = 64;
constexpr uint64_t unit_target_bytes = 64 * 1024 * 1024;
constexpr size_t page_bytes = 4 * 1024 * 1024;

struct UnitResult {
  std::vector<ChunkFacts> chunks = {};
  uint64_t added_bytes = 0;
};

std::filesystem::path unit_path(const std::filesystem::path& folder, size_t unit) {
  return folder / fmt::format("unit-{:03}", unit);
}

Result<UnitResult> load_unit(const std::filesystem::path& path) {
  TRY_ASSIGN(const Bytes text, read_whole_file(path, unit_bytes_max));
  stored::BackupUnit message;
  TRY(decode_message(text, message, "unit of a backup"));
  UnitResult result{.chunks = {}, .added_bytes = message.added_bytes()};
  for (const auto& chunk : message.chunks()) result.chunks.push_back(load_chunk(chunk));
  return result;
}

Status store_unit(const std::filesystem::path& folder, size_t unit, const UnitResult& result) {
  stored::BackupUnit message;
  for (const ChunkFacts& chunk : result.chunks) store_chunk(chunk, *message.add_chunks());
  message.set_added_bytes(result.added_bytes);
  TRY(write_whole_file(unit_path(folder, unit), folder, encode_message(message)));
  return sync_folder_of_files(folder);
}

// Reads one unit, page by page, and writes its chunks.
class UnitWalk {
 public:
  // `on_disk_with` may be null: the store whose disk the repository shares.
  UnitWalk(Engine& copy, Repository& repository, const Engine* on_disk_with, JobControl& control)
      : copy_(copy), repository_(repository), on_disk_with_(on_disk_with), control_(control) {}

  Result<UnitResult> run(const KeyInterval& unit) {
    Bytes from = unit.first;
    for (;;) {
      uint64_t bytes = 0;
      const auto visit = [&](ByteView key, ByteView value) {
        bytes += key.size() + value.size();
        if (filter_.takes(key, value) && cutter_.add(key, value)) cut_.push_back(cutter_.take());
        return Visit::go_on;
      };
      TRY_ASSIGN(ScanPage page,
                 copy_.scan({.begin = from, .end = unit.second, .bytes_max = page_bytes}, visit));
      if (!page.resume && !cutter_.empty()) cut_.push_back(cutter_.take());
      TRY(write_chunks());
      TRY(control_.pass(bytes));
      if (!page.resume) break;
      from = std::move(*page.resume);
    }
    TRY(repository_.sync_chunks());
    filter_.tell();
    return std::move(result_);
  }

 private:
  Status write_chunks() {
    for (EntryChunk& chunk : cut_) {
      if (on_disk_with_ != nullptr) TRY(on_disk_with_->room());
      TRY_ASSIGN(const uint64_t added, repository_.put_chunk(chunk));
      TRY(control_.step("chunk written"));
      result_.added_bytes += added;
      result_.chunks.push_back(std::move(chunk.facts));
    }
    cut_.clear();
    return {};
  }

  Engine& copy_;
  Repository& repository_;
  const Engine* const on_disk_with_;
  JobControl& control_;
  SenseFilter filter_;
  ChunkCutter cutter_;
  std::vector<EntryChunk> cut_;
  UnitResult result_;
};

Result<Keyspace> load_keyspace(Engine& copy, KeyspaceId id) {
  Value value;
  TRY(copy.get(encode(KeyspaceMetaKey{id}), value));
  if (!value.found())
    return Error{Code::not_found, fmt::format("keyspace {} does not exist", id.value),
                 "keyspace_not_found"};
  return decode_keyspace(value.bytes());
}

Result<std::vector<Keyspace>> load_keyspaces(Engine& copy) {
  std::vector<Keyspace> keyspaces;
  Status bad;
  Bytes from = encode(KeyspaceMetaKey{KeyspaceId{0}});
  const Bytes end = successor(encode(KeyspaceMetaKey{KeyspaceId{keyspace_id_max}}));
  const auto visit = [&](ByteView, ByteView value) {
    auto keyspace = decode_keyspace(value);
    if (!keyspace) bad = std::move(keyspace).error();
    if (keyspace && keyspace->state != KeyspaceState::tombstone)
      keyspaces.push_back(std::move(*keyspace));
    return bad ? Visit::go_on : Visit::stop;
  };
  for (;;) {
    TRY_ASSIGN(ScanPage page, copy.scan({.begin = from, .end = end}, visit));
    TRY(bad);
    if (!page.resume) return keyspaces;
    from = std::move(*page.resume);
  }
}

Result<uint64_t> bytes_of(Engine& copy, const std::vector<Keyspace>& keyspaces) {
  uint64_t bytes = 0;
  for (const Keyspace& keyspace : keyspaces) {
    TRY_ASSIGN(const Figures figures, stored_figures(copy, keyspace.id));
    bytes += static_cast<uint64_t>(std::max<int64_t>(figures.bytes, 0));
  }
  return bytes;
}

// What walks of units share.
struct Walk {
  const std::filesystem::path& folder;
  Engine& copy;
  Repository& repository;
  const Engine* on_disk_with;
  JobControl& control;
};

Status walk_unit(const Walk& walk, const KeyInterval& unit, size_t number) {
  std::error_code failed;
  if (std::filesystem::exists(unit_path(walk.folder, number), failed)) {
    // Done before an interruption.
    TRY_ASSIGN(const UnitResult before, load_unit(unit_path(walk.folder, number)));
    uint64_t bytes = 0;
    for (const ChunkFacts& chunk : before.chunks) bytes += chunk.bytes;
    walk.control.skip(bytes);
    return {};
  }
  UnitWalk unit_walk(walk.copy, walk.repository, walk.on_disk_with, walk.control);
  TRY_ASSIGN(const UnitResult result, unit_walk.run(unit));
  TRY(walk.control.step("unit walked"));
  TRY(store_unit(walk.folder, number, result));
  return walk.control.step("unit stored");
}

Status take_copy(const CreateContext& context, const std::filesystem::path& copy) {
  std::error_code failed;
  if (std::filesystem::exists(copy, failed)) return {};
  return context.engine.checkpoint(copy);
}

}  // namespace

std::string make_backup_id(uint64_t unix_ms) {
  std::random_device random;
  const auto seconds = static_cast<std::time_t>(unix_ms / 1'000);
  return fmt::format("{:%Y%m%dT%H%M%S}-{:03}-{:04x}", fmt::gmtime(seconds), unix_ms % 1'000,
                     random() & 0xffffU);
}

bool is_made_backup_id(std::string_view text) {
  constexpr std::string_view form = "00000000T000000-000-xxxx";
  const auto fits = [](char c, char wanted) {
    const bool is_digit = c >= '0' && c <= '9';
    if (wanted == '0') return is_digit;
    if (wanted == 'x') return is_digit || (c >= 'a' && c <= 'f');
    return c == wanted;
  };
  return std::ranges::equal(text, form, fits);
}

Result<CreatePlan> load_plan(const std::filesystem::path& work, std::string_view id) {
  TRY_ASSIGN(const Bytes text, read_whole_file(work / id / "job", job_bytes_max));
  stored::BackupJob message;
  TRY(decode_message(text, message, "job of a backup"));
  return CreatePlan{.id = message.id(),
                    .repository = message.repository(),
                    .whole = message.whole(),
                    .keyspace = KeyspaceId{message.keyspace()},
                    .bytes_per_second = message.bytes_per_second(),
                    .threads = message.threads(),
                    .paused = message.paused(),
                    .created_ms = message.created_ms()};
}

Status store_plan(const std::filesystem::path& work, const CreatePlan& plan) {
  stored::BackupJob message;
  message.set_id(plan.id);
  message.set_repository(plan.repository);
  message.set_whole(plan.whole);
  message.set_keyspace(plan.keyspace.value);
  message.set_bytes_per_second(plan.bytes_per_second);
  message.set_threads(plan.threads);
  message.set_paused(plan.paused);
  message.set_created_ms(plan.created_ms);
  const std::filesystem::path folder = work / plan.id;
  TRY(make_folders(folder));
  TRY(write_whole_file(folder / "job", folder, encode_message(message)));
  return sync_folder_of_files(folder);
}

std::vector<KeyInterval> intervals_of(const CreatePlan& plan) {
  if (!plan.whole) return keyspace_intervals(plan.keyspace);
  // All but what a store says of itself.
  const Bytes own = "\x01s";
  return {{"", own}, {prefix_end(own), ""}};
}

Result<Manifest> describe_backup(Engine& copy, const CreatePlan& plan) {
  Manifest manifest{.id = plan.id, .created_ms = plan.created_ms, .store = {}, .whole = plan.whole};
  Value value;
  TRY(copy.get(encode(StoreKey{StoreKey::ident}), value));
  if (!value.found()) return Error{Code::corrupt, "the store has no identity"};
  TRY_ASSIGN(const StoreIdentity identity, decode<StoreIdentity>(value.bytes()));
  manifest.store.assign(identity.uuid.begin(), identity.uuid.end());
  TRY(copy.get(encode(SystemKey{SystemKey::redis_version_generator}), value));
  if (value.found()) {
    const ByteView text = value.bytes();
    std::from_chars(text.data(), text.data() + text.size(), manifest.redis_versions_end);
  }
  if (plan.whole) {
    TRY_ASSIGN(manifest.keyspaces, load_keyspaces(copy));
  } else {
    TRY_ASSIGN(Keyspace keyspace, load_keyspace(copy, plan.keyspace));
    if (keyspace.state == KeyspaceState::tombstone)
      return Error{Code::not_found, fmt::format("keyspace {} is gone", quote(keyspace.name)),
                   "keyspace_gone"};
    manifest.keyspaces.push_back(std::move(keyspace));
  }
  return manifest;
}

Result<Manifest> run_create(const CreatePlan& plan, const CreateContext& context,
                            JobControl& control) {
  const std::filesystem::path folder = context.work / plan.id;
  TRY_ASSIGN(Repository repository, Repository::open_or_make(plan.repository));
  if (auto made = repository.get_manifest(plan.id); made) return made;  // all but the clearing up
  control.begin_phase("copying", 0);
  TRY(control.pass(0));
  TRY(take_copy(context, folder / "store"));
  TRY(control.step("copied"));
  TRY_ASSIGN(const std::unique_ptr<Engine> copy, context.open_copy(folder / "store"));
  TRY_ASSIGN(Manifest manifest, describe_backup(*copy, plan));
  TRY_ASSIGN(const uint64_t bytes, bytes_of(*copy, manifest.keyspaces));
  const size_t count = std::min<size_t>(bytes / unit_target_bytes, units_max);
  TRY_ASSIGN(const auto units, cut_units(*copy, intervals_of(plan), count));
  control.begin_phase("reading", bytes);
  const Walk walk{
      .folder = folder,
      .copy = *copy,
      .repository = repository,
      .on_disk_with = on_one_disk(folder, repository.path()) ? &context.engine : nullptr,
      .control = control};
  TRY(run_in_parallel(plan.threads, units.size(),
                      [&](size_t i) { return walk_unit(walk, units[i], i); }));
  for (size_t i = 0; i < units.size(); i++) {
    TRY_ASSIGN(UnitResult result, load_unit(unit_path(folder, i)));
    manifest.added_bytes += result.added_bytes;
    for (ChunkFacts& chunk : result.chunks) manifest.chunks.push_back(std::move(chunk));
  }
  TRY(control.step("units gathered"));
  TRY(repository.put_manifest(manifest));
  TRY(control.step("manifest written"));
  return manifest;
}

}  // namespace trellis
