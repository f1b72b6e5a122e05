// src/rest/openapi.json, and catalog_openapi.json of what is at /api, as parts of the program.
#pragma once

#include <string_view>

namespace trellis {

extern const std::string_view openapi_text;
extern const std::string_view catalog_openapi_text;

}  // namespace trellis
