// A folder of backups (docs/decisions/0007-backup.md): chunks by their digests, and what the
// backups say of them. Several jobs, also of several servers, may write to one at a time.
#pragma once

#include <array>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "backup/manifest.h"
#include "base/function_ref.h"
#include "base/result.h"

namespace trellis {

// Any thread.
class Repository {
 public:
  // Makes one of a folder that is not there or empty. Code::invalid: it holds other things.
  static Result<Repository> open_or_make(const std::filesystem::path& path);
  // Code::not_found: there is none; unsupported: it is of a newer format.
  static Result<Repository> open(const std::filesystem::path& path);
  Repository(Repository&& other) noexcept : path_(std::move(other.path_)) {}

  const std::filesystem::path& path() const { return path_; }

  // How many bytes it took: 0 if it was there. Durable after sync_chunks().
  Result<uint64_t> put_chunk(const EntryChunk& chunk);
  Status sync_chunks();
  // Checked against its digest.
  Result<Bytes> get_chunk(const ChunkFacts& facts) const;
  // The chunk as it is stored.
  Status put_chunk_file(ByteView digest, ByteView file);

  Status put_manifest(const Manifest& manifest);
  Result<Manifest> get_manifest(std::string_view id) const;
  // Oldest first.
  Result<std::vector<std::string>> ids() const;
  // The id; if it is empty the latest that fits, or the latest of all if none does.
  Result<Manifest> find(std::string_view id, FunctionRef<bool(const Manifest&)> fits) const;
  // Forgets a backup, and removes chunks that no backup names. How many bytes that freed.
  Result<uint64_t> remove(std::string_view id);

 private:
  explicit Repository(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path chunk_path(ByteView digest) const;
  std::filesystem::path manifest_path(std::string_view id) const;
  std::filesystem::path drafts() const { return path_ / "drafts"; }
  Status check_format() const;

  std::filesystem::path path_;
  std::array<std::atomic<bool>, 256> unsynced_{};  // folders of chunks, by the first byte
  std::mutex syncing_;
};

}  // namespace trellis
