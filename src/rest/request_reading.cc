#include "rest/request_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "base/limits.h"

namespace trellis {

std::optional<uint64_t> parse_decimal(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

Result<KeyspaceId> parse_keyspace_id(std::string_view text) {
  const std::optional<uint64_t> id = parse_decimal(text);
  if (!id.has_value()) return Error{Code::invalid, "invalid keyspace id", "bad_id"};
  if (*id > keyspace_id_max) {
    return Error{
        Code::invalid,
        fmt::format("illegal keyspace id {}, larger than spaceID Max {}", *id, keyspace_id_max),
        "illegal_id"};
  }
  return KeyspaceId{static_cast<uint32_t>(*id)};
}

Error bad_query(std::string message) { return {Code::invalid, std::move(message), "bad_query"}; }

Status check_query(const HttpRequest& request, std::initializer_list<std::string_view> known) {
  if (request.query.empty()) return {};
  auto names = query_names(request);
  if (!names) return bad_query(std::move(names).error().message);
  for (const std::string& name : *names) {
    if (std::ranges::find(known, name) == known.end()) {
      return bad_query(fmt::format("unknown query parameter {}", quote(name)));
    }
  }
  return {};
}

Result<std::optional<std::string>> query_text(const HttpRequest& request, std::string_view name) {
  if (request.query.empty()) return std::nullopt;
  auto value = query_value(request, name);
  if (!value) return bad_query(std::move(value).error().message);
  if (value->has_value() && (*value)->empty()) return std::nullopt;
  return std::move(*value);
}

Result<std::optional<uint64_t>> query_number(const HttpRequest& request, std::string_view name) {
  TRY_ASSIGN(const std::optional<std::string> text, query_text(request, name));
  if (!text.has_value()) return std::nullopt;
  const std::optional<uint64_t> number = parse_decimal(*text);
  if (!number.has_value()) {
    return bad_query(fmt::format("{} is {}: it must be a whole number from 0 to {}", name,
                                 quote(*text), UINT64_MAX));
  }
  return number;
}

Result<bool> query_flag(const HttpRequest& request, std::string_view name) {
  TRY_ASSIGN(const std::optional<std::string> given, query_text(request, name));
  const std::string text = given.value_or("false");
  if (text == "true") return true;
  if (text == "false") return false;
  return bad_query(fmt::format("{} is {}: it must be true or false", name, quote(text)));
}

Result<size_t> query_limit(const HttpRequest& request, size_t by_default, size_t max) {
  TRY_ASSIGN(const std::optional<std::string> text, query_text(request, "limit"));
  if (!text.has_value()) return by_default;
  const std::optional<uint64_t> limit = parse_decimal(*text);
  if (!limit.has_value() || *limit == 0 || *limit > max) {
    return bad_query(
        fmt::format("limit is {}: it must be a whole number from 1 to {}", quote(*text), max));
  }
  return static_cast<size_t>(*limit);
}

}  // namespace trellis
