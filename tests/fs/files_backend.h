// For tests: a map that file systems are on, with one or two handles.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine.h"

namespace trellis {

inline constexpr KeyspaceId files_keyspace{7};

class FilesBackend {
 public:
  virtual ~FilesBackend() = default;
  virtual std::vector<Engine*> handles() = 0;
  virtual void set_faults(bool /*on*/) {}
  virtual uint64_t faults() { return 0; }  // that were injected
};

// Two clients of an object store, with ranges that begin between inodes, with a directory, and
// between its entries.
std::unique_ptr<FilesBackend> open_cluster_files();

}  // namespace trellis
