#include "fs/file_headers.h"

#include <array>
#include <optional>

#include "fs/fs_error.h"

namespace trellis {
namespace {

constexpr char headers_format = 1;
constexpr char user_kind = 5;
constexpr size_t header_name_bytes_max = 1'024;
constexpr std::array headers_members = {
    &FileHeaders::content_type, &FileHeaders::content_disposition, &FileHeaders::content_encoding,
    &FileHeaders::cache_control};

// `width` bytes of length, then so many.
std::optional<ByteView> take_counted(ByteView& from, size_t width) {
  if (from.size() < width) return {};
  const uint64_t length = load_be(from.data(), width);
  from.remove_prefix(width);
  if (from.size() < length) return {};
  const ByteView taken = from.substr(0, length);
  from.remove_prefix(length);
  return taken;
}

}  // namespace

Result<Bytes> encode_headers(const FileHeaders& headers) {
  Bytes stored(1, headers_format);
  const auto add_value = [&](ByteView value) {
    append_be32(stored, static_cast<uint32_t>(value.size()));
    stored += value;
  };
  for (size_t i = 0; i < headers_members.size(); i++) {
    const std::string& value = headers.*headers_members[i];
    if (value.empty()) continue;
    stored += static_cast<char>(i + 1);
    add_value(value);
  }
  bool fits = true;
  for (const auto& [name, value] : headers.user) {
    fits = fits && name.size() <= header_name_bytes_max;
    stored += user_kind;
    append_be16(stored, static_cast<uint16_t>(name.size()));
    stored += name;
    add_value(value);
  }
  if (!fits || stored.size() > headers_bytes_max)
    return Error{Code::too_large, "metadata has at most 60 KiB, and its names 1,024 bytes",
                 "headers_too_large"};
  return stored;
}

Result<FileHeaders> decode_headers(ByteView stored) {
  const Error corrupt = fs_error::corrupt("metadata of a file");
  if (stored.empty() || stored[0] != headers_format) return corrupt;
  stored.remove_prefix(1);
  FileHeaders headers;
  while (!stored.empty()) {
    const char kind = stored[0];
    stored.remove_prefix(1);
    if (kind < 1 || kind > user_kind) return corrupt;
    std::string* value = nullptr;
    if (kind == user_kind) {
      const auto name = take_counted(stored, 2);
      if (!name) return corrupt;
      value = &headers.user[std::string(*name)];
    } else {
      value = &(headers.*headers_members[static_cast<size_t>(kind) - 1]);
    }
    const auto bytes = take_counted(stored, 4);
    if (!bytes) return corrupt;
    *value = *bytes;
  }
  return headers;
}

}  // namespace trellis
