// What OpenDAL calls the errors of files, and names of ours where it has none.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace trellis {

enum class FileErrorKind : uint8_t {
  unexpected,
  unsupported,
  config_invalid,
  not_found,
  permission_denied,
  is_a_directory,
  not_a_directory,
  already_exists,
  rate_limited,
  is_same_file,
  condition_not_match,
  range_not_satisfied,
  // Ours.
  not_empty,
  quota_exceeded,
  no_space,
  invalid_path,
};
// "NotFound", as OpenDAL spells it.
std::string_view to_string(FileErrorKind kind);

// By its reason; of those that are not of files by its code.
FileErrorKind file_error_kind(const Error& error);
// OpenDAL's status: whether the same call may succeed if it is made again.
bool is_temporary(const Error& error);

}  // namespace trellis
