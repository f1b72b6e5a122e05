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
#include "codec/fs_keys.h"
#include "codec/fs_values.h"
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

// About, as the counters say, and the figures of file systems.
struct BytesInCopy {
  uint64_t of_map = 0;
  uint64_t of_blocks = 0;

  uint64_t sum() const { return of_map + of_blocks; }
};

// What a file system says of the content that is below its root and in its trash.
Result<uint64_t> block_bytes_of(Engine& copy, KeyspaceId keyspace) {
  int64_t bytes = 0;
  for (const InodeId top : {InodeId{1}, InodeId{2}}) {
    const auto add = [&](ByteView, ByteView value) {
      if (const auto figures = decode<FsFigures>(value)) bytes += figures->space;
      return Visit::go_on;
    };
    TRY(copy.scan({.begin = encode(FsFiguresKey{keyspace, top, 0}),
                   .end = successor(encode(FsFiguresKey{keyspace, top, UINT8_MAX}))},
                  add));
  }
  return static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
}

Result<BytesInCopy> bytes_of(Engine& copy, const std::vector<Keyspace>& keyspaces) {
  BytesInCopy bytes;
  for (const Keyspace& keyspace : keyspaces) {
    TRY_ASSIGN(const Figures figures, stored_figures(copy, keyspace.id));
    const auto all = static_cast<uint64_t>(std::max<int64_t>(figures.bytes, 0));
    uint64_t of_blocks = 0;
    if (all >= block_bytes_max) {
      TRY_ASSIGN(of_blocks, block_bytes_of(copy, keyspace.id));
    }
    of_blocks = std::min(of_blocks, all);
    bytes.of_blocks += of_blocks;
    bytes.of_map += all - of_blocks;
  }
  return bytes;
}

struct AllUnits {
  Units of_map;
  BlockUnits of_blocks;

  size_t size() const { return of_map.size() + of_blocks.size(); }
};

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

// Entries is a UnitWalk or a BlockWalk.
template <class Entries>
Status walk_entries(const Walk& walk, Entries& entries, UnitResult& result) {
  std::vector<EntryChunk> chunks;
  while (!entries.done()) {
    TRY_ASSIGN(const uint64_t bytes, entries.next(page_bytes, chunks));
    TRY(write_chunks(walk, chunks, result));
    TRY(walk.control.pass(bytes));
  }
  return {};
}

Status walk_unit(const Walk& walk, const AllUnits& units, size_t number) {
  std::error_code failed;
  if (std::filesystem::exists(unit_path(walk.folder, number), failed)) {
    // Done before an interruption.
    TRY_ASSIGN(const UnitResult before, load_unit(unit_path(walk.folder, number)));
    uint64_t bytes = 0;
    for (const ChunkFacts& chunk : before.chunks) bytes += chunk.bytes;
    walk.control.skip(bytes);
    return {};
  }
  UnitResult result;
  if (number < units.of_map.size()) {
    UnitWalk entries(walk.copy, walk.scope, units.of_map.unit(number));
    TRY(walk_entries(walk, entries, result));
    result.left_out = entries.left_out();
  } else {
    BlockWalk entries(walk.copy.blocks(), units.of_blocks.unit(number - units.of_map.size()));
    TRY(walk_entries(walk, entries, result));
  }
  TRY(walk.repository.sync_chunks());
  TRY(walk.control.step("unit walked"));
  TRY(store_unit(walk.folder, number, result));
  return walk.control.step("unit stored");
}

// The last backup of the same, or else the last of everything in the store: its units are as good
// now. Absent: there is none.
Result<std::optional<Manifest>> backup_before(const Repository& repository, const CreatePlan& plan,
                                              const Manifest& now) {
  std::optional<Manifest> of_everything;
  TRY_ASSIGN(const std::vector<std::string> ids, repository.ids());
  for (size_t i = ids.size(); i-- > 0;) {
    auto before = repository.get_manifest(ids[i]);
    if (!before || before->store != now.store) continue;  // nothing depends on it
    const bool is_same =
        plan.whole ? before->whole : !before->whole && before->keyspaces[0].id == plan.keyspace;
    if (is_same) return std::optional(std::move(*before));
    if (before->whole && !of_everything) of_everything = std::move(*before);
  }
  return of_everything;
}

// Stored before they are walked: whoever goes on has the same.
Result<AllUnits> make_units(const std::filesystem::path& folder, Engine& copy,
                            const Repository& repository, const CreatePlan& plan,
                            const Manifest& manifest, const BytesInCopy& bytes,
                            uint64_t unit_bytes) {
  const std::filesystem::path path = folder / "units";
  stored::BackupUnits message;
  std::error_code failed;
  if (std::filesystem::exists(path, failed)) {
    TRY_ASSIGN(const Bytes text, read_whole_file(path, unit_bytes_max));
    TRY(decode_message(text, message, "units of a backup"));
    return AllUnits{
        .of_map = {.bounds = {message.bounds().begin(), message.bounds().end()},
                   .warning = message.warning()},
        .of_blocks = {.scope = block_scope_of(plan),
                      .bounds = {message.block_bounds().begin(), message.block_bounds().end()}}};
  }
  std::optional<Manifest> before;
  if (bytes.sum() >= unit_bytes) {
    TRY_ASSIGN(before, backup_before(repository, plan, manifest));
  }
  if (!before) before.emplace();
  AllUnits units;
  TRY_ASSIGN(units.of_map, cut_units(copy, {.scope = scope_of(plan),
                                            .bytes = bytes.of_map,
                                            .unit_bytes = unit_bytes,
                                            .bounds_before = std::move(before->unit_bounds)}));
  TRY_ASSIGN(units.of_blocks, cut_block_units(copy.blocks(), block_scope_of(plan),
                                              units_wanted(bytes.of_blocks, unit_bytes),
                                              std::move(before->block_bounds)));
  for (const Bytes& bound : units.of_map.bounds) message.add_bounds(bound);
  for (const Bytes& bound : units.of_blocks.bounds) message.add_block_bounds(bound);
  message.set_warning(units.of_map.warning);
  TRY(write_whole_file(path, folder, encode_message(message)));
  TRY(sync_folder_of_files(folder));
  return units;
}

// What the units gave, which are all done.
Result<Created> gather(const std::filesystem::path& folder, Manifest manifest,
                       const AllUnits& units) {
  Created created{.manifest = std::move(manifest)};
  if (!units.of_map.warning.empty()) created.warnings.push_back(units.of_map.warning);
  uint64_t left_out = 0;
  for (size_t i = 0; i < units.size(); i++) {
    TRY_ASSIGN(UnitResult result, load_unit(unit_path(folder, i)));
    created.manifest.added_bytes += result.added_bytes;
    left_out += result.left_out;
    for (ChunkFacts& chunk : result.chunks) created.manifest.chunks.push_back(std::move(chunk));
  }
  std::ranges::sort(created.manifest.chunks, {}, place_of);
  created.manifest.unit_bounds = units.of_map.bounds;
  created.manifest.block_bounds = units.of_blocks.bounds;
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

BlockInterval block_scope_of(const CreatePlan& plan) {
  if (!plan.whole) return {blocks_begin(plan.keyspace), blocks_end(plan.keyspace)};
  return {blocks_begin(KeyspaceId{0}), blocks_end(KeyspaceId{keyspace_id_max})};
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
  TRY_ASSIGN(const BytesInCopy bytes, bytes_of(*copy, manifest.keyspaces));
  const std::vector<Interval> scope = scope_of(plan);
  TRY_ASSIGN(const AllUnits units,
             make_units(folder, *copy, repository, plan, manifest, bytes, context.unit_bytes));
  TRY(control.step("units stored"));
  control.begin_phase("reading", bytes.sum());
  const Walk walk{
      .folder = folder,
      .copy = *copy,
      .repository = repository,
      .on_disk_with = on_one_disk(folder, repository.path()) ? &context.engine : nullptr,
      .scope = scope,
      .control = control};
  TRY(run_in_parallel(plan.threads, units.size(),
                      [&](size_t i) { return walk_unit(walk, units, i); }));
  TRY_ASSIGN(Created created, gather(folder, std::move(manifest), units));
  TRY(control.step("units gathered"));
  TRY(repository.put_manifest(created.manifest));
  TRY(control.step("manifest written"));
  return created;
}

}  // namespace trellis
