#include "rest/lane.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace trellis {
namespace {

constexpr std::string_view bearer = "Bearer ";
constexpr std::string_view token_start = "trl_";  // then the keyspace, in 6 hex digits
constexpr std::string_view admin_start = "trl_admin_";
constexpr size_t keyspace_letters = 10;
constexpr std::string_view keyspace_path = "/k/";
constexpr std::string_view raw_path = "/v1/raw/";
constexpr std::string_view catalog_path = "/api/";

// A token first: it is good for one keyspace only, however that is named beside it.
std::string_view keyspace_text(const HttpRequest& request) {
  const std::string_view authorization = request.header("Authorization");
  const std::string_view token =
      authorization.substr(std::min(bearer.size(), authorization.size()));
  if (token.starts_with(token_start) && !token.starts_with(admin_start))
    return token.substr(0, keyspace_letters);
  std::string_view path = request.path;
  if (path.starts_with(keyspace_path)) {
    path.remove_prefix(keyspace_path.size());
    return path.substr(0, path.find('/'));
  }
  if (const auto name = request.header("X-Trellis-Keyspace"); !name.empty()) return name;
  return path.starts_with(raw_path) || path.starts_with(catalog_path) ? "DEFAULT" : "";
}

}  // namespace

uint64_t lane_of(const HttpRequest& request) {
  const std::string_view text = keyspace_text(request);
  return text.empty() ? 0 : std::hash<std::string_view>()(text) | 1;
}

}  // namespace trellis
