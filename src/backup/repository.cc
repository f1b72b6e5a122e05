#include "backup/repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>

#include "backup/files.h"

namespace trellis {
namespace {

constexpr std::string_view repository_marker = "TRELLIS-BACKUPS";
constexpr unsigned repository_format = 1;
constexpr std::string_view manifest_ending = ".backup";
constexpr size_t manifest_bytes_max = size_t{1} << 31;
constexpr size_t chunk_file_bytes_max = chunk_plain_bytes_max + 1024;
constexpr size_t marker_bytes_max = 1024;

Status check_absolute(const std::filesystem::path& path) {
  if (path.is_absolute() && path.native().find('\0') == std::string::npos) return {};
  return Error{Code::invalid, fmt::format("{} is no absolute path", quote(path.native())),
               "bad_repository"};
}

// Of jobs that were killed: no draft takes as long.
void remove_old_drafts(const std::filesystem::path& drafts) {
  constexpr auto old_after = std::chrono::hours(24);
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(drafts, failed)) {
    const auto written = entry.last_write_time(failed);
    if (!failed && std::filesystem::file_time_type::clock::now() - written > old_after)
      std::filesystem::remove(entry.path(), failed);
  }
}

}  // namespace

std::filesystem::path Repository::chunk_path(ByteView digest) const {
  const std::string name = to_hex(digest);
  return path_ / "chunks" / name.substr(0, 2) / name;
}

std::filesystem::path Repository::manifest_path(std::string_view id) const {
  return path_ / "backups" / fmt::format("{}{}", id, manifest_ending);
}

Status Repository::check_format() const {
  auto text = read_whole_file(path_ / repository_marker, marker_bytes_max);
  if (!text && text.error().code == Code::not_found)
    return Error{Code::not_found,
                 fmt::format("there are no backups of trellis in {}: give the folder that they "
                             "were made in",
                             path_.string()),
                 "no_repository"};
  if (!text) return std::move(text).error();
  unsigned format = 0;
  constexpr std::string_view word = "format ";
  if (text->starts_with(word))
    std::from_chars(text->data() + word.size(), text->data() + text->size(), format);
  if (format == repository_format) return {};
  if (format > repository_format)
    return Error{Code::unsupported,
                 fmt::format("the backups in {} are of format {}, newer than this build's {}: use "
                             "a newer trellis",
                             path_.string(), format, repository_format),
                 "backup_too_new"};
  return Error{
      Code::corrupt,
      fmt::format("{} does not say which format it is", (path_ / repository_marker).string()),
      "backup_damaged"};
}

Result<Repository> Repository::open(const std::filesystem::path& path) {
  TRY(check_absolute(path));
  Repository repository(path.lexically_normal());
  TRY(repository.check_format());
  return repository;
}

Result<Repository> Repository::open_or_make(const std::filesystem::path& path) {
  TRY(check_absolute(path));
  auto opened = open(path);
  if (opened) {
    TRY(make_folders(opened->drafts()));  // a copy may have lost it: it is empty
    remove_old_drafts(opened->drafts());
  }
  if (opened || opened.error().reason != "no_repository") return opened;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(path, failed)) {
    const std::string name = entry.path().filename();
    // What an interrupted making of one leaves.
    if (name == "chunks" || name == "backups" || name == "drafts" || name == "lost+found") continue;
    return Error{Code::invalid,
                 fmt::format("{} holds other things ({}): give a new or an empty folder",
                             path.string(), name),
                 "bad_repository"};
  }
  Repository repository(path.lexically_normal());
  for (const char* folder : {"chunks", "backups", "drafts"})
    TRY(make_folders(repository.path_ / folder));
  TRY(write_whole_file(repository.path_ / repository_marker, repository.drafts(),
                       fmt::format("format {}\n", repository_format)));
  TRY(sync_folder_of_files(repository.path_));
  return repository;
}

Result<uint64_t> Repository::put_chunk(const EntryChunk& chunk) {
  std::error_code failed;
  if (std::filesystem::exists(chunk_path(chunk.facts.digest), failed)) {
    // Whoever wrote it may have been killed before its name was durable.
    unsynced_[static_cast<unsigned char>(chunk.facts.digest[0])] = true;
    return 0;
  }
  const Bytes file = encode_chunk_file(chunk.plain);
  TRY(put_chunk_file(chunk.facts.digest, file));
  return file.size();
}

Status Repository::put_chunk_file(ByteView digest, ByteView file) {
  const std::filesystem::path path = chunk_path(digest);
  TRY(make_folders(path.parent_path()));
  TRY(write_whole_file(path, drafts(), file));
  unsynced_[static_cast<unsigned char>(digest[0])] = true;
  return {};
}

Status Repository::sync_chunks() {
  // What another thread is about to sync is not yet durable: it is waited for.
  const std::lock_guard lock(syncing_);
  for (size_t i = 0; i < unsynced_.size(); i++) {
    if (!unsynced_[i].exchange(false)) continue;
    Status synced = sync_folder_of_files(path_ / "chunks" / to_hex(Bytes(1, static_cast<char>(i))));
    if (synced) continue;
    unsynced_[i] = true;
    return synced;
  }
  return {};
}

Result<Bytes> Repository::get_chunk(const ChunkFacts& facts) const {
  const std::filesystem::path path = chunk_path(facts.digest);
  auto file = read_whole_file(path, chunk_file_bytes_max);
  if (!file && file.error().code == Code::not_found)
    return Error{Code::corrupt, fmt::format("the chunk {} is missing", path.string()),
                 "backup_damaged"};
  if (!file) return std::move(file).error();
  auto plain = decode_chunk_file(*file, facts.digest);
  if (!plain) return with_context(path.string(), std::move(plain).error());
  if (plain->size() != facts.bytes)
    return Error{Code::corrupt,
                 fmt::format("{}: the chunk has not the size that the backup says", path.string()),
                 "backup_damaged"};
  return plain;
}

Status Repository::put_manifest(const Manifest& manifest) {
  const std::filesystem::path path = manifest_path(manifest.id);
  TRY(write_whole_file(path, drafts(), encode_manifest(manifest)));
  return sync_folder_of_files(path.parent_path());
}

Result<Manifest> Repository::get_manifest(std::string_view id) const {
  if (!is_backup_id(id))
    return Error{Code::invalid, fmt::format("{} is no id of a backup", quote(id)), "bad_backup_id"};
  const std::filesystem::path path = manifest_path(id);
  auto file = read_whole_file(path, manifest_bytes_max);
  if (!file && file.error().code == Code::not_found)
    return Error{Code::not_found,
                 fmt::format("there is no backup {} in {}: `trellis backup list` shows those that "
                             "are",
                             id, path_.string()),
                 "backup_not_found"};
  if (!file) return std::move(file).error();
  auto manifest = decode_manifest(*file);
  if (!manifest) return with_context(path.string(), std::move(manifest).error());
  if (manifest->id != id)
    return Error{Code::corrupt, fmt::format("{} says that it is {}", path.string(), manifest->id),
                 "backup_damaged"};
  return manifest;
}

Result<std::vector<std::string>> Repository::ids() const {
  std::vector<std::string> ids;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(path_ / "backups", failed)) {
    std::string name = entry.path().filename();
    if (!name.ends_with(manifest_ending)) continue;
    name.resize(name.size() - manifest_ending.size());
    if (is_backup_id(name)) ids.push_back(std::move(name));
  }
  if (failed)
    return Error{Code::unavailable, fmt::format("{}: {}", path_.string(), failed.message()),
                 "backup_files"};
  std::ranges::sort(ids);
  return ids;
}

Result<Manifest> Repository::find(std::string_view id,
                                  FunctionRef<bool(const Manifest&)> fits) const {
  if (!id.empty()) return get_manifest(id);
  TRY_ASSIGN(const std::vector<std::string> all, ids());
  if (all.empty())
    return Error{Code::not_found, fmt::format("there is no backup in {} yet", path_.string()),
                 "backup_not_found"};
  for (size_t i = all.size(); i-- > 0;) {
    // Of one that cannot be read nobody knows whether it is the one that is meant.
    TRY_ASSIGN(Manifest manifest, get_manifest(all[i]));
    if (fits(manifest)) return manifest;
  }
  return get_manifest(all.back());
}

Result<uint64_t> Repository::remove(std::string_view id) {
  // One that is damaged is of no use, and keeps the others from being deleted.
  if (const auto there = get_manifest(id); !there && there.error().code != Code::corrupt)
    return there.error();
  std::set<std::string> kept;
  TRY_ASSIGN(const std::vector<std::string> all, ids());
  for (const std::string& other : all) {
    if (other == id) continue;
    // Of one that cannot be read nobody knows what it needs.
    TRY_ASSIGN(const Manifest manifest, get_manifest(other));
    for (const ChunkFacts& chunk : manifest.chunks) kept.insert(to_hex(chunk.digest));
  }
  std::error_code failed;
  std::filesystem::remove(manifest_path(id), failed);
  if (failed)  // and its chunks stay
    return Error{Code::unavailable,
                 fmt::format("{}: {}", manifest_path(id).string(), failed.message()),
                 "backup_files"};
  TRY(sync_folder_of_files(path_ / "backups"));
  uint64_t freed = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(path_ / "chunks", failed)) {
    if (!entry.is_regular_file(failed) || kept.contains(entry.path().filename())) continue;
    const uint64_t bytes = entry.file_size(failed);
    if (!failed && std::filesystem::remove(entry.path(), failed)) freed += bytes;
  }
  return freed;
}

}  // namespace trellis
