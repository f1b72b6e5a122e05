#include "backup/manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "backup.pb.h"
#include "backup/stored_chunk.h"
#include "codec/stored_message.h"
#include "tenant/sha256.h"

namespace trellis {
namespace {

constexpr ByteView manifest_magic = "TRLBKUP";
constexpr char format_without_blocks = 1;
constexpr char manifest_format = 2;
constexpr size_t manifest_header_bytes = 7 + 1 + chunk_digest_bytes;
constexpr size_t backup_id_bytes_max = 64;
constexpr size_t store_uuid_bytes = 16;
// Versions are unix microseconds << 11: what is beyond is no time, and would use them up.
constexpr uint64_t redis_versions_max = uint64_t{1} << 63;

Error bad_manifest(std::string_view why) {
  return {Code::corrupt, fmt::format("the backup is damaged: {}", why), "backup_damaged"};
}

Status check_chunks(const std::vector<ChunkFacts>& chunks) {
  std::pair<bool, ByteView> before;
  for (const ChunkFacts& chunk : chunks) {
    if (chunk.digest.size() != chunk_digest_bytes || chunk.bytes > chunk_plain_bytes_max ||
        chunk.bytes == 0 || chunk.entries == 0 || chunk.first_key.size() > key_bytes_max)
      return bad_manifest("a chunk of it makes no sense");
    if (place_of(chunk) <= before) return bad_manifest("its chunks are not in order");
    before = place_of(chunk);
  }
  return {};
}

}  // namespace

uint64_t Manifest::entries() const {
  uint64_t sum = 0;
  for (const ChunkFacts& chunk : chunks) sum += chunk.entries;
  return sum;
}

uint64_t Manifest::bytes() const {
  uint64_t sum = 0;
  for (const ChunkFacts& chunk : chunks) sum += chunk.bytes;
  return sum;
}

const Keyspace* Manifest::find(std::string_view name) const {
  const auto found = std::ranges::find(keyspaces, name, &Keyspace::name);
  return found == keyspaces.end() ? nullptr : &*found;
}

bool is_backup_id(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= backup_id_bytes_max && std::ranges::all_of(text, fits);
}

void store_chunk(const ChunkFacts& facts, stored::BackupChunk& out) {
  out.set_digest(facts.digest);
  out.set_first_key(facts.first_key);
  out.set_entries(facts.entries);
  out.set_bytes(facts.bytes);
  out.set_of_blocks(facts.of_blocks);
}

ChunkFacts load_chunk(const stored::BackupChunk& chunk) {
  return {.digest = chunk.digest(),
          .first_key = chunk.first_key(),
          .entries = chunk.entries(),
          .bytes = chunk.bytes(),
          .of_blocks = chunk.of_blocks()};
}

Bytes encode_manifest(const Manifest& manifest) {
  stored::Backup message;
  message.set_id(manifest.id);
  message.set_created_ms(manifest.created_ms);
  message.set_store(manifest.store);
  message.set_whole(manifest.whole);
  for (const Keyspace& keyspace : manifest.keyspaces) {
    stored::BackupKeyspace& out = *message.add_keyspaces();
    out.set_id(keyspace.id.value);
    out.set_name(keyspace.name);
    out.set_record(encode_keyspace(keyspace));
  }
  for (const ChunkFacts& chunk : manifest.chunks) store_chunk(chunk, *message.add_chunks());
  message.set_redis_versions_end(manifest.redis_versions_end);
  message.set_added_bytes(manifest.added_bytes);
  for (const Bytes& bound : manifest.unit_bounds) message.add_unit_bounds(bound);
  for (const Bytes& bound : manifest.block_bounds) message.add_block_bounds(bound);
  const Bytes body = serialize(message);
  Bytes file(manifest_magic);
  const bool has_blocks = !manifest.chunks.empty() && manifest.chunks.back().of_blocks;
  file.push_back(has_blocks ? manifest_format : format_without_blocks);
  file += sha256(body);
  return file + body;
}

Result<Manifest> decode_manifest(ByteView file) {
  if (!file.starts_with(manifest_magic))
    return Error{Code::corrupt, "this is no backup of trellis: it does not begin as one does",
                 "backup_foreign"};
  if (file.size() < manifest_header_bytes) return bad_manifest("it is cut short");
  const char format = file[manifest_magic.size()];
  if (format != manifest_format && format != format_without_blocks)
    return Error{Code::unsupported,
                 fmt::format("backup format {} is not this build's {}: use a newer trellis",
                             static_cast<unsigned char>(format), static_cast<int>(manifest_format)),
                 "backup_too_new"};
  const ByteView body = file.substr(manifest_header_bytes);
  if (sha256(body) != file.substr(manifest_magic.size() + 1, chunk_digest_bytes))
    return bad_manifest("its bytes are not those that were written");
  stored::Backup message;
  if (!message.ParseFromArray(body.data(), static_cast<int>(body.size())))
    return bad_manifest("it cannot be decoded");
  Manifest manifest{.id = message.id(),
                    .created_ms = message.created_ms(),
                    .store = message.store(),
                    .whole = message.whole(),
                    .keyspaces = {},
                    .chunks = {},
                    .redis_versions_end = message.redis_versions_end(),
                    .added_bytes = message.added_bytes(),
                    .unit_bounds = {message.unit_bounds().begin(), message.unit_bounds().end()},
                    .block_bounds = {message.block_bounds().begin(), message.block_bounds().end()}};
  if (!is_backup_id(manifest.id)) return bad_manifest("its id is none");
  if (manifest.store.size() != store_uuid_bytes) return bad_manifest("its store has no name");
  if (manifest.redis_versions_end > redis_versions_max)
    return bad_manifest("its mark of Redis versions makes no sense");
  for (const auto* bounds : {&manifest.unit_bounds, &manifest.block_bounds})
    if (std::ranges::adjacent_find(*bounds, std::ranges::greater_equal()) != bounds->end())
      return bad_manifest("its units are not in order");
  for (const auto& keyspace : message.keyspaces()) {
    TRY_ASSIGN(Keyspace decoded, decode_keyspace(keyspace.record()));
    if (decoded.id.value != keyspace.id() || decoded.name != keyspace.name())
      return bad_manifest("a keyspace of it makes no sense");
    manifest.keyspaces.push_back(std::move(decoded));
  }
  if (!manifest.whole && manifest.keyspaces.size() != 1)
    return bad_manifest("it does not say whose it is");
  manifest.chunks.reserve(static_cast<size_t>(message.chunks_size()));
  for (const auto& chunk : message.chunks()) manifest.chunks.push_back(load_chunk(chunk));
  TRY(check_chunks(manifest.chunks));
  return manifest;
}

std::vector<std::pair<Bytes, Bytes>> keyspace_intervals(KeyspaceId keyspace) {
  return {keyspace_interval(KeyMode::meta, keyspace), keyspace_interval(KeyMode::raw, keyspace),
          keyspace_interval(KeyMode::table, keyspace), keyspace_interval(KeyMode::txn, keyspace)};
}

std::vector<ChunkFacts> chunks_in(const std::vector<ChunkFacts>& chunks,
                                  const std::vector<std::pair<Bytes, Bytes>>& intervals) {
  std::vector<ChunkFacts> found;
  for (size_t i = 0; i < chunks.size(); i++) {
    const bool is_last = i + 1 == chunks.size() || chunks[i + 1].of_blocks != chunks[i].of_blocks;
    const auto overlaps = [&](const std::pair<Bytes, Bytes>& interval) {
      return chunks[i].first_key < interval.second &&
             (is_last || chunks[i + 1].first_key > interval.first);
    };
    if (std::ranges::any_of(intervals, overlaps)) found.push_back(chunks[i]);
  }
  return found;
}

}  // namespace trellis
