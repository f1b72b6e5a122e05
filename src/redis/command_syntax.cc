#include "redis/command_syntax.h"

#include <algorithm>

#include "redis/command_facts.h"

namespace trellis {
namespace {

struct NamesOfType {
  std::string_view type;
  std::string_view names;
};
// All others are strings.
constexpr NamesOfType names_of_types[] = {
    {"double", "height latitude longitude radius score width"},
    {"integer",
     "bit client-id count cursor db decrement destination-db end frequency increment index len "
     "limit "
     "milliseconds num-matches number numkeys numreplicas offset port protover rank seconds start "
     "stop "
     "timeout ttl version weight"},
    {"key", "destination destkey dst key key1 key2 newkey source sourcekey src"},
    {"pattern", "pattern"},
    {"unix-time", "unix-time-milliseconds unix-time-seconds"},
};

std::string_view type_by_name(std::string_view name) {
  for (const auto& [type, names] : names_of_types)
    if (std::ranges::count(words_of(names), name) > 0) return type;
  return "string";
}

bool is_small(char c) { return c >= 'a' && c <= 'z'; }

class SyntaxParser {
 public:
  explicit SyntaxParser(std::string_view text) : rest_(text) {}

  // Up to the end, or to the end of a group. Alternatives if they are separated by |.
  std::vector<Argument> arguments(bool& are_alternatives) {
    std::vector<Argument> found;
    do {
      found.push_back(argument());
      are_alternatives = are_alternatives || rest_.starts_with('|');
    } while (take("|") || take(" "));
    return found;
  }

 private:
  bool take(std::string_view what) {
    if (!rest_.starts_with(what)) return false;
    rest_.remove_prefix(what.size());
    return true;
  }

  std::string_view word() {
    const std::string_view found = rest_.substr(0, rest_.find_first_of(" []()|<>."));
    rest_.remove_prefix(found.size());
    return found;
  }

  Argument argument() {
    Argument found;
    found.is_optional = take("[");
    std::string_view first = word();
    if (std::ranges::none_of(first, is_small)) {
      found.token = first;
      const bool is_alone = rest_.size() < 2 || rest_[0] != ' ' || !is_small(rest_[1]);
      first = is_alone ? std::string_view() : (take(" "), word());
    }
    found.name = first;
    if (first.empty())
      take_name_of_token(found);
    else
      take_type(found);
    found.is_multiple = take("...");
    if (found.is_optional) take("]");
    found.repeats_token = take("...");
    found.is_multiple = found.is_multiple || found.repeats_token;
    return found;
  }

  void take_name_of_token(Argument& found) {
    found.type = "pure-token";
    found.name = found.token;
    if (take("<")) {
      found.name = word();
      take(">");
    }
    for (char& c : found.name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }

  void take_type(Argument& found) {
    if (take("(")) {
      bool are_alternatives = false;
      found.arguments = arguments(are_alternatives);
      found.type = are_alternatives ? "oneof" : "block";
      take(")");
    } else if (take("<")) {
      found.type = word();
      take(">");
    } else {
      found.type = type_by_name(found.name);
    }
  }

  std::string_view rest_;
};

}  // namespace

std::vector<Argument> parse_syntax(std::string_view text) {
  bool are_alternatives = false;
  return text.empty() ? std::vector<Argument>() : SyntaxParser(text).arguments(are_alternatives);
}

}  // namespace trellis
