#pragma once

#include <string_view>

#include "net/http_types.h"

namespace trellis {

inline constexpr std::string_view get_hello = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";

inline HttpResponse text(std::string_view body) {
  HttpResponse response;
  response.content_type = "text/plain";
  response.body = body;
  return response;
}

}  // namespace trellis
