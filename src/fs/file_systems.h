// The file systems of all keyspaces that this process uses: one object for each, made when it is
// first asked for.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "fs/file_system.h"
#include "fs/files.h"
#include "tenant/collector.h"
#include "tenant/keyspaces.h"

namespace trellis {

// Any thread.
class FileSystems final : public GarbageOwner {
 public:
  explicit FileSystems(Keyspaces& keyspaces, FileSystemOptions options = {})
      : keyspaces_(keyspaces), options_(options) {}

  Result<std::shared_ptr<FileSystem>> of(const std::shared_ptr<Tenant>& tenant);
  // By path, with one session for all who ask.
  Result<std::shared_ptr<Files>> files_of(const std::shared_ptr<Tenant>& tenant);

  Result<size_t> collect(Tenant& tenant, std::span<const Garbage> notes) override;

 private:
  Keyspaces& keyspaces_;
  const FileSystemOptions options_;
  std::mutex mutex_;
  struct Opened {
    std::shared_ptr<FileSystem> fs;
    std::shared_ptr<Files> files;
  };
  Result<Opened> find(const std::shared_ptr<Tenant>& tenant);
  std::unordered_map<KeyspaceId, Opened> opened_;
};

}  // namespace trellis
