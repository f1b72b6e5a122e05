// What a request says besides its body: ids in its path and parameters in its query. Nothing is
// guessed and nothing ignored.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/strong_id.h"
#include "net/http_types.h"

namespace trellis {

// Digits only, and no more than fit.
std::optional<uint64_t> parse_decimal(std::string_view text);

// Reasons: bad_id, not a number; illegal_id, over the largest that there can be.
Result<KeyspaceId> parse_keyspace_id(std::string_view text);

// All below have the reason bad_query.
Error bad_query(std::string message);

// Refuses parameters other than these.
Status check_query(const HttpRequest& request, std::initializer_list<std::string_view> known);
// A parameter that is there without a value counts as absent.
Result<std::optional<std::string>> query_text(const HttpRequest& request, std::string_view name);
Result<std::optional<uint64_t>> query_number(const HttpRequest& request, std::string_view name);
Result<bool> query_flag(const HttpRequest& request, std::string_view name);  // true or false
// From 1 to `max`.
Result<size_t> query_limit(const HttpRequest& request, size_t by_default, size_t max);

}  // namespace trellis
