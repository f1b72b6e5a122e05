// The token of the server's admin, kept in a file that only its owner reads.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace trellis {

struct AdminToken {
  std::string text;
  bool is_new = false;
};

// Makes the file, with a new token, if it does not exist. A file that others may read, or whose
// token could be guessed, is refused.
Result<AdminToken> load_admin_token(const std::filesystem::path& file);

}  // namespace trellis
