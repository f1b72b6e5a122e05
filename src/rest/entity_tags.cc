#include "rest/entity_tags.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace trellis {

Error bad_condition(std::string message) {
  return {Code::invalid, std::move(message), "bad_condition"};
}

Result<std::string> read_tag(std::string_view header, std::string_view value) {
  if (value.size() > 2 && value.front() == '"' && value.find('"', 1) == value.size() - 1) {
    return std::string(value.substr(1, value.size() - 2));
  }
  return bad_condition(fmt::format("{} must be * or one tag in quotes", header));
}

bool names_tag(std::string_view list, std::string_view tag, TagMatch match) {
  if (list == "*") return true;
  while (!list.empty()) {
    std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(one.size() + 1, list.size()));
    while (one.starts_with(' ') || one.starts_with('\t')) one.remove_prefix(1);
    while (one.ends_with(' ') || one.ends_with('\t')) one.remove_suffix(1);
    if (match == TagMatch::weak && one.starts_with("W/")) one.remove_prefix(2);
    if (one == tag) return true;
  }
  return false;
}

}  // namespace trellis
