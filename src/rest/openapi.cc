#include "rest/openapi.h"

namespace trellis {

constexpr std::string_view openapi_text =
#include "openapi.json.inc"  // made by CMake
    ;
constexpr std::string_view catalog_openapi_text =
#include "catalog_openapi.json.inc"
    ;

}  // namespace trellis
