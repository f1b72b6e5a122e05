// Tags of what is asked for, and conditions on them (If-Match, If-None-Match).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace trellis {

Error bad_condition(std::string message);

// One strong tag in its quotes, without them. Reason: bad_condition.
Result<std::string> read_tag(std::string_view header, std::string_view value);

// Whether a list of tags names this one, which is in its quotes: If-Match is about the same bytes,
// which a weak tag does not promise (RFC 9110, 8.8.3.2).
enum class TagMatch : bool { strong, weak };
bool names_tag(std::string_view list, std::string_view tag, TagMatch match);

}  // namespace trellis
