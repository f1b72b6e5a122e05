// A backup as one stream, for pipes:
//
//   'TRLSTRM' 01 | 'c' | bytes u64 | chunk file | ... | 'm' | bytes u64 | manifest |
//
// Each chunk once, and the manifest at last: a stream without one is not whole.
#pragma once

#include <optional>
#include <string>

#include "backup/backups.h"
#include "backup/chunk.h"
#include "backup/manifest.h"
#include "backup/repository.h"
#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// Makes one of a copy of the store, which it removes at its end. One thread at a time.
class BackupStreamWriter {
 public:
  BackupStreamWriter(Backups::Source source, uint64_t bytes_per_second)
      : source_(std::move(source)) {
    control_.set_bytes_per_second(bytes_per_second);
  }
  ~BackupStreamWriter();
  BackupStreamWriter(const BackupStreamWriter&) = delete;
  BackupStreamWriter& operator=(const BackupStreamWriter&) = delete;

  // The next bytes, a few MiB; absent: there are no more. Does not wait: next_in_us() says when the
  // limit allows the call.
  Result<std::optional<Bytes>> next();
  uint64_t next_in_us() { return control_.charge(0); }

 private:
  Status read_page(Bytes& out);

  Backups::Source source_;
  JobControl control_;
  std::optional<Manifest> manifest_;
  std::optional<UnitWalk> walk_;
  std::optional<BlockWalk> blocks_;  // comes behind it
  bool is_over_ = false;
};

// Writes one that comes in into a repository. One thread at a time.
class BackupStreamReader {
 public:
  explicit BackupStreamReader(Repository repository) : repository_(std::move(repository)) {}
  Status write(ByteView piece);
  // The id of the backup. Code::corrupt: the stream is not whole.
  Result<std::string> finish();

 private:
  Status take_frame(char kind, ByteView bytes);

  Repository repository_;
  Bytes read_;
  bool has_begun_ = false;
  std::optional<Manifest> manifest_;
};

}  // namespace trellis
