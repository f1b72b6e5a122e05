// Checks the files of a keyspace, and repairs them, without a server: nobody else has the store
// open, so that what a crash left of unfinished writes is found, too.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

struct OfflineFsck {
  std::filesystem::path data;
  std::string keyspace = {};  // "": DEFAULT
  bool repair = false;
  bool quick = false;  // without reading all content
  // What it says while it goes on (rest/fsck_lines.h), from one thread at a time. An error ends it.
  std::function<Status(ByteView lines)> say;
};

// Code busy: a server, or somebody else, has the store open.
Status fsck_offline(const OfflineFsck& asked);

}  // namespace trellis
