// What somebody probably meant who wrote a name that there is not.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trellis {

// The name that takes the fewest edits to come to, the first of several; "" if none is near.
// Capitals make no difference.
std::string_view nearest_name(std::string_view given, std::span<const std::string> names);

}  // namespace trellis
