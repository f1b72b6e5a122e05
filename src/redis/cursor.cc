#include "redis/cursor.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "redis/call.h"

namespace trellis {

Result<uint64_t> parse_cursor(ByteView text) {
  const Bytes copy(text);
  char* end = nullptr;
  errno = 0;
  const uint64_t cursor = std::strtoull(copy.c_str(), &end, 10);
  if (std::isspace(static_cast<unsigned char>(copy[0])) || *end != '\0' || errno == ERANGE)
    return reply_with("ERR invalid cursor");
  return cursor;
}

size_t shared_bytes(ByteView a, ByteView b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

}  // namespace trellis
