// src/rest/openapi.json as part of the program.
#pragma once

#include <string_view>

namespace trellis {

extern const std::string_view openapi_text;

}  // namespace trellis
