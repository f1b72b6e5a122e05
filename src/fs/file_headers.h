// What HTTP and S3 say about a file beside its content. It is kept with the file, as the extended
// attribute `trellis.headers`, and the names and values are bytes that nobody here looks into.
//
//   | 01 | kind u8 | [ length u16 | name ] | length u32 | value | kind ...
//
// The kinds 1 to 4 are those of the members, in their order; 5 is the user's, with a name. What is
// empty is not stored, and kinds, and names, go up.
#pragma once

#include <map>
#include <string>

#include "base/bytes.h"

namespace trellis {

inline constexpr ByteView headers_attribute = "trellis.headers";
constexpr size_t headers_bytes_max = 60 * 1024;

struct FileHeaders {
  std::string content_type = {};
  std::string content_disposition = {};
  std::string content_encoding = {};
  std::string cache_control = {};
  std::map<std::string, std::string> user = {};
  bool operator==(const FileHeaders&) const = default;
  bool empty() const { return *this == FileHeaders(); }
};

// Reason: headers_too_large (of all together, or a name of more than 1,024 bytes).
Result<Bytes> encode_headers(const FileHeaders& headers);
Result<FileHeaders> decode_headers(ByteView stored);

}  // namespace trellis
