// What the routes of raw data share: each is there twice, as /v1/raw/... and
// /k/{keyspace}/v1/raw/...
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "json/json_body.h"
#include "net/http_types.h"

namespace trellis {

// The keyspace that the path names. `captures`: how many the path without it has.
std::optional<std::string_view> keyspace_of_path(const HttpRequest& request, size_t captures);

// Bytes that were base64 in a body, for as long as others refer to them.
using DecodedBytes = std::deque<Bytes>;

// The member `name`, which is text, or `name_base64`, of any bytes; not both.
Result<std::optional<ByteView>> read_bytes(JsonMembers& members, std::string_view name,
                                           std::string_view name_base64, DecodedBytes& decoded);

// 0 would mean "for ever" to those who store it and "gone at once" to those who compute it.
// Reason illegal_ttl.
Status check_ttl_ms(std::optional<uint64_t> ttl_ms);

}  // namespace trellis
