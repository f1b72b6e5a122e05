// Percent-encoding and base URLs. All of it is total: any bytes give a value or an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// All but letters, digits and - . _ ~ as %XX: fit for one segment of a path and for a query.
std::string percent_encode(ByteView bytes);

// Likewise, but keeps '/'.
std::string percent_encode_path(ByteView bytes);

// Any bytes but a '%' without two hex digits behind it, which is an error.
Result<Bytes> percent_decode(std::string_view text);
bool is_percent_encoded(std::string_view text);  // percent_decode would take it

// As percent_decode, with '+' as a space.
Result<Bytes> query_decode(std::string_view text);

struct BaseUrl {
  bool secure = false;            // https
  std::string host;               // without the brackets of an IPv6 address
  uint16_t port = 0;              // 80 or 443 if the URL has none
  std::string path;               // "" or "/..."; as given
  std::string authority() const;  // "host:port" for a Host header; "[::1]:80"
};

// "http://host:port", "https://[::1]/base". Refuses other schemes, user names, queries, fragments,
// white space and control bytes.
Result<BaseUrl> parse_base_url(std::string_view url);

}  // namespace trellis
