#include "rest/raw_routes.h"

#include <fmt/format.h>

#include "json/json_text.h"

namespace trellis {

std::optional<std::string_view> keyspace_of_path(const HttpRequest& request, size_t captures) {
  if (request.captures.size() == captures) return std::nullopt;
  return request.captures[0];
}

Result<std::optional<ByteView>> read_bytes(JsonMembers& members, std::string_view name,
                                           std::string_view name_base64, DecodedBytes& decoded) {
  TRY_ASSIGN(const auto text, members.text(name));
  TRY_ASSIGN(const auto base64, members.text(name_base64));
  if (!base64.has_value()) return text;
  if (text.has_value()) {
    return bad_body(fmt::format("both {} and {} are given", quote(name), quote(name_base64)));
  }
  auto bytes = base64_decode(*base64);
  if (!bytes) return bad_body(fmt::format("{}: {}", quote(name_base64), bytes.error().message));
  decoded.push_back(std::move(*bytes));
  return ByteView(decoded.back());
}

Status check_ttl_ms(std::optional<uint64_t> ttl_ms) {
  if (ttl_ms != uint64_t{0}) return {};
  return Error{Code::invalid, "ttl_ms is 0: leave it out for an entry that never expires",
               "illegal_ttl"};
}

}  // namespace trellis
