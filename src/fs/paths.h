// Paths of files, as OpenDAL spells them: "a/b" is a file, "a/b/" a directory, "/" the root.
//
// They are bytes, not text, and nothing is trimmed. A '/' in front means nothing, several are one,
// "." is left out, and ".." takes the name before it away, whatever that is: a link is not looked
// at, and above the root is the root. What ends with "." or ".." is a directory.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

struct FilePath {
  std::vector<Bytes> names;
  bool is_directory = true;  // spelled as one

  bool is_root() const { return names.empty(); }
  // "a/b", "a/b/", "/".
  Bytes text() const;
};

// Reasons: path_too_long (over file_path_bytes_max as it is given), name_too_long, illegal_name.
Result<FilePath> parse_path(ByteView text);

// The parts between slashes, empty ones included: for what a symlink says.
std::vector<ByteView> split_path(ByteView text);

}  // namespace trellis
