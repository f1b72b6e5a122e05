// UTF-8: what is text and what is only bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace trellis {

// How many bytes the UTF-8 character at the front has; 0 if there is none. No overlong forms, no
// surrogates, nothing past U+10FFFF.
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace trellis
