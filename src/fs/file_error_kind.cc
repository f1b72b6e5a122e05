#include "fs/file_error_kind.h"

#include <array>
#include <utility>

namespace trellis {
namespace {

using Kind = FileErrorKind;

constexpr std::array<std::pair<std::string_view, Kind>, 22> kinds_of_reasons = {{
    {"no_entry", Kind::not_found},
    {"stale", Kind::not_found},
    {"exists", Kind::already_exists},
    {"not_a_directory", Kind::not_a_directory},
    {"is_a_directory", Kind::is_a_directory},
    {"not_empty", Kind::not_empty},
    {"illegal_name", Kind::invalid_path},
    {"name_too_long", Kind::invalid_path},
    {"path_too_long", Kind::invalid_path},
    {"too_many_symlinks", Kind::invalid_path},
    {"into_itself", Kind::invalid_path},
    {"is_same_file", Kind::is_same_file},
    {"range_not_satisfied", Kind::range_not_satisfied},
    {"condition_failed", Kind::condition_not_match},
    {"not_permitted", Kind::permission_denied},
    {"role_too_weak", Kind::permission_denied},
    {"not_a_file", Kind::unsupported},
    {"directory_quota_exceeded", Kind::quota_exceeded},
    {"quota_exceeded", Kind::quota_exceeded},
    {"rate_exceeded", Kind::rate_limited},
    {"headers_too_large", Kind::config_invalid},
    {"keyspace_not_found", Kind::config_invalid},
}};

}  // namespace

std::string_view to_string(FileErrorKind kind) {
  switch (kind) {
    case Kind::unexpected: return "Unexpected";
    case Kind::unsupported: return "Unsupported";
    case Kind::config_invalid: return "ConfigInvalid";
    case Kind::not_found: return "NotFound";
    case Kind::permission_denied: return "PermissionDenied";
    case Kind::is_a_directory: return "IsADirectory";
    case Kind::not_a_directory: return "NotADirectory";
    case Kind::already_exists: return "AlreadyExists";
    case Kind::rate_limited: return "RateLimited";
    case Kind::is_same_file: return "IsSameFile";
    case Kind::condition_not_match: return "ConditionNotMatch";
    case Kind::range_not_satisfied: return "RangeNotSatisfied";
    case Kind::not_empty: return "NotEmpty";
    case Kind::quota_exceeded: return "QuotaExceeded";
    case Kind::no_space: return "NoSpace";
    case Kind::invalid_path: return "InvalidPath";
  }
  return "Unexpected";
}

FileErrorKind file_error_kind(const Error& error) {
  for (const auto& [reason, kind] : kinds_of_reasons)
    if (reason == error.reason) return kind;
  switch (error.code) {
    case Code::not_found: return Kind::not_found;
    case Code::exists: return Kind::already_exists;
    case Code::denied: return Kind::permission_denied;
    case Code::no_space: return Kind::no_space;
    case Code::exhausted: return Kind::quota_exceeded;
    case Code::unsupported: return Kind::unsupported;
    default: return Kind::unexpected;
  }
}

bool is_temporary(const Error& error) {
  return error.code == Code::unavailable || error.code == Code::conflict ||
         error.code == Code::busy || error.reason == "rate_exceeded";
}

}  // namespace trellis
