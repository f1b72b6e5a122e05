#include "fs/paths.h"

#include "fs/names.h"

namespace trellis {

Bytes FilePath::text() const {
  if (names.empty()) return "/";
  Bytes text;
  for (const Bytes& name : names) {
    if (!text.empty()) text += '/';
    text += name;
  }
  if (is_directory) text += '/';
  return text;
}

std::vector<ByteView> split_path(ByteView text) {
  std::vector<ByteView> parts;
  for (;;) {
    const size_t end = text.find('/');
    parts.push_back(text.substr(0, end));
    if (end == ByteView::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<FilePath> parse_path(ByteView text) {
  if (text.size() > file_path_bytes_max) return fs_error::path_too_long(text.size());
  FilePath path;
  for (const ByteView part : split_path(text)) {
    path.is_directory = part.empty() || part == "." || part == "..";
    if (part == ".." && !path.names.empty()) path.names.pop_back();
    if (path.is_directory) continue;
    TRY(check_file_name(part));
    path.names.emplace_back(part);
  }
  return path;
}

}  // namespace trellis
