#include "rest/openapi.h"

namespace trellis {

constexpr std::string_view openapi_text =
#include "openapi.json.inc"  // made by CMake
    ;

}  // namespace trellis
