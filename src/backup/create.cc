#include "backup/create.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>
#include <random>

#include "backup.pb.h"
#include "backup/files.h"
#include "backup/stored_chunk.h"
#include "codec/local_keys.h"
#include "codec/meta_keys.h"
#include "codec/store_values.h"
#include "codec/stored_message.h"
#include "codec/system_keys.h"
#include "tenant/tenant.h"

namespace trellis {
namespace {

constexpr size_t job_bytes_max = 1024 * 1024;
constexpr size_t unit_bytes_max = size_t{1} << 30;
constexpr size_t page_bytes = 4 * 1024 * 1024;

struct UnitResult {
  std::vector<ChunkFacts> chunks = {};
  uint64_t added_bytes = 0;
  uint64_t left_out = 0;
};

// Not "unit-": so they were called while units were intervals of keys, and one of these that was
// left must not be taken for ours.
std::filesystem::path unit_path(const std::filesystem::path& folder, size_t unit) {
  return folder / fmt::format("part-{:03}", unit);
}

Result<UnitResult> load_unit(const std::filesystem::path& path) {
  TRY_ASSIGN(const Bytes text, read_whole_file(path, unit_bytes_max));
  stored::BackupUnit message;
  TRY(decode_message(text, message, "unit of a backup"));
  UnitResult result{
      .chunks = {}, .added_bytes = message.added_bytes(), .left_out = message.left_out()};
  for (const auto& chunk : message.chunks()) result.chunks.push_back(load_chunk(chunk));
  return result;
}

Status store_unit(const std::filesystem::path& folder, size_t unit, const UnitResult& result) {
  stored::BackupUnit message;
  for (const ChunkFacts& chunk : result.chunks) store_chunk(chunk, *message.add_chunks());
  message.set_added_bytes(result.added_bytes);
  message.set_left_out(result.left_out);
  TRY(write_whole_file(unit_path(folder, unit), folder, encode_message(message)));
  return sync_folder_of_files(folder);
}

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
  const Engine* on_disk_with;  // null: the repository is on another disk than the store
  const std::vector<Interval>& scope;
  JobControl& control;
};

Status write_chunks(const Walk& walk, std::vector<EntryChunk>& chunks, UnitResult& result) {
  for (EntryChunk& chunk : chunks) {
    if (walk.on_disk_with != nullptr) TRY(walk.on_disk_with->room());
    TRY_ASSIGN(const uint64_t added, walk.repository.put_chunk(chunk));
    TRY(walk.control.step("chunk written"));
    result.added_bytes += added;
    result.chunks.push_back(std::move(chunk.facts));
  }
  chunks.clear();
  return {};
}

Status walk_unit(const Walk& walk, const Interval& unit, size_t number) {
  std::error_code failed;
  if (std::filesystem::exists(unit_path(walk.folder, number), failed)) {
    // Done before an interruption.
    TRY_ASSIGN(const UnitResult before, load_unit(unit_path(walk.folder, number)));
    uint64_t bytes = 0;
    for (const ChunkFacts& chunk : before.chunks) bytes += chunk.bytes;
    walk.control.skip(bytes);
    return {};
  }
  UnitWalk entries(walk.copy, walk.scope, unit);
  UnitResult result;
  std::vector<EntryChunk> chunks;
  while (!entries.done()) {
    TRY_ASSIGN(const uint64_t bytes, entries.next(page_bytes, chunks));
    TRY(write_chunks(walk, chunks, result));
    TRY(walk.control.pass(bytes));
  }
  result.left_out = entries.left_out();
  TRY(walk.repository.sync_chunks());
  TRY(walk.control.step("unit walked"));
  TRY(store_unit(walk.folder, number, result));
  return walk.control.step("unit stored");
}

// Those of the last backup of the same, or else of the last of everything in the store.
Result<std::vector<Bytes>> bounds_before(const Repository& repository, const CreatePlan& plan,
                                         const Manifest& now) {
  std::optional<std::vector<Bytes>> of_everything;
  TRY_ASSIGN(const std::vector<std::string> ids, repository.ids());
  for (size_t i = ids.size(); i-- > 0;) {
    auto before = repository.get_manifest(ids[i]);
    if (!before || before->store != now.store) continue;  // nothing depends on it
    const bool is_same =
        plan.whole ? before->whole : !before->whole && before->keyspaces[0].id == plan.keyspace;
    if (is_same) return std::move(before->unit_bounds);
    if (before->whole && !of_everything) of_everything = std::move(before->unit_bounds);
  }
  return std::move(of_everything).value_or(std::vector<Bytes>());
}

// Stored before they are walked: whoever goes on has the same.
Result<Units> make_units(const std::filesystem::path& folder, Engine& copy,
                         const Repository& repository, const CreatePlan& plan,
                         const Manifest& manifest, UnitsRequest request) {
  const std::filesystem::path path = folder / "units";
  stored::BackupUnits message;
  std::error_code failed;
  if (std::filesystem::exists(path, failed)) {
    TRY_ASSIGN(const Bytes text, read_whole_file(path, unit_bytes_max));
    TRY(decode_message(text, message, "units of a backup"));
    return Units{.bounds = {message.bounds().begin(), message.bounds().end()},
                 .warning = message.warning()};
  }
  if (request.bytes >= request.unit_bytes) {
    TRY_ASSIGN(request.bounds_before, bounds_before(repository, plan, manifest));
  }
  TRY_ASSIGN(Units units, cut_units(copy, std::move(request)));
  for (const Bytes& bound : units.bounds) message.add_bounds(bound);
  message.set_warning(units.warning);
  TRY(write_whole_file(path, folder, encode_message(message)));
  TRY(sync_folder_of_files(folder));
  return units;
}

// What the units gave, which are all done.
Result<Created> gather(const std::filesystem::path& folder, Manifest manifest, const Units& units) {
  Created created{.manifest = std::move(manifest)};
  if (!units.warning.empty()) created.warnings.push_back(units.warning);
  uint64_t left_out = 0;
  for (size_t i = 0; i < units.size(); i++) {
    TRY_ASSIGN(UnitResult result, load_unit(unit_path(folder, i)));
    created.manifest.added_bytes += result.added_bytes;
    left_out += result.left_out;
    for (ChunkFacts& chunk : result.chunks) created.manifest.chunks.push_back(std::move(chunk));
  }
  std::ranges::sort(created.manifest.chunks, {}, &ChunkFacts::first_key);
  created.manifest.unit_bounds = units.bounds;
  if (left_out > 0) created.warnings.emplace_back(left_out_warning);
  return created;
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

std::vector<Interval> scope_of(const CreatePlan& plan) {
  if (!plan.whole) return keyspace_intervals(plan.keyspace);
  // All but what a store says of itself.
  const Bytes own = "\x01s";
  return {{"", own}, {prefix_end(own), Bytes(map_key_max)}};
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

Result<Created> run_create(const CreatePlan& plan, const CreateContext& context,
                           JobControl& control) {
  const std::filesystem::path folder = context.work / plan.id;
  TRY_ASSIGN(Repository repository, Repository::open_or_make(plan.repository));
  if (auto made = repository.get_manifest(plan.id); made)  // all but the clearing up
    return Created{.manifest = std::move(*made)};
  control.begin_phase("copying", 0);
  TRY(control.pass(0));
  TRY(take_copy(context, folder / "store"));
  TRY(control.step("copied"));
  TRY_ASSIGN(const std::unique_ptr<Engine> copy, context.open_copy(folder / "store"));
  TRY_ASSIGN(Manifest manifest, describe_backup(*copy, plan));
  TRY_ASSIGN(const uint64_t bytes, bytes_of(*copy, manifest.keyspaces));
  const std::vector<Interval> scope = scope_of(plan);
  TRY_ASSIGN(const Units units,
             make_units(folder, *copy, repository, plan, manifest,
                        {.scope = scope, .bytes = bytes, .unit_bytes = context.unit_bytes}));
  TRY(control.step("units stored"));
  control.begin_phase("reading", bytes);
  const Walk walk{
      .folder = folder,
      .copy = *copy,
      .repository = repository,
      .on_disk_with = on_one_disk(folder, repository.path()) ? &context.engine : nullptr,
      .scope = scope,
      .control = control};
  TRY(run_in_parallel(plan.threads, units.size(),
                      [&](size_t i) { return walk_unit(walk, units.unit(i), i); }));
  TRY_ASSIGN(Created created, gather(folder, std::move(manifest), units));
  TRY(control.step("units gathered"));
  TRY(repository.put_manifest(created.manifest));
  TRY(control.step("manifest written"));
  return created;
}

}  // namespace trellis
