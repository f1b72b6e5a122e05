// The two servers that are compared: Trellis, and nginx with the same bytes in files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "child_process.h"

namespace trellis {

struct Server {
  std::unique_ptr<ChildProcess> process;
  uint16_t port = 0;
  std::vector<pid_t> pids = {};  // of all processes that serve

  double cpu_us() const;
};

// With a store in a folder that it makes in `folder`; engine: rocksdb or memory.
Server start_trellis(const std::filesystem::path& program, const std::string& engine,
                     const std::filesystem::path& folder);

// Serves the files below folder/www, with two workers.
Server start_nginx(const std::filesystem::path& program, const std::filesystem::path& folder);

}  // namespace trellis
