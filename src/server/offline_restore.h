// Restores a whole store into a new data folder, without a server.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

struct OfflineRestore {
  std::filesystem::path data;        // not there yet, or empty
  std::filesystem::path repository;  // an absolute path; empty: `read` gives a stream
  std::string backup = {};           // empty: the latest of a whole store
  unsigned threads = 2;
  uint64_t bytes_per_second = 0;             // 0: as fast as it goes
  std::function<Result<Bytes>()> read = {};  // empty at the end
  // From another thread, now and then.
  std::function<void(std::string_view phase, uint64_t done, uint64_t total)> on_progress = {};
};

struct OfflineRestored {
  std::string backup;
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

// The store is built in <data>.restoring, and is at <data> when it is whole. What was interrupted
// goes on when it is called again.
Result<OfflineRestored> restore_offline(const OfflineRestore& asked);

}  // namespace trellis
